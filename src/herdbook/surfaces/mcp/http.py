"""The tools at /mcp of a server: streamable HTTP, behind the same door, limits and writer as every other request.

The server's door has said who calls before a request comes here. The SDK keeps connections apart; each has one run of its own,
which ends with it: when the client ends it, or when nobody has used it for half an hour.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from herdbook.base.errors import HerdbookError
from herdbook.service.callers import Caller
from herdbook.service.verbs import VERBS
from herdbook.surfaces.mcp.connections import Connections

CALLER: Final = "herdbook.caller"  # where the door has put who calls, in the request's scope
CONNECTION: Final = b"mcp-session-id"
PROTOCOL: Final = b"mcp-protocol-version"
Perform = Callable[[Caller, str, dict[str, Any]], Awaitable[dict[str, Any]]]
Asgi = Callable[..., Awaitable[None]]


class McpOverHttp:
    """An ASGI application that begins with its first request: the SDK takes a second to import, and most servers need none."""

    def __init__(self, perform: Perform, *, connections: Connections | None = None) -> None:
        self.perform = perform
        self.connections = connections or Connections(time.monotonic)
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
        await handle(scope, receive, self.watched(send, caller, named=named, ends=scope["method"] == "DELETE"))

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


def run_of(connection: str) -> str:
    return f"mcp-{connection}"


def opens(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request would begin a connection: the newest versions of the protocol have none."""
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

    version = headers.get(PROTOCOL)
    return CONNECTION not in headers and (version is None or version.decode("latin-1") in HANDSHAKE_PROTOCOL_VERSIONS)
