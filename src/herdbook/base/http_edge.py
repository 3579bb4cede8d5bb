"""The HTTP edge of every server of ours: an application sees only requests whose headers are whole, small and in time.

It adds to uvicorn's httptools protocol the limits that it does not have: a deadline and a size for headers and bodies, an end to
silence, one error shape for whatever is refused before an application is asked, and a stop that answers all that was accepted. A
body is counted as it arrives, so neither chunks nor a lying Content-Length pass the limit; compressed bodies are refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.utils import formatdate
from enum import Enum
from http import HTTPStatus
from typing import Any, Final, cast

import httptools
import msgspec
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from herdbook.base import limits
from herdbook.base.errors import Busy, HerdbookError, InvalidRequest, TooLarge, Unavailable
from herdbook.base.ids import new_name

LOG = logging.getLogger("herdbook.edge")
LINGER_BYTES_MAX: Final = 2 * limits.REQUEST_BYTES_MAX  # read and thrown away after a refusal, so that its answer arrives
BACKLOG: Final = 1_024


class MethodNotAllowed(InvalidRequest):
    """This address does not take that method: /openapi.json lists the ones it takes."""

    code, status = "method_not_allowed", 405


class UnsupportedMediaType(InvalidRequest):
    """The body must be plain JSON: send it with `Content-Type: application/json`."""

    code, status = "unsupported_media_type", 415


class HeadersTooLarge(TooLarge):
    """The headers are over the limit: send fewer or shorter ones."""

    code, status = "headers_too_large", 431


class TooSlow(HerdbookError):
    """The request did not arrive in time: send it again on a new connection."""

    code, status, retry = "too_slow", 408, True


class Internal(HerdbookError):
    """Something unforeseen went wrong: the server's log says what, under the X-Request-Id of this answer."""

    code = "internal"


@dataclass(frozen=True, slots=True)
class EdgeLimits:
    """How much, how long and how many; tests use small ones."""

    body_bytes: int = limits.REQUEST_BYTES_MAX
    wide_below: bytes = b""  # addresses that begin so may carry `wide_body_bytes`, since nothing keeps what they carry
    wide_body_bytes: int = limits.REQUEST_BYTES_MAX
    header_bytes: int = limits.HEADER_BYTES_MAX
    header_seconds: float = limits.HEADER_SECONDS_MAX
    body_seconds: float = limits.BODY_SECONDS_MAX
    idle_seconds: int = 75  # more than the 60 s that proxies keep a connection, so that they are the ones to close it
    linger_seconds: float = 2
    stop_seconds: float = limits.STOP_SECONDS_MAX
    connections: int = 512  # half of the usual 1,024 descriptors: the record needs some, too


class Stage(Enum):
    """What the next byte of a connection belongs to."""

    BETWEEN = "between requests"
    HEADERS = "headers"
    BODY = "body"


class EdgeProtocol(HttpToolsProtocol):
    """One connection. A request that arrives whole costs no timer; an incomplete one is waited for once, and not longer."""

    def __init__(self, listener: Listener, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(listener.edge.config, listener.server_state, listener.state, loop)
        self.logger = LOG
        self.access_log = False  # uvicorn's would write query strings, which hold what people ask
        self.listener = listener
        self.limits = listener.edge.limits
        self.timeout_keep_alive = self.limits.idle_seconds
        self.stage = Stage.BETWEEN
        self.deadline: asyncio.TimerHandle | None = None
        self.current: RequestResponseCycle | None = None  # the request whose headers came last
        self.deaf = False  # refused: what still arrives is thrown away
        self.stopping = False
        self.messages = 0
        self.received = 0  # bytes of an incomplete head and body as they came over the wire; thrown away ones once deaf
        self.body_bytes = 0
        self.body_max = self.limits.body_bytes

    # --- the transport ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(Joined(cast(asyncio.Transport, transport), self.loop))
        if len(self.connections) > self.limits.connections:
            self.refuse(Busy(f"{self.limits.connections} connections are open already: retry in a second"))
        else:
            self.wait_for(self.limits.header_seconds)

    def data_received(self, data: bytes) -> None:
        self.stop_idling()
        if self.deaf:
            self.throw_away(len(data))
            return
        messages = self.messages
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.cycle.keep_alive = False  # nothing else is spoken here, and the parser has dropped what came after
        except httptools.HttpParserError as problem:
            cause = problem.__context__
            self.refuse(cause if isinstance(cause, HerdbookError) else InvalidRequest(f"this is not HTTP/1.1: {problem}"))
            return
        self.received = self.received + len(data) if self.messages == messages else 0
        self.watch()

    def eof_received(self) -> Any:  # True keeps our side open; uvicorn, whose type is None, never does
        """The other side sends no more, but may still read: a whole request is answered."""
        if self.current is None or self.current.response_complete or self.stage is not Stage.BETWEEN:
            return None
        self.current.keep_alive = False
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self.stop_waiting()
        self.stop_idling()
        super().connection_lost(exc)
        self.listener.lost()

    def timeout_keep_alive_handler(self) -> None:
        self.close_soon()

    def shutdown(self) -> None:
        """Finish what was accepted. A body that is still on its way gets half of the time that the stop may take."""
        self.stopping = True
        if self.stage is Stage.BODY and self.busy():
            self.stop_waiting()
            self.wait_for(self.limits.stop_seconds / 2)
        super().shutdown()

    # --- the parser ---

    def on_message_begin(self) -> None:
        self.messages += 1
        self.stage = Stage.HEADERS
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        below = self.limits.wide_below
        self.body_max = self.limits.wide_body_bytes if below and self.url.startswith(below) else self.limits.body_bytes
        self.check_headers()
        self.stop_waiting()
        self.stage, self.body_bytes = Stage.BODY, 0
        self.listener.refresh_date(self.loop.time())
        super().on_headers_complete()
        self.current = self.cycle
        self.headers = []  # for trailers, which must not join the headers of a request that is already being answered

    def on_body(self, body: bytes) -> None:
        self.body_bytes += len(body)
        if self.body_bytes > self.body_max:
            raise self.body_too_large()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.stop_waiting()
        self.stage = Stage.BETWEEN
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.deaf and not self.pipeline:
            self.linger()

    def check_headers(self) -> None:
        """Refuse by the headers alone what would be refused later, at a higher price."""
        size, hosts = len(self.url), 0
        for name, value in self.headers:
            size += len(name) + len(value) + len(b": \r\n")
            if name == b"host":
                hosts += 1
            elif name == b"content-length" and int(value) > self.body_max:
                raise self.body_too_large()
            elif name == b"content-encoding" and value.lower() != b"identity":
                raise UnsupportedMediaType("compressed bodies are refused, as a small one can hold a huge one: send plain JSON")
            elif name == b"transfer-encoding" and value.lower() != b"chunked":
                raise UnsupportedMediaType("the only transfer encoding taken is `chunked`: send plain JSON")
        if size > self.limits.header_bytes:
            raise self.headers_too_large()
        if hosts != 1 and (hosts or self.parser.get_http_version() != "1.0"):
            raise InvalidRequest(f"this request has {hosts} Host headers: send exactly one")

    def body_too_large(self) -> TooLarge:
        return TooLarge(f"the body is over {self.body_max} bytes, the limit of a request: store a pointer instead")

    def headers_too_large(self) -> HeadersTooLarge:
        return HeadersTooLarge(f"the headers are over {self.limits.header_bytes} bytes: send fewer or shorter ones")

    # --- deadlines ---

    def busy(self) -> bool:
        return self.current is not None and not self.current.response_complete

    def watch(self) -> None:
        """Bound what is still incomplete, in bytes and in time."""
        if self.stage is Stage.BODY:
            if self.received > self.limits.header_bytes + 2 * self.body_max:  # chunks of one byte, trailers without end
                self.refuse(self.body_too_large())
            else:
                self.wait_for(self.limits.body_seconds)
        elif self.stage is Stage.HEADERS and self.received > self.limits.header_bytes:
            self.refuse(self.headers_too_large())
        elif self.stage is Stage.HEADERS or not self.busy():
            self.wait_for(self.limits.header_seconds)

    def wait_for(self, seconds: float) -> None:
        if self.deadline is None:
            self.deadline = self.loop.call_later(seconds, self.too_late)

    def stop_waiting(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None

    def stop_idling(self) -> None:
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None

    def too_late(self) -> None:
        self.deadline = None
        if self.stopping:
            self.refuse(Unavailable("the server is stopping and this request was not complete: send it again in a moment"))
        elif self.stage is Stage.BETWEEN:
            self.close_soon()
        else:
            seconds = self.limits.body_seconds if self.stage is Stage.BODY else self.limits.header_seconds
            self.refuse(TooSlow(f"the {self.stage.value} did not arrive within {seconds:g} seconds: send it again"))

    # --- refusals ---

    def refuse(self, error: HerdbookError) -> None:
        """Answer before any application is asked, and close; a whole request that is being worked on is answered instead."""
        self.stop_waiting()
        self.deaf, self.received = True, 0
        self.listener.edge.on_refusal(error)
        cycle = self.current
        if cycle is not None and not cycle.response_complete:
            if not cycle.more_body:
                cycle.keep_alive = False
                return
            if self.pipeline:  # the refused one waits behind another: it is dropped, and the connection closes after that one
                self.pipeline.popleft()
                return
            cycle.disconnected = True  # the application that waits for this body waits no longer
            cycle.message_event.set()
            if cycle.response_started:
                self.close_soon()
                return
        self.listener.refresh_date(self.loop.time())
        self.transport.write(plain_answer(error, self.server_state.default_headers))
        self.linger()

    def linger(self) -> None:
        """Half-close and read on for a moment: closing on unread bytes resets the connection, and the answer would be lost."""
        if self.transport.is_closing():
            return
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self.stop_waiting()
        self.deadline = self.loop.call_later(self.limits.linger_seconds, self.transport.abort)

    def throw_away(self, size: int) -> None:
        self.received += size
        if self.received > LINGER_BYTES_MAX:
            self.transport.abort()

    def close_soon(self) -> None:
        """Close, also when the other side never reads what was answered."""
        self.stop_waiting()
        self.transport.close()
        self.deadline = self.loop.call_later(self.limits.linger_seconds, self.transport.abort)


class Joined(asyncio.Transport):
    """A transport that sends an answer's head and body at once: one system call and one packet fewer for each answer."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self.transport = transport
        self.loop = loop
        self.held = b""
        for name in ("is_closing", "abort", "pause_reading", "resume_reading", "can_write_eof", "get_extra_info"):
            setattr(self, name, getattr(transport, name))

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.held:
            held, self.held = self.held, b""
            self.transport.write(held + data)
        else:
            self.held = bytes(data)
            self.loop.call_soon(self.flush)

    def flush(self) -> None:
        if self.held:
            held, self.held = self.held, b""
            self.transport.write(held)

    def write_eof(self) -> None:
        self.flush()
        try:
            self.transport.write_eof()
        except OSError:
            self.transport.abort()  # because the other side has gone already: it waited among those that nobody had taken yet

    def close(self) -> None:
        self.flush()
        self.transport.close()


def plain_answer(error: HerdbookError, default_headers: list[tuple[bytes, bytes]]) -> bytes:
    """A whole HTTP answer for a request that never became one."""
    body = msgspec.json.encode(error.as_dict())
    headers = [
        *default_headers,
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"x-request-id", new_name("req").encode()),
        (b"connection", b"close"),
    ]
    if error.retry:
        headers.append((b"retry-after", b"1"))
    status = f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}\r\n".encode()
    return status + b"".join(name + b": " + value + b"\r\n" for name, value in headers) + b"\r\n" + body


class Edge:
    """An application behind these limits, on any number of listeners of one event loop."""

    def __init__(
        self,
        app: Callable[..., Awaitable[None]],
        *,
        limits: EdgeLimits | None = None,
        on_refusal: Callable[[HerdbookError], None] = lambda error: None,
    ) -> None:
        self.limits = limits or EdgeLimits()
        self.on_refusal = on_refusal
        self.config = Config(
            app, http=EdgeProtocol, ws="none", lifespan="off", interface="asgi3", proxy_headers=False,
            server_header=False, date_header=False, log_config=None,
        )  # fmt: skip
        self.config.load()

    async def listen(self, sock: socket.socket, *, state: dict[str, Any] | None = None) -> Listener:
        """Accept on this bound socket; the application finds `state` in each request's scope, and so knows which way it came."""
        listener = Listener(self, sock, state or {})
        loop = asyncio.get_running_loop()
        make = loop.create_unix_server if sock.family == socket.AF_UNIX else loop.create_server
        listener.server = await make(lambda: EdgeProtocol(listener, loop), sock=sock, backlog=BACKLOG)
        return listener


class Listener:
    """One accepting socket and its connections."""

    server: asyncio.Server

    def __init__(self, edge: Edge, sock: socket.socket, state: dict[str, Any]) -> None:
        self.edge = edge
        self.state = state
        self.server_state = ServerState()
        self.sock = sock
        self.unix_path = sock.getsockname() if sock.family == socket.AF_UNIX else None
        self.emptied = asyncio.Event()
        self.closing = False
        self.date_until = 0.0

    def refresh_date(self, now: float) -> None:
        """At most once a second; uvicorn's own server would do it by polling."""
        if now >= self.date_until:
            self.server_state.default_headers = [(b"date", formatdate(usegmt=True).encode())]
            self.date_until = now + 1

    def lost(self) -> None:
        if self.closing and not self.server_state.connections:
            self.emptied.set()

    async def close(self) -> None:
        """Accept nothing more, answer what was accepted, and only then, or after `stop_seconds`, cut what is left."""
        asyncio.get_running_loop().remove_reader(self.sock)
        for _ in range(3):  # turns of the loop in which what was just accepted becomes one of our connections
            await asyncio.sleep(0)
        self.server.close()
        self.closing = True
        if self.unix_path:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.unix_path)
        for connection in list(self.server_state.connections):
            connection.shutdown()
        self.lost()
        try:
            async with asyncio.timeout(self.edge.limits.stop_seconds):
                await self.emptied.wait()
                while self.server_state.tasks:  # of clients that hung up: what they sent was accepted all the same
                    await asyncio.wait(self.server_state.tasks)
        except TimeoutError:
            LOG.warning("stopped with %d connections still open", len(self.server_state.connections))
        for task in list(self.server_state.tasks):
            task.cancel()
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await self.emptied.wait()  # aborted ones are gone in the next turn of the loop
