"""What happened in a record, in the order of its commits: the feed that streams, indexes and exports follow.

A tenant's row ids grow in the order of its commits, on either engine: one writer at a time, and an id is taken in its turn. So
what has an id above the last one seen is all that was committed since, and nothing is passed over.
"""

from __future__ import annotations

from typing import Any

from herdbook.base import clock
from herdbook.base.ids import row_id
from herdbook.base.reach import is_below
from herdbook.record.record import Record
from herdbook.record.sessions import visible
from herdbook.record.store.protocol import Row
from herdbook.record.types import Stamp

LATEST = "latest"
SCANNED_AT_ONCE = 1_000


def since(record: Record, stamp: Stamp, after: int, *, under: str | None, limit: int) -> dict[str, Any]:
    """Changes within reach after a place in the feed. Where none of them is, the place stays: what is out of reach never was."""
    found: list[dict[str, Any]] = []
    at = after
    while len(found) < limit:
        rows = record.store.rows("changes", {"tenant": stamp.tenant, "after": at, "limit": SCANNED_AT_ONCE})
        found += [view(row) for row in rows if shown(record, stamp, row, under)]
        if len(rows) < SCANNED_AT_ONCE:
            break
        at = rows[-1][0]
    found = found[:limit]
    return {"changes": found, "next": found[-1]["id"] if found else str(after)}


def latest(record: Record, tenant: int) -> int:
    return int(record.store.kept_rows("latest_change", {"tenant": tenant})[0][0] or 0)


def shown(record: Record, stamp: Stamp, row: Row, under: str | None) -> bool:
    """A version by its path; an outcome as its run may be looked back at."""
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
