"""The official SDK's client before the real server: over standard input and output, and over HTTP."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent

MODES = ("legacy", "auto")  # with a handshake and a connection; each request on its own, where both sides speak it


class Told(NamedTuple):
    """What a tool answered."""

    text: str
    data: dict[str, Any]
    failed: bool

    @property
    def code(self) -> str:
        return str(self.data["error"]["code"])


class Agent:
    """A client with the tools in its hands."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, /, **arguments: Any) -> Told:
        answer = await self.client.call_tool(tool, arguments)
        [content] = answer.content
        assert isinstance(content, TextContent)
        assert "Traceback" not in content.text
        return Told(content.text, answer.structured_content, answer.is_error)


@asynccontextmanager
async def over_stdio(home: Path, *flags: str, mode: str = "legacy", cwd: Path | None = None, **env: str) -> AsyncIterator[Agent]:
    environment = {**os.environ, "HERDBOOK_HOME": str(home), **env}
    command = ["-m", "herdbook", "mcp", *flags]
    parameters = StdioServerParameters(command=sys.executable, args=command, env=environment, cwd=cwd)
    async with Client(stdio_client(parameters), mode=mode) as client:
        yield Agent(client)


@asynccontextmanager
async def over_http(url: str, *, key: str | None = None, mode: str = "legacy") -> AsyncIterator[Agent]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield Agent(client)


def run(work: Callable[[], Awaitable[None]]) -> None:
    """One test's work, which must end."""

    async def bounded() -> None:
        with anyio.fail_after(60):
            await work()

    anyio.run(bounded)
