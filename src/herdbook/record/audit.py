"""Who did what, when, and what came of it: rows that are only added, each sealed over itself and the row before it in its chain.

A chain belongs to one process, so that servers over one record never wait for each other over it. Rows name paths, keys, runs and
boxes; never a value, a text or a secret. A row that was changed, slipped in or taken out shows; a chain that was taken out
whole, or its end, shows only to a witness elsewhere.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from herdbook.base import clock
from herdbook.record.record import Record
from herdbook.record.store.protocol import Reader, Row, Transaction

CHECKED_AT_ONCE = 5_000


class Act(NamedTuple):
    """One thing somebody did, or was refused."""

    tenant: int
    at: int
    request: str  # the server's name for the request, as in its log
    identity: str
    key: str | None
    box: str | None
    channel: str
    verb: str
    entity: str | None
    what: str  # JSON: other names in the request
    code: str  # ok, or of the refusal


End = tuple[int, bytes | None]  # number and seal of the last row


class Chains:
    """The ends of this process's chains, one a tenant: rows are linked to them, and they move once those are committed."""

    def __init__(self) -> None:
        self.writer = secrets.token_hex(8)
        self.ends: dict[int, End] = {}

    def linked(self, record: Record, tenant: int, acts: Sequence[Act]) -> tuple[list[tuple[Any, ...]], End]:
        """Rows to store, and where the tenant's chain ends once they are."""
        number, before = self.ends.get(tenant, (0, None))
        rows = []
        for act in acts:
            number += 1
            seal = record.seal("audit", self.writer, number, before, *act) if record.sealing else None
            rows.append((*act, self.writer, number, before, seal))
            before = seal
        return rows, (number, before)


def insert(tx: Transaction, rows: Sequence[tuple[Any, ...]]) -> None:
    tx.many("insert_audit", rows)


def stored(tx: Transaction, row: tuple[Any, ...]) -> End | None:
    """Where the chain ends with this row, if the row is in the record."""
    tenant, at, *_, writer, number, _, _ = row
    anything = dict.fromkeys(("who", "verb", "code", "path", "low", "high"))
    place = {"since": at, "before_at": at, "before_writer": writer, "before_n": number + 1}
    there = tx.row("audit", {"tenant": tenant, **anything, **place, "limit": 1})
    return (number, there[13]) if there and there[10:12] == (writer, number) else None


def found(record: Record, tenant: int, asked: dict[str, Any]) -> dict[str, Any]:
    """Rows, newest first, a page at a time."""
    rows = record.store.rows("audit", {"tenant": tenant, **asked})
    return {
        "acts": [view(record, tenant, row) for row in rows],
        "next": cursor(rows[-1]) if len(rows) == asked["limit"] else None,
    }


def view(record: Record, tenant: int, row: Row) -> dict[str, Any]:
    at, request, identity, key, box, channel, verb, entity, what, code, _, _, _, _ = row
    return {
        "at": clock.iso(at),
        "identity": identity,
        "key": key,
        "box": box,
        "channel": channel,
        "verb": verb,
        "entity": entity,
        "what": json.loads(what),
        "code": code,
        "request": request,
        "seal": sealed(record, tenant, row),
    }


def sealed(record: Record, tenant: int, row: Row) -> str:
    *said, writer, number, before, seal = row
    if not record.sealing or seal is None:
        return "unverified"
    return "verified" if record.holds(seal, "audit", writer, number, before, tenant, *said) else "broken"


def cursor(row: Row) -> str:
    return json.dumps([row[0], row[10], row[11]])


def problems(record: Record, reader: Reader, tenant: int) -> Iterator[str]:
    """What is not as it was written, over every chain from its beginning."""
    writer, number, before = "", 0, None
    while True:
        rows = reader.rows("audit_chain", {"tenant": tenant, "writer": writer, "n": number, "limit": CHECKED_AT_ONCE})
        for row in rows:
            if row[10] != writer:
                writer, number, before = row[10], 0, None
            if row[11] != number + 1 or row[12] != before:
                yield f"chain {writer}: what came between {number} and {row[11]} is not what was written"
            if sealed(record, tenant, row) == "broken":
                yield f"chain {writer}: row {row[11]} is not what was written"
            number, before = row[11], row[13]
        if len(rows) < CHECKED_AT_ONCE:
            return
