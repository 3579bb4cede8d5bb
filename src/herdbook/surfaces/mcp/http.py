"""The tools at /mcp of a server: streamable HTTP, behind the same door, limits and writer as every other request.

The server's door has said who calls before a request comes here. The SDK keeps connections apart; each has one run of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from herdbook.service.callers import Caller
from herdbook.service.verbs import VERBS

CALLER: Final = "herdbook.caller"  # where the door has put who calls, in the request's scope
Perform = Callable[[Caller, str, dict[str, Any]], Awaitable[dict[str, Any]]]
Asgi = Callable[..., Awaitable[None]]


class McpOverHttp:
    """An ASGI application that begins with its first request: the SDK takes a second to import, and most servers need none."""

    def __init__(self, perform: Perform) -> None:
        self.perform = perform
        self.stop = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self.ready: asyncio.Future[Asgi] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self.ready is None:
            self.ready = asyncio.get_running_loop().create_future()
            self.task = asyncio.create_task(self.live(self.ready))
        handle = await asyncio.shield(self.ready)
        await handle(scope, receive, send)

    async def live(self, ready: asyncio.Future[Asgi]) -> None:
        """Keep the SDK's connections until the server stops."""
        try:
            manager = await asyncio.to_thread(self.manager)
            async with manager.run():
                ready.set_result(manager.handle_request)
                await self.stop.wait()
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
            return f"mcp-{connection}" if connection else None

        server, _ = build(Options(), open_call=open_call, connected=connected)
        return StreamableHTTPSessionManager(server, json_response=True)

    async def close(self) -> None:
        self.stop.set()
        if self.task is not None:
            await self.task
