"""A batch of work in one transaction: first in the hope that none fails, which needs no savepoints and does alike work at once.

What is refused before it changed anything needs no undoing. After any other failure everything is undone, and the batch is done
again with each member kept apart, which is for the engine to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Protocol

from herdbook.base.errors import Busy, DiskFull, HerdbookError, Unavailable
from herdbook.record.store.protocol import Transaction, Work, together_of


class Apart(Exception):
    """A member of a batch failed after it had changed something: the batch has to be done again, each member kept apart."""


class Hopeful(Transaction, Protocol):
    """A transaction that knows how it stands."""

    changed: bool  # since somebody set it to False

    @property
    def failed(self) -> bool:
        """Whether it is lost."""
        ...


def in_hope(works: Sequence[Work], tx: Hopeful) -> list[Any]:
    """What each came to, or its refusal. Raises Apart."""
    done: list[Any] = []
    for together, alike in groupby(works, key=together_of):
        members = list(alike)
        if together is None:
            done += [refused_or_done(tx, work) for work in members]
        else:
            result = refused_or_done(tx, partial(at_once, together, members))
            done += [result] * len(members) if isinstance(result, HerdbookError) else result
    return done


def each_by(one: Callable[[Any, Work], Any], works: Sequence[Work], tx: Transaction) -> list[Any]:
    return [one(tx, work) for work in works]


def at_once(together: Callable[[Transaction, Sequence[Work]], list[Any]], works: Sequence[Work], tx: Hopeful) -> list[Any]:
    done = together(tx, works)
    if tx.failed:  # over one of them
        raise Apart
    return done


def refused_or_done(tx: Hopeful, work: Callable[[Any], Any]) -> Any:
    tx.changed = False
    try:
        return work(tx)
    except HerdbookError as problem:
        if isinstance(problem, DiskFull | Busy) or (tx.failed and isinstance(problem, Unavailable)):
            raise  # of the whole batch
        if tx.failed or tx.changed:
            raise Apart from problem
        return problem
