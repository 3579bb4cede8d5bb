"""What a store promises, whichever engine is under it.

Reads see one committed state; a batch of writes becomes durable together, each acknowledged only after the commit; exposures are
noted without waiting for a disk or a lock and are durable with the next acknowledged write. SQL stays behind query names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

Row = tuple[Any, ...]
Params = Mapping[str, Any] | Sequence[Any]
T = TypeVar("T")


class Exposure(NamedTuple):
    """One version shown to a session, or withheld from it with a known probability."""

    tenant: int
    session: str
    id: int
    version: int
    rank: int
    how: str  # briefing, read or search
    served: int
    probability: float  # of being served
    at: int
    serving: int | None = None  # the briefing or search it belongs to
    features: str | None = None  # a JSON list of numbers, as the ranking saw them


class Serving(NamedTuple):
    """One briefing or search, as its exposures have it in common."""

    tenant: int
    session: str
    id: int
    asked: str | None  # entity path; None for a search of everything
    how: str  # briefing or search
    arm: str  # on, holdback or control
    policy: str  # the ranking rule, its ranker and the form of the features
    candidates: int
    at: int


class Reader(Protocol):
    """Asks by query name."""

    def rows(self, query: str, params: Params) -> list[Row]:
        """All rows."""
        ...

    def row(self, query: str, params: Params) -> Row | None:
        """The first row, or None."""
        ...


class Transaction(Reader, Protocol):
    """One durable unit of work, alone on the record."""

    def run(self, query: str, params: Params) -> None:
        """Change something."""
        ...

    def many(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        """The same change for many rows."""
        ...

    def next_id(self) -> int:
        """A fresh row id."""
        ...


Work = Callable[[Transaction], Any]


class Store(Reader, Protocol):
    """An engine with the record's schema in it."""

    engine: str
    schema: int

    def write(self, work: Callable[[Transaction], T], *, wait_seconds: float | None = None) -> T:
        """Run `work` in a durable transaction; raises what it raises, with nothing stored. Waits its turn, or raises Busy after
        so long."""
        ...

    def write_batch(self, works: Sequence[Work]) -> list[Any]:
        """Run these in one durable transaction, each undone alone if it fails: results, or the HerdbookError, in order."""
        ...

    def look(self, work: Callable[[Reader], T]) -> T:
        """Read several things of one committed state, without what waits to be folded: it needs neither a turn nor a disk."""
        ...

    def kept_rows(self, query: str, params: Mapping[str, Any]) -> list[Row]:
        """All rows, which may be those of the last time if nobody has committed anything since. Not to be changed."""
        ...

    def note_reads(self, exposures: Sequence[Exposure], serving: Serving | None = None) -> None:
        """Keep what was shown, and the briefing or search that showed it: visible to every process at once, durable with the next
        write, never waiting for either."""
        ...

    def next_id(self) -> int:
        """A fresh row id."""
        ...

    def next_read_id(self) -> int:
        """A fresh id for an exposure, which no other process takes even after the clock was set back."""
        ...

    def close(self) -> None:
        """Let go of files and connections; everything acknowledged is already safe."""
        ...

    def check(self) -> list[str]:
        """The engine's own integrity check; empty when all is well."""
        ...

    def facts(self) -> dict[str, Any]:
        """What a doctor wants to know of the engine: version, durability setting, journal."""
        ...
