"""Connections to the services behind the gateway: one pool for each reach, no proxies, no redirects, no cookies, no decoding."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

import httpcore2

from herdbook.base import limits
from herdbook.gateway.credentials.minting import ANSWER_BYTES_MAX, MintFailed
from herdbook.gateway.egress import GuardedBackend, Reach, Resolve, look_up

TIMEOUTS: Final = {
    "connect": float(limits.GATEWAY_CONNECT_SECONDS_MAX),
    "read": float(limits.GATEWAY_SILENCE_SECONDS_MAX),
    "write": float(limits.BODY_SECONDS_MAX),
    "pool": float(limits.GATEWAY_CONNECT_SECONDS_MAX),
}
CONNECTIONS_MAX: Final = 200
IDLE_SECONDS: Final = 30.0  # less than most services keep an idle connection, so that ours is rarely the one found closed

FAILURES: Final = (
    httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.UnsupportedProtocol,
)  # fmt: skip


class Upstream:
    """Asks, on one event loop."""

    def __init__(self, *, resolve: Resolve = look_up, timeouts: dict[str, float] | None = None) -> None:
        self.resolve, self.timeouts = resolve, timeouts or TIMEOUTS
        self.pools: dict[Reach, httpcore2.AsyncConnectionPool] = {}

    def pool(self, reach: Reach) -> httpcore2.AsyncConnectionPool:
        found = self.pools.get(reach)
        if found is None:
            found = self.pools[reach] = httpcore2.AsyncConnectionPool(
                max_connections=CONNECTIONS_MAX,
                keepalive_expiry=IDLE_SECONDS,
                network_backend=GuardedBackend(reach, resolve=self.resolve),
            )
        return found

    @asynccontextmanager
    async def answer(self, request: httpcore2.Request, *, reach: Reach) -> AsyncIterator[httpcore2.Response]:
        """The head of an answer, its body still to come; the connection is given back, or cut, at the end."""
        request.extensions = {**request.extensions, "timeout": self.timeouts}
        response = await self.pool(reach).handle_async_request(request)
        try:
            yield response
        finally:
            await response.aclose()

    async def ask(self, method: str, url: str, *, headers: dict[str, str], body: bytes, reach: Reach) -> tuple[int, bytes]:
        """One small request of the gateway's own. Raises MintFailed if nobody answers it, or not in a few words."""
        sent = [("host", host_of(url)), ("accept-encoding", "identity"), ("content-length", str(len(body))), *headers.items()]
        request = httpcore2.Request(method, url, headers=sent, content=body)
        data = b""
        try:
            async with self.answer(request, reach=reach) as response:
                async for chunk in response.aiter_stream():
                    data += chunk
                    if len(data) > ANSWER_BYTES_MAX:
                        raise MintFailed(f"{host_of(url)} answered more than a token: check the connection's credential")
                return response.status, data
        except FAILURES as problem:
            raise MintFailed(f"{host_of(url)} cannot be asked for a token: try again later") from problem

    async def close(self) -> None:
        for pool in self.pools.values():
            await pool.aclose()


def host_of(url: str) -> str:
    return urlsplit(url).netloc
