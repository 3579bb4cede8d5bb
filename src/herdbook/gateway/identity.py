"""Who calls: each listener has a door, and a door turns a request into a box whose row in the record is live, or refuses.

A box's own socket says which box it is, and the box holds nothing. A box that no socket tells apart shows a pass, which the
record checks. Boxes whose provider has a gateway of its own come through that one, with its one key. The record is asked again
after a second, so a destroyed box is refused within one; where it cannot be asked, nobody is let in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from typing import Any, Final, Literal, Protocol

from herdbook.base import limits
from herdbook.base.claims import parted
from herdbook.base.clock import Clock
from herdbook.base.errors import Unauthorized
from herdbook.base.reach import ANY

ROW_SECONDS: Final = 1
ROWS_MAX: Final = 10_000
ASSERTING: Final = frozenset({"sprites"})  # providers whose gateway lets nothing but their boxes in
Headers = Sequence[tuple[bytes, bytes]]
Row = Mapping[str, Any]
Call = Callable[[str, dict[str, Any]], Mapping[str, Any]]  # a client's `call`: a verb and its fields


@dataclass(frozen=True, slots=True)
class Identity:
    """A live box, and how it was told."""

    box: str
    label: str
    via: Literal["socket", "token", "asserted"]
    connections: frozenset[str] | None = None  # what its token was made for; None is everything it is granted

    def covers(self, connection: str) -> bool:
        return self.connections is None or connection in self.connections


class Door(Protocol):
    """What a listener asks of those who come by it."""

    async def admit(self, headers: Headers, claimed: str | None) -> Identity:
        """The box that calls, where the address may claim one. Raises Unauthorized, or Unavailable where it cannot be told."""
        ...


class LiveBoxes:
    """What the record says of boxes, asked through a client, one question at a time, and remembered for a second."""

    def __init__(self, call: Call, clock: Clock) -> None:
        self.call, self.clock = call, clock
        self.told: dict[tuple[str, ...], tuple[int, Row]] = {}
        self.asker = ThreadPoolExecutor(1, thread_name_prefix="herdbook-gateway-boxes")

    async def row(self, box: str) -> Row | None:
        """The row of a box that is open and whose lease holds; None for any other."""
        return live(box, await self.ask("box_list", box=box))

    async def claimed(self, box: str, claim: str) -> Row | None:
        """The same, if the claim with this digest is that box's."""
        return live(box, await self.ask("box_list", box=box, claim=claim))

    async def checked(self, token: str) -> Row:
        """What a pass says, and whether it holds."""
        return await self.ask("box_check", token=token)

    async def ask(self, verb: str, **fields: str) -> Row:
        question = (verb, *fields.values())
        asked_at, answer = self.told.get(question, (None, {}))
        now = self.clock.now()
        if asked_at is None or not asked_at <= now < asked_at + ROW_SECONDS * 1_000_000:
            answer = await self.verb(verb, dict(fields))
            if len(self.told) >= ROWS_MAX:
                self.told.clear()
            self.told[question] = (now, answer)
        return answer

    async def verb(self, verb: str, fields: dict[str, Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self.asker, self.call, verb, fields)

    def close(self) -> None:
        self.asker.shutdown()


@dataclass(frozen=True, slots=True)
class SocketDoor:
    """Whoever is inside that box: its socket is bound into no other."""

    box: str
    boxes: LiveBoxes

    async def admit(self, headers: Headers, claimed: str | None) -> Identity:
        row = await self.boxes.row(self.box)
        if row is None or claimed is not None:
            raise Unauthorized("this box is closed in the record, or its lease ran out: it may call nothing any more")
        return Identity(self.box, str(row["label"]), "socket")


@dataclass(frozen=True, slots=True)
class PassDoor:
    """Whoever shows the pass of a box that lives: `Authorization: Bearer hbx_...`. It goes no further than here."""

    boxes: LiveBoxes
    connector: bytes | None = None  # the digest of the key that a provider's own gateway shows for its boxes

    async def admit(self, headers: Headers, claimed: str | None) -> Identity:
        token = shown(headers)
        if token is not None and self.connector and compare_digest(digest_of(token) or b"", self.connector):
            return await self.asserted(claimed)
        if token is None or claimed is not None:
            raise Unauthorized("only a box may call the gateway: call from inside one, by its socket or with its pass")
        said = await self.boxes.checked(token)
        row = await self.boxes.row(str(said["box"])) if said["valid"] else None
        if row is None:
            raise Unauthorized(str(said["why"] or "the box of this pass is gone: ask its host for a new box"))
        allowed = frozenset(said["connections"])
        return Identity(str(said["box"]), str(row["label"]), "token", None if ANY in allowed else allowed)

    async def asserted(self, claimed: str | None) -> Identity:
        """The provider has checked that one of its boxes calls; which, the box says itself, by an address only it was told."""
        box, claim = parted(claimed or "")
        row = await self.boxes.claimed(box, claim) if 0 < len(box) <= limits.ID_CHARS_MAX else None
        if row is None or row["provider"] not in ASSERTING:
            raise Unauthorized(
                "say which box calls, by /boxes/BOX~CLAIM before the address, as it stands in the box's HERDBOOK_URL: one that "
                "lives at the connector's provider"
            )
        return Identity(str(row["box"]), str(row["label"]), "asserted")


def live(box: str, answer: Row) -> Row | None:
    return next((row for row in answer["boxes"] if row["box"] == box and row["live"]), None)


def digest_of(key: str | None) -> bytes | None:
    return None if key is None else sha256(key.encode()).digest()


def shown(headers: Headers) -> str | None:
    """The pass in the one header that may carry it."""
    values = [value for name, value in headers if name == b"authorization"]
    scheme, _, token = values[0].decode("latin-1").partition(" ") if len(values) == 1 else ("", "", "")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None
