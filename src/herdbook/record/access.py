"""Access keys and tenants as the record keeps them: rows that are written once, sealed, and can only end sooner.

A key itself is never here, so nobody who reads the record can use one; and nobody who edits it can widen one, since a row that is
not as it was written opens nothing.
"""

from __future__ import annotations

import hmac
import json
from dataclasses import dataclass
from typing import Any

from herdbook.base import access_key, clock, limits, text
from herdbook.base.errors import Conflict, NotFound, SealBroken, Unauthorized
from herdbook.base.reach import EVERYTHING, Reach
from herdbook.record.record import Record
from herdbook.record.store.protocol import Reader, Row, Transaction

UNKNOWN = "this key is not known here: check HERDBOOK_KEY"
ENDED = "this key has ended, by its date or because somebody revoked it: ask for a new one"
KEYS_MAX = 10_000
COLUMNS = 16  # of a key's own row


@dataclass(frozen=True, slots=True)
class Granted:
    """What a key gives whoever shows it."""

    id: str
    name: str
    digest: bytes
    identity: str
    role: str
    attest: int
    verbs: str | None
    reach: str | None
    connections: str
    rate_minute: int | None
    quota_day: int | None
    created_at: int
    created_by: str

    @property
    def patterns(self) -> Reach:
        return EVERYTHING if self.reach is None else Reach(tuple(json.loads(self.reach)))


def parts(tenant: int, granted: Granted) -> tuple[Any, ...]:
    return ("access key", tenant, *(getattr(granted, name) for name in Granted.__slots__))


def end_parts(tenant: int, key: str, ends_at: int | None) -> tuple[Any, ...]:
    return ("access key ends", tenant, key, ends_at)


def insert(record: Record, tx: Transaction, tenant: int, granted: Granted, *, ends_at: int | None) -> None:
    seals = (record.seal(*parts(tenant, granted)), ends_at, record.seal(*end_parts(tenant, granted.id, ends_at)))
    tx.run("insert_access_key", (*(getattr(granted, name) for name in Granted.__slots__), *seals, tenant))


def end(record: Record, tx: Transaction, tenant: int, key: str, *, at: int) -> None:
    tx.run("end_access_key", {"tenant": tenant, "key": key, "ends_at": at, "end_seal": record.seal(*end_parts(tenant, key, at))})


def opened(record: Record, shown: str, *, now: int) -> tuple[int, Granted, Row]:
    """Tenant, grant and row of a key that somebody shows. Raises Unauthorized, the same for every key that is none.

    The row is known to be unchanged, or so young that whoever revoked the key has not been told yet that it is: from that answer
    on it opens nothing, on any server.
    """
    said = access_key.read(shown)
    if said is None:
        raise Unauthorized(UNKNOWN)
    rows = record.store.lent_rows("access_key", {"tenant": said.tenant, "key": said.id})
    expected = rows[0][2] if rows else bytes(32)
    if not hmac.compare_digest(said.digest, expected) or not rows:
        raise Unauthorized(UNKNOWN)
    return said.tenant, living_grant(record, said.tenant, rows[0], now=now), rows[0]


def by_id(record: Record, tenant: int, key: str, *, now: int) -> tuple[Granted, Row]:
    """Grant and row of a key that still opens something, by its lookup id. Raises Unauthorized."""
    rows = record.store.lent_rows("access_key", {"tenant": tenant, "key": key})
    if not rows:
        raise Unauthorized(ENDED)
    return living_grant(record, tenant, rows[0], now=now), rows[0]


def living_grant(record: Record, tenant: int, row: Row, *, now: int) -> Granted:
    ends_at = row[14]
    if ends_at is not None and ends_at <= now:
        raise Unauthorized(ENDED)
    return checked(record, tenant, row)


def checked(record: Record, tenant: int, row: Row) -> Granted:
    """The grant in a row that is as it was written. Raises SealBroken, also where without the seal key nobody can tell."""
    known: Granted | None = record.grants.get((tenant, *row[:COLUMNS]))
    if known is not None:
        return known
    granted = Granted(*row[:13])
    whole = record.sealing and record.holds(row[13], *parts(tenant, granted))
    if not whole or not record.holds(row[15], *end_parts(tenant, granted.id, row[14])):
        raise SealBroken("this key's row is not what was written, or the seal key is away: it opens nothing; make a new key")
    record.grants.put((tenant, *row[:COLUMNS]), granted)
    return granted


def named(record: Record, reader: Reader, tenant: int, name: str | None) -> list[tuple[Granted, int | None]]:
    """Keys by name or lookup id, or all, with their ends."""
    rows = reader.rows("access_keys", {"tenant": tenant, "name": name, "limit": KEYS_MAX})
    return [(Granted(*row[:13]), row[14]) for row in rows]


def living(record: Record, reader: Reader, tenant: int, name: str, *, now: int) -> list[Granted]:
    """Those of that name or id that still open something. Raises NotFound."""
    found = [granted for granted, ends_at in named(record, reader, tenant, name) if ends_at is None or ends_at > now]
    if not found:
        raise NotFound(f"there is no key {name!r} that still opens anything: look with `herdbook key ls`")
    return found


def refuse_taken(record: Record, tx: Transaction, tenant: int, name: str, *, now: int) -> None:
    if any(ends_at is None or ends_at > now for granted, ends_at in named(record, tx, tenant, name)):
        raise Conflict(f"there is a key {name!r} already: rotate or revoke it, or give the new one another name")


def refuse_many(reader: Reader, tenant: int, *, now: int) -> None:
    """No more keys than a tenant may have: a rate is a key's own, so keys without number would be requests without number."""
    row = reader.row("living_access_keys", {"tenant": tenant, "now": now})
    if row is not None and row[0] >= limits.KEYS_LIVE_MAX:
        raise Conflict(f"{row[0]} keys of this tenant open something, which is as many as there may be: revoke those nobody uses")


def view(granted: Granted, ends_at: int | None, *, now: int) -> dict[str, Any]:
    """A key as its admin sees it: everything but what would open something."""
    return {
        "id": granted.id,
        "name": granted.name,
        "identity": granted.identity,
        "role": granted.role,
        "attest": bool(granted.attest),
        "verbs": None if granted.verbs is None else json.loads(granted.verbs),
        "reach": list(granted.patterns.patterns),
        "connections": json.loads(granted.connections),
        "rate_minute": granted.rate_minute,
        "quota_day": granted.quota_day,
        "created_at": clock.iso(granted.created_at),
        "created_by": granted.created_by,
        "ends_at": None if ends_at is None else clock.iso(ends_at),
        "live": ends_at is None or ends_at > now,
    }


def tenant_view(row: Row) -> dict[str, Any]:
    return {"tenant": row[1], "number": row[0], "rate_minute": row[2], "quota_day": row[3]}


def tenant_named(reader: Reader, name: str) -> Row:
    rows = reader.rows("tenants", {"name": text.name(name, what="tenant")})
    if not rows:
        raise NotFound(f"there is no tenant {name!r}: look with `herdbook tenant ls`")
    return rows[0]
