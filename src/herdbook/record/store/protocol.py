"""What a store promises, whichever engine is under it.

Reads see one committed state; a batch of writes becomes durable together, each acknowledged only after the commit; exposures are
noted without waiting for a disk or a lock and are durable with the next acknowledged write. SQL stays behind query names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

Row = tuple[Any, ...]
Params = Mapping[str, Any] | Sequence[Any]
T = TypeVar("T")
SERVER = 0  # the tenant that is none: it sees which tenants there are, and nothing of theirs


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
    """Asks by query name. A query about a tenant's rows names the tenant among its parameters, and sees no other's."""

    def rows(self, query: str, params: Params) -> list[Row]:
        """All rows."""
        ...

    def row(self, query: str, params: Params) -> Row | None:
        """The first row, or None."""
        ...

    def rows_of(self, queries: Sequence[str], params: Params) -> list[list[Row]]:
        """All rows of several queries with the same parameters, asked together."""
        ...


class Transaction(Reader, Protocol):
    """One durable unit of work. No other writes for its tenant meanwhile, so what it has looked up stays as it was."""

    def each(self, query: str, asked: Sequence[Sequence[Any]]) -> list[Row]:
        """The one row of the same query for each of these parameters, asked together."""
        ...

    def run(self, query: str, params: Params) -> None:
        """Change something."""
        ...

    def many(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        """The same change for many rows."""
        ...

    def next_id(self) -> int:
        """A fresh row id."""
        ...

    def acting_for(self, tenant: int) -> AbstractContextManager[Transaction]:
        """The same transaction with another tenant's rows before it: what the operator of a server does, and nobody else."""
        ...


Work = Callable[[Transaction], Any]
# Some work knows how to do several of its kind at once, as its attribute `together`: what each came to, or its refusal, which
# has changed nothing.
Together = Callable[[Transaction, Sequence[Any]], list[Any]]


def together_of(work: Work) -> Together | None:
    found: Together | None = getattr(work, "together", None)
    return found


class Planned(NamedTuple):
    """Work for a transaction, and the tenant whose rows it may see and write."""

    tenant: int
    work: Work


class Store(Reader, Protocol):
    """An engine with the record's schema in it."""

    engine: str
    schema: int
    lent_seconds: float  # how old `lent_rows` may be

    def write(self, work: Callable[[Transaction], T], *, tenant: int | None = None, wait_seconds: float | None = None) -> T:
        """Run `work` in a durable transaction of one tenant, or of none for facts about the record itself; raises what it raises,
        with nothing stored. Waits its turn, or raises Busy after so long. An engine may run it again after a lost connection."""
        ...

    def write_batch(self, plans: Sequence[Planned]) -> list[Any]:
        """Run these durably together, each undone alone if it fails: results, or the HerdbookError, in order."""
        ...

    def look(self, work: Callable[[Reader], T], *, tenant: int) -> T:
        """Read several things of one committed state, without what waits to be folded: it needs neither a turn nor a disk."""
        ...

    def kept_rows(self, query: str, params: Mapping[str, Any]) -> list[Row]:
        """All rows, which may be those of the last time if nobody has committed anything since. Not to be changed."""
        ...

    def lent_rows(self, query: str, params: Mapping[str, Any]) -> list[Row]:
        """All rows as they are, or were at most `lent_seconds` ago: whoever changes them tells nobody before so long has passed.
        Not to be changed."""
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

    def check(self, tenant: int) -> list[str]:
        """What the engine finds wrong with itself, and with this tenant's rows; empty when all is well."""
        ...

    def facts(self) -> dict[str, Any]:
        """What a doctor wants to know of the engine: version, durability setting, journal."""
        ...
