"""The tools at /mcp of a server: streamable HTTP, behind the same door, limits and writer as every other request.

The server's door has said who calls before a request comes here. The SDK keeps connections apart; each has one run of its own,
which ends with it: when the client ends it, or when nobody has used it for half an hour. Of two requests with one id at a time
the second is refused: the SDK would answer one of them and leave the other waiting for ever.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from herdbook.base.errors import HerdbookError, RequestConflict
from herdbook.service.callers import Caller
from herdbook.service.verbs import VERBS
from herdbook.surfaces.mcp.connections import Connections

CALLER: Final = "herdbook.caller"  # where the door has put who calls, in the request's scope
CONNECTION: Final = b"mcp-session-id"
PROTOCOL: Final = b"mcp-protocol-version"
Perform = Callable[[Caller, str, dict[str, Any]], Awaitable[dict[str, Any]]]
Asgi = Callable[..., Awaitable[None]]
Receive = Callable[[], Awaitable[Any]]


class McpOverHttp:
    """An ASGI application that begins with its first request: the SDK takes a second to import, and most servers need none."""

    def __init__(self, perform: Perform, *, connections: Connections | None = None) -> None:
        self.perform = perform
        self.connections = connections or Connections(time.monotonic)
        self.under_way: set[tuple[str, str]] = set()  # a connection, and the id of a request on it
        self.ending: set[asyncio.Task[None]] = set()
        self.stop = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self.ready: asyncio.Future[Asgi] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self.ready is None:
            self.ready = asyncio.get_running_loop().create_future()
            self.task = asyncio.create_task(self.live(self.ready))
        handle = await asyncio.shield(self.ready)
        headers, caller = dict(scope["headers"]), scope[CALLER]
        named = headers.get(CONNECTION, b"").decode("latin-1")
        self.end_idle()
        if named:
            self.connections.used(named, caller)
        elif opens(headers):
            self.connections.admit(caller)
        send = self.watched(send, caller, named=named, ends=scope["method"] == "DELETE")
        if not named or scope["method"] != "POST":
            await handle(scope, receive, send)
        elif (body := await whole(receive)) is not None:
            with self.only(named, id_of(body)):
                await handle(scope, again(body, receive), send)

    @contextmanager
    def only(self, connection: str, request_id: str | None) -> Iterator[None]:
        """While this request is being answered no other with its id is taken on this connection."""
        if request_id is None:
            yield
            return
        if (connection, request_id) in self.under_way:
            raise RequestConflict(
                f"a request with the id {request_id[:40]} is being answered on this connection: send another id"
            )
        self.under_way.add((connection, request_id))
        try:
            yield
        finally:
            self.under_way.discard((connection, request_id))

    def watched(self, send: Asgi, caller: Caller, *, named: str, ends: bool) -> Asgi:
        """Every answer passes; what it says of connections is kept."""

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                fresh = dict(message["headers"]).get(CONNECTION, b"").decode("latin-1")
                if fresh and not named and message["status"] < 400:
                    self.connections.opened(fresh, caller)
                elif ends and message["status"] < 300:
                    self.end(named)
            await send(message)

        return sent

    def end_idle(self) -> None:
        for name in self.connections.idle():
            self.end(name)

    async def end_idle_on_time(self) -> None:
        """Also where nobody asks for anything any more: a run ends when its agent is gone, not when the next one comes."""
        while True:
            await asyncio.sleep(self.connections.next_seconds())
            self.end_idle()

    def end(self, name: str) -> None:
        """A connection is gone, and its run with it."""
        caller = self.connections.closed(name)
        if caller is None:
            return

        async def over() -> None:
            with suppress(HerdbookError):  # it never began a run, or its key is no longer one
                await self.perform(caller, "end_session", {"session": run_of(name)})

        task = asyncio.create_task(over())
        self.ending.add(task)
        task.add_done_callback(self.ending.discard)

    async def live(self, ready: asyncio.Future[Asgi]) -> None:
        """Keep the SDK's connections until the server stops."""
        try:
            manager = await asyncio.to_thread(self.manager)
            async with manager.run():
                ready.set_result(manager.handle_request)
                idle = asyncio.create_task(self.end_idle_on_time())
                await self.stop.wait()
                idle.cancel()
        except Exception as problem:  # because whoever waits for it is owed the reason
            if ready.done():
                raise
            ready.set_exception(problem)
            self.ready = None

    def manager(self) -> Any:
        from herdbook.surfaces.mcp.command import needed

        needed()
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from herdbook.surfaces.mcp.runs import Asker
        from herdbook.surfaces.mcp.server import Context, Options, build

        def open_call(context: Context) -> Asker:
            assert context.request is not None, "over HTTP each call has its request"
            caller: Caller = context.request.scope[CALLER]
            may = frozenset(
                verb.name
                for verb in VERBS.values()
                if verb.scope in caller.scopes and (caller.verbs is None or verb.name in caller.verbs)
            )
            return Asker(lambda verb, fields: self.perform(caller, verb, fields), may, caller.stamp)

        def connected(context: Context) -> str | None:
            assert context.request is not None, "over HTTP each call has its request"
            connection = context.request.headers.get("mcp-session-id")
            return run_of(connection) if connection else None

        server, _ = build(Options(), open_call=open_call, connected=connected)
        idle = self.connections.idle_seconds
        return StreamableHTTPSessionManager(server, json_response=True, session_idle_timeout=idle)

    async def close(self) -> None:
        for name in list(self.connections.held):
            self.end(name)
        await asyncio.gather(*self.ending)
        self.stop.set()
        if self.task is not None:
            await self.task


async def whole(receive: Receive) -> bytes | None:
    """The body of a request, whose size the server's edge bounds; None where the client hung up over it."""
    pieces = []
    while (message := await receive())["type"] == "http.request":
        pieces.append(bytes(message.get("body", b"")))
        if not message.get("more_body"):
            return b"".join(pieces)
    return None


def again(body: bytes, receive: Receive) -> Receive:
    """What hands out a body that was read already, and then whatever comes."""
    left = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Any:
        return left.pop() if left else await receive()

    return received


def id_of(body: bytes) -> str | None:
    """The id that a request has, as the SDK tells them apart; None for what has none, or is no JSON: the SDK says so."""
    try:
        found = json.loads(body, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    given = found.get("id") if isinstance(found, dict) else None
    return given if isinstance(given, str) else None


def run_of(connection: str) -> str:
    return f"mcp-{connection}"


def opens(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request would begin a connection: the newest versions of the protocol have none."""
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

    version = headers.get(PROTOCOL)
    return CONNECTION not in headers and (version is None or version.decode("latin-1") in HANDSHAKE_PROTOCOL_VERSIONS)
