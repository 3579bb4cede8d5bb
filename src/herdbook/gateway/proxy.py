"""One call, from a box to the service behind a connection and back, streamed both ways and kept nowhere.

The request that goes out is made anew: method, canonical path, headers that may pass, the credential. A redirect is answered, not
followed. The answer is passed on as it arrives, overwritten where it repeats the credential.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import unquote_plus

import httpcore2
from starlette.types import Receive, Send

from herdbook.base.errors import HerdbookError, InvalidRequest, Unavailable
from herdbook.gateway import headers
from herdbook.gateway.budget import Account, OverBudget
from herdbook.gateway.catalogue import Ready
from herdbook.gateway.credentials.attached import Attached
from herdbook.gateway.paths import CanonicalPath
from herdbook.gateway.redaction import Redactor
from herdbook.gateway.upstream import FAILURES, Upstream

logging.getLogger("httpcore2").setLevel(logging.WARNING)  # at `debug` it writes the headers of answers


class UpstreamFailed(Unavailable):
    """The service behind this connection cannot be reached or broke off: try again later."""

    code, status = "upstream_failed", 502


class UpstreamSlow(Unavailable):
    """The service behind this connection did not answer in time: try again later."""

    code, status = "upstream_slow", 504


class UpstreamUnreadable(HerdbookError):
    """The service behind this connection compressed its answer though it was asked not to, so it cannot be redacted: refused."""

    code, status = "upstream_unreadable", 502


class BrokenOff(Exception):
    """The answer ends before its end: the connection is to be cut, so that nobody takes it for whole."""


class ClientGone(Exception):
    """The box hung up: nobody is left to answer."""


@dataclass(slots=True)
class Body:
    """The body of a request, as it arrives, and whether anybody still waits for the answer."""

    receive: Receive
    expected: bool
    account: Account
    size: int = 0
    answered: bool = False  # the last of the answer is on its way, after which nobody waits
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        if not self.expected:
            self.ended.set()

    async def stream(self) -> AsyncIterator[bytes]:
        while True:
            message = await self.receive()
            if message["type"] != "http.request":
                raise ClientGone
            chunk = bytes(message.get("body", b""))
            self.size += len(chunk)
            if chunk:
                self.account.spend("bytes_up", len(chunk))
                yield chunk
            if not message.get("more_body"):
                self.ended.set()
                return

    async def gone(self) -> None:
        """Returns when the box has hung up after all of its request was read."""
        await self.ended.wait()
        while (await self.receive())["type"] != "http.disconnect":
            pass


@dataclass(slots=True)
class Relay:
    """One call on its way. `status`, and the bytes both ways, are for the audit."""

    ready: Ready
    box: str
    method: str
    path: CanonicalPath
    query: bytes
    headers: headers.Headers
    body: Body
    send: Send
    call: str
    still_open: Callable[[], bool]
    status: int = 0
    bytes_out: int = 0
    redacted: int = 0

    async def run(self, upstream: Upstream) -> None:
        """Raises what is to be answered instead, ClientGone, or BrokenOff when an answer had begun."""
        attached = await self.ready.credential.attach(self.box)
        request = self.request(attached)
        try:
            async with upstream.answer(request, reach=self.ready.connection.reaches) as response:
                await self.pass_on(response, redactor(attached.secrets), secret_path=bool(attached.prefix))
        except FAILURES as problem:
            if self.status:
                raise BrokenOff from problem
            slow = isinstance(problem, httpcore2.TimeoutException) and not isinstance(problem, httpcore2.ConnectTimeout)
            raise (UpstreamSlow if slow else UpstreamFailed)(told(problem, self.ready)) from problem

    def request(self, attached: Attached) -> httpcore2.Request:
        target = self.ready.target
        where = behind_secret(attached, self.path) if attached.prefix else target.prefix + self.path.sent
        query = with_secret(self.query, attached.query)
        url = httpcore2.URL(
            scheme=target.scheme, host=target.host, port=target.port, target=where + (b"?" + query if query else b"")
        )
        sent = headers.for_upstream(self.headers, target=target, attached=attached.headers)
        return httpcore2.Request(self.method, url, headers=sent, content=self.body.stream() if self.body.expected else None)

    async def pass_on(self, response: httpcore2.Response, redact: Redactor, *, secret_path: bool) -> None:
        encoding = [value.lower() for name, value in response.headers if name.lower() == b"content-encoding"]
        if any(value not in (b"", b"identity") for value in encoding):
            raise UpstreamUnreadable
        kept = headers.for_box(
            response.headers, connection=self.ready.connection, target=self.ready.target, secret_path=secret_path
        )
        head = [(name, redact.whole(value)) for name, value in kept]
        self.redacted += sum(value != clean for (_, value), (_, clean) in zip(kept, head, strict=True))
        self.status = response.status
        if response.status == 401:
            self.ready.credential.refused()
        ours = (b"x-herdbook-call", self.call.encode())
        await self.send({"type": "http.response.start", "status": response.status, "headers": [*head, ours]})
        stream = redact.stream()
        async for chunk in response.aiter_stream():
            if not self.still_open():
                raise BrokenOff("the connection was revoked")
            await self.give(stream.feed(chunk))
        await self.give(stream.end())
        self.redacted += stream.found
        self.body.answered = True
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def give(self, data: bytes) -> None:
        if data:
            try:
                self.body.account.spend("bytes_down", len(data))
            except OverBudget as problem:
                raise BrokenOff from problem
            self.bytes_out += len(data)
            await self.send({"type": "http.response.body", "body": data, "more_body": True})


async def while_wanted(body: Body, work: Awaitable[None]) -> None:
    """Do this until it is done, or until the box hangs up."""
    tasks = [asyncio.ensure_future(work), asyncio.ensure_future(body.gone())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not tasks[0].done() and not body.answered:
            raise ClientGone
        await tasks[0]
    finally:
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)


def behind_secret(attached: Attached, path: CanonicalPath) -> bytes:
    """A webhook's path is whole as it is; only what a box adds to it stands behind."""
    return attached.prefix if path.sent == b"/" else attached.prefix + path.sent


def with_secret(query: bytes, attached: bytes) -> bytes:
    """The box's query as it came, but for a parameter of the credential's own name."""
    if any(not 0x21 <= byte <= 0x7E or byte == ord("#") for byte in query):
        raise InvalidRequest("the query holds a character that is not allowed in one: percent-encode it")
    if not attached:
        return query
    name = attached.partition(b"=")[0]
    kept = [pair for pair in query.split(b"&") if pair and not named(pair, name)]
    return b"&".join([*kept, attached])


def named(pair: bytes, name: bytes) -> bool:
    given = unquote_plus(pair.partition(b"=")[0].decode("latin-1"))
    return given.partition("[")[0].strip().casefold() == name.decode().casefold()


@lru_cache(maxsize=256)
def redactor(secrets: tuple[str, ...]) -> Redactor:
    return Redactor(secrets)


def told(problem: Exception, ready: Ready) -> str:
    """What went wrong, without what the library says of it: that may quote the request."""
    kind = type(problem).__name__.removesuffix("Error")
    return f"the service behind {ready.connection.name} did not answer ({kind}): try again later, or check with its operator"
