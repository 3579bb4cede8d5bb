"""How runs ended, the newest first: what somebody looks for who comes back to a record, and does not know a ref yet.

A page is bounded by what it looks through as well as by what it shows: where few runs are of the type that is wanted, its `next`
goes on from there. What it costs depends on the path that is asked about, not on the rest of the record.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import islice
from operator import itemgetter
from typing import Any

from herdbook.base import clock
from herdbook.base.ids import ROW_ID_MAX, row_id
from herdbook.base.reach import is_below
from herdbook.record.changes import beginnings
from herdbook.record.record import Record, under_path
from herdbook.record.sessions import visible
from herdbook.record.store.protocol import Row
from herdbook.record.types import Stamp

LOOKED_THROUGH_MAX = 5_000
AT_ONCE = 500


def outcomes(record: Record, stamp: Stamp, *, before: int, under: str | None, kind: str | None, limit: int) -> dict[str, Any]:
    """Outcomes of runs that may be looked back at, from before a place. `next` is None once there are no more."""
    found: list[Row] = []
    place, looked = before, 0
    rows = (
        row for row in walked(record, stamp, before, under) if seen(record, stamp, row)
    )  # no place tells of what is out of reach
    for row in islice(rows, LOOKED_THROUGH_MAX):
        place, looked = row[0], looked + 1
        if kind is None or row[6] == kind:
            found.append(row)
            if len(found) == limit:
                break
    more = len(found) == limit or looked == LOOKED_THROUGH_MAX
    return {"outcomes": [view(row) for row in found], "next": str(place) if more else None}


def walked(record: Record, stamp: Stamp, before: int, under: str | None) -> Iterator[Row]:
    if stamp.box is not None:  # it sees its own only, however many others there are at the path
        own = pages(record, "newest_outcomes_of_box", stamp, before, box=stamp.box)
        return own if under is None else (row for row in own if row[3] is not None and is_below(row[3], under))
    starts = beginnings(record.reach, under)
    if "" in starts:
        return pages(record, "newest_outcomes", stamp, before)
    walks = [pages(record, "newest_outcomes_below", stamp, before, **under_path(start)) for start in starts]
    if under is None:
        walks.append(pages(record, "newest_outcomes_of_own", stamp, before, identity=stamp.identity))
    return heapq.merge(*walks, key=itemgetter(0), reverse=True)


def pages(record: Record, query: str, stamp: Stamp, before: int, **wanted: Any) -> Iterator[Row]:
    while True:
        rows = record.store.rows(query, {"tenant": stamp.tenant, "before": before, "limit": AT_ONCE, **wanted})
        yield from rows
        if len(rows) < AT_ONCE:
            return
        before = rows[-1][0]


def seen(record: Record, stamp: Stamp, row: Row) -> bool:
    if record.reach.everything and stamp.box is None:
        return True
    session = record.session(stamp.tenant, row[2])
    return session is not None and visible(record, stamp, session)


def view(row: Row) -> dict[str, Any]:
    _, ref, session, entity, task, kind, effective, agent, identity, box, attested, at = row
    named = {"ref": ref, "session": session, "entity": entity, "task": task, "type": kind, "effective_type": effective}
    told = {"agent": agent, "identity": identity, "box": box, "attested": bool(attested), "at": clock.iso(at)}
    return named | told


def place(cursor: str | None) -> int:
    """A place among the outcomes, out of the `next` of an answer."""
    if cursor is None:
        return ROW_ID_MAX
    return row_id(cursor, otherwise="`after` is the `next` of the page before")
