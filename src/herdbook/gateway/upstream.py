"""Connections to the services behind the gateway: one pool for each reach, no proxies, no redirects, no cookies, no decoding."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import httpcore2

from herdbook.base import limits
from herdbook.gateway.egress import GuardedBackend, Reach, Resolve, look_up

TIMEOUTS: Final = {
    "connect": float(limits.GATEWAY_CONNECT_SECONDS_MAX),
    "read": float(limits.GATEWAY_SILENCE_SECONDS_MAX),
    "write": float(limits.BODY_SECONDS_MAX),
    "pool": float(limits.GATEWAY_CONNECT_SECONDS_MAX),
}
CONNECTIONS_MAX: Final = 200
IDLE_SECONDS: Final = 30.0  # less than most services keep an idle connection, so that ours is rarely the one found closed


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

    async def close(self) -> None:
        for pool in self.pools.values():
            await pool.aclose()
