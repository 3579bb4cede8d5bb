"""What happened in a record, in the order of its commits: the feed that streams, indexes and exports follow.

A tenant's row ids grow in the order of its commits, on either engine: one writer at a time, and an id is taken in its turn. So
what has an id above the last one seen is all that was committed since, and nothing is passed over.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import chain, islice
from operator import itemgetter
from typing import Any

from herdbook.base import clock
from herdbook.base.ids import row_id
from herdbook.base.reach import Reach, is_below, touch
from herdbook.record.record import Record, under_path
from herdbook.record.sessions import visible
from herdbook.record.store.protocol import Row
from herdbook.record.types import Stamp

LATEST = "latest"
SCANNED_AT_ONCE = 1_000


def since(record: Record, stamp: Stamp, after: int, *, under: str | None, limit: int) -> dict[str, Any]:
    """Changes within reach after a place in the feed. Where none of them is, the place stays: what is out of reach never was."""
    rows = islice((row for row in walked(record, stamp, after, under) if shown(record, stamp, row, under)), limit)
    found = [view(row) for row in rows]
    return {"changes": found, "next": found[-1]["id"] if found else str(after)}


def walked(record: Record, stamp: Stamp, after: int, under: str | None) -> Iterator[Row]:
    """Everything, where little has happened since; else what is below the paths that are wanted, whatever happened elsewhere."""
    first = record.store.rows("changes", {"tenant": stamp.tenant, "after": after, "limit": SCANNED_AT_ONCE})
    if len(first) < SCANNED_AT_ONCE:
        return iter(first)
    starts = beginnings(record.reach, under)
    if "" in starts:
        return chain(first, pages(record, "changes", stamp, first[-1][0]))
    walks = [pages(record, "changes_below", stamp, after, **under_path(start)) for start in starts]
    if under is None:
        walks.append(pages(record, "changes_of_own", stamp, after, identity=stamp.identity))
    return heapq.merge(*walks, key=itemgetter(0))


def beginnings(reach: Reach, under: str | None) -> list[str]:
    """The paths below which everything lies that is wanted and within reach; the empty text is all of them."""
    roots = [""] if reach.everything else reach.roots()
    return roots if under is None else sorted({under if is_below(under, root) else root for root in roots if touch(under, root)})


def pages(record: Record, query: str, stamp: Stamp, after: int, **wanted: Any) -> Iterator[Row]:
    while True:
        asked = {"tenant": stamp.tenant, "after": after, "limit": SCANNED_AT_ONCE, **wanted}
        rows = record.store.rows(query, asked)
        yield from rows
        if len(rows) < SCANNED_AT_ONCE:
            return
        after = rows[-1][0]


def latest(record: Record, tenant: int) -> int:
    return int(record.store.kept_rows("latest_change", {"tenant": tenant})[0][0] or 0)


def shown(record: Record, stamp: Stamp, row: Row, under: str | None) -> bool:
    """A version by its path; what is about a run as that may be looked back at."""
    path = row[2]
    if under is not None and (path is None or not is_below(path, under)):
        return False
    if row[1] == "version":
        return record.reach.covers(path)
    if record.reach.everything and stamp.box is None:
        return True
    session = record.session(stamp.tenant, row[8])
    return session is not None and visible(record, stamp, session)


def view(row: Row) -> dict[str, Any]:
    number, what, path, name, version, kind, author, identity, session, box, at = row
    named = {"key": name, "version": version, "ref": None} if what == "version" else {"key": None, "version": None, "ref": name}
    told = {"author": author, "identity": identity, "session": session, "box": box, "at": clock.iso(at)}
    return {"id": str(number), "what": what, "entity": path, **named, "kind": kind, **told}


def place(cursor: str | None) -> int:
    """A place in the feed, out of an `id` or a `next`."""
    if cursor is None:
        return 0
    return row_id(cursor, otherwise="`after` is the `next` of an answer, the `id` of a change, or `latest`")
