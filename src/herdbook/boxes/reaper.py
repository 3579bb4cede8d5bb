"""Destroys what nobody keeps: boxes whose lease ran out, whose owner died, or that no open row knows.

Safe to run at any time, twice at once, and on any machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from herdbook.base import limits
from herdbook.base.errors import HerdbookError
from herdbook.boxes import owner
from herdbook.boxes.book import Book
from herdbook.boxes.provider import Provider


@dataclass(frozen=True, slots=True)
class Reaped:
    """One box that had to go; `problem` says why it is still there."""

    box: str
    why: str
    problem: str | None = None


def reap(book: Book, provider: Provider, label: str) -> list[Reaped]:
    """One pass over a label. A box that cannot be removed keeps its open row, and the next pass tries again."""
    # Boxes first, rows second: a row is written before its box, so a box seen here without a row never had one.
    present = [box.id for box in provider.list(label)]
    rows = book.box_list(label=label, live=True, limit=limits.PAGE_MAX)["boxes"]
    ours = {row["box"]: why_reap(row) for row in rows if row["provider"] == provider.name}
    due = {box: why for box, why in ours.items() if why}
    reaped = [one(book, provider, box, why, has_row=True) for box, why in due.items()]
    if len(rows) < limits.PAGE_MAX:  # else the row of a box may be on a page that was not seen
        orphans = sorted({box for box in present if box not in ours})
        reaped += [one(book, provider, box, "no open row knows it", has_row=False) for box in orphans]
    return reaped


def why_reap(row: Mapping[str, Any]) -> str:
    """Why nobody keeps this box; empty if somebody does."""
    # The record judges leases, by its own clock; who is dead on this machine is seen here.
    if not row["live"]:
        return "its lease ran out"
    if owner.is_dead(row["owner"]):
        return "its owner is dead"
    return ""


def one(book: Book, provider: Provider, box: str, why: str, *, has_row: bool) -> Reaped:
    try:
        provider.destroy(box)
        if has_row:
            book.box_close(box=box, detail=f"reaped: {why}")
    except (HerdbookError, OSError) as problem:  # because one box that resists must not keep the others alive
        return Reaped(box, why, str(problem))
    return Reaped(box, why)
