"""Tokens that are made when they are needed: one at a time, kept until shortly before they expire, never shown.

Asking for them goes through the same guard as any call. What the other side answers to a failed attempt is not repeated, since it
may hold what was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import msgspec

from herdbook.base.clock import Clock
from herdbook.base.errors import Unavailable
from herdbook.gateway.credentials.attached import Attached
from herdbook.gateway.egress import Reach

ANSWER_BYTES_MAX: Final = 64 * 1024
EARLY_SECONDS: Final = 120  # a token that expires on the way would fail a call
AGAIN_SECONDS: Final = 30  # a service that refuses a fresh token will refuse the next one, too


class MintFailed(Unavailable):
    """The credential of this connection cannot be made now: try again later, or have its settings checked."""

    code, status = "mint_failed", 502


class Ask(Protocol):
    """One request of the gateway's own, over the guarded way out."""

    async def __call__(
        self, method: str, url: str, *, headers: dict[str, str], body: bytes, reach: Reach
    ) -> tuple[int, bytes]: ...


@dataclass(frozen=True, slots=True)
class Tools:
    """What minting needs of the gateway."""

    ask: Ask
    verb: Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]  # a verb of the record
    clock: Clock
    minted: Callable[[str, int], None]  # writes down for which box's call, and until when it is good


@dataclass(frozen=True, slots=True)
class Token:
    """What was minted, and until when it is good: microseconds since 1970."""

    text: str = field(repr=False)
    expires_at: int


Mint = Callable[[], Awaitable[Token]]


class Minter:
    """A bearer token from `mint`, one for all calls until it is about to expire."""

    def __init__(self, mint: Mint, tools: Tools) -> None:
        self.mint, self.clock, self.minted = mint, tools.clock, tools.minted
        self.token: Token | None = None
        self.minted_at = 0
        self.lock = asyncio.Lock()

    async def attach(self, box: str) -> Attached:
        async with self.lock:
            now = self.clock.now()
            if self.token is None or now >= self.token.expires_at - EARLY_SECONDS * 1_000_000:
                self.token, self.minted_at = await self.mint(), now
                self.minted(box, self.token.expires_at)
        return bearer(self.token.text)

    def refused(self) -> None:
        if self.clock.now() - self.minted_at > AGAIN_SECONDS * 1_000_000:
            self.token = None


def bearer(text: str) -> Attached:
    return Attached(headers=((b"authorization", b"Bearer " + text.encode()),), secrets=(text,))


async def asked_json(
    tools: Tools, method: str, url: str, *, what: str, headers: dict[str, str], body: bytes, reach: Reach, expected: int = 200
) -> dict[str, Any]:
    """The object that the other side answers. Raises MintFailed, saying who answered what status."""
    status, data = await tools.ask(method, url, headers=headers, body=body, reach=reach)
    if status != expected:
        raise MintFailed(f"{what} answered {status} to the request for a token: check the connection's credential")
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.MsgspecError as problem:
        raise MintFailed(f"{what} answered something else than a token: check the connection's credential") from problem


def token_of(found: dict[str, Any], name: str, *, what: str) -> str:
    """The token in an answer, in a form that can travel."""
    text = found.get(name)
    if not isinstance(text, str) or not 8 <= len(text) <= 16_384 or not text.isascii() or not text.isprintable() or " " in text:
        raise MintFailed(f"{what} answered something else than a token: check the connection's credential")
    return text
