"""`python -m bench.upstream_clients`: what a small GET over a kept connection costs with each HTTP client, against bare streams.

For the choice of what the gateway asks services with. A client that is not installed is left out.
"""

from __future__ import annotations

import asyncio
import importlib
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

CALLS, PASSES = 300, 9
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
Get = Callable[[], Awaitable[bytes]]


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(asyncio.CancelledError, asyncio.IncompleteReadError):  # at the end
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(ANSWER)
            await writer.drain()


async def bare(port: int) -> Get:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def get() -> bytes:
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        return await reader.readexactly(2)

    return get


async def core(module: Any, port: int) -> Get:
    pool = module.AsyncConnectionPool()

    async def get() -> bytes:
        response = await pool.request("GET", f"http://127.0.0.1:{port}/")
        return bytes(response.content)

    return get


async def whole(module: Any, port: int) -> Get:
    client = module.AsyncClient(trust_env=False)

    async def get() -> bytes:
        return bytes((await client.get(f"http://127.0.0.1:{port}/")).content)

    return get


async def other(module: Any, port: int) -> Get:
    session = module.ClientSession()

    async def get() -> bytes:
        async with session.get(f"http://127.0.0.1:{port}/") as response:
            return bytes(await response.read())

    return get


CLIENTS = {"httpcore2": core, "httpcore": core, "httpx2": whole, "httpx": whole, "aiohttp": other}


async def microseconds(get: Get) -> float:
    began = time.perf_counter()
    for _ in range(CALLS):
        assert await get() == b"ok"
    return (time.perf_counter() - began) / CALLS * 1e6


async def measure() -> dict[str, list[float]]:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    sides: dict[str, Get] = {"bare": await bare(port)}
    for name, make in CLIENTS.items():
        try:
            sides[name] = await make(importlib.import_module(name), port)
        except ImportError:
            print(f"{name} is not installed", file=sys.stderr)
    return {name: [await microseconds(get) for _ in range(PASSES)] for name, get in sides.items()}


def main() -> None:
    times = asyncio.run(measure())
    bare_us = statistics.median(times["bare"])
    for name, found in times.items():
        print(f"{name:10} {statistics.median(found):8.0f} us  {statistics.median(found) / bare_us:6.1f} x bare")


if __name__ == "__main__":
    main()
