"""Boxes as the record knows them: a row before the box exists, a lease its host keeps alive, a closing that counts once.

The record never touches a box. Whoever reaps compares these rows with what the provider lists.
"""

from __future__ import annotations

from typing import Any

from herdbook.base import clock, limits, text
from herdbook.base.errors import InvalidRequest, NotFound, RequestConflict
from herdbook.record.store.protocol import Reader, Row, Transaction
from herdbook.record.types import Stamp


def open_box(tx: Transaction, stamp: Stamp, fields: dict[str, Any], *, at: int) -> dict[str, Any]:
    """Write a box's row. The same box again is the same row; the same name for another box is refused."""
    said = {
        "box": text.identifier(fields["box"], what="box id"),
        "provider": text.name(fields["provider"], what="provider"),
        "isolation": fields["isolation"],
        "label": text.name(fields["label"], what="label"),
        "owner": text.prose(fields["owner"], what="owner", chars_max=limits.NAME_CHARS_MAX * 2),
        "competes": int(fields["competes"]),
        "claim": fields["claim"],
    }
    row = tx.row("box", {"tenant": stamp.tenant, "box": said["box"]})
    if row is None:
        until = lease_end(fields["lease_seconds"], at=at)
        tx.run("insert_box", said | {"tenant": stamp.tenant, "at": at, "lease_until": until})
    elif (*row[:5], *row[9:]) != tuple(said.values()) or row[7] is not None:
        raise RequestConflict(f"the box {said['box']!r} is in the record already: give the new one another name")
    return one(tx, stamp.tenant, said["box"], at=at)


def beat(tx: Transaction, stamp: Stamp, fields: dict[str, Any], *, at: int) -> dict[str, Any]:
    """Lengthen a lease from now. A closed box stays closed, and the answer says so."""
    box = text.identifier(fields["box"], what="box id")
    until = lease_end(fields["lease_seconds"], at=at)
    tx.run("beat_box", {"tenant": stamp.tenant, "box": box, "lease_until": until, "claim": fields["claim"]})
    return one(tx, stamp.tenant, box, at=at)


def close_box(tx: Transaction, stamp: Stamp, fields: dict[str, Any], *, at: int) -> dict[str, Any]:
    """The box is gone."""
    box = text.identifier(fields["box"], what="box id")
    detail = None if fields["detail"] is None else text.prose(fields["detail"], what="detail", chars_max=limits.WHY_CHARS_MAX)
    tx.run("close_box", {"tenant": stamp.tenant, "box": box, "at": at, "detail": detail})
    return one(tx, stamp.tenant, box, at=at)


def listed(reader: Reader, tenant: int, fields: dict[str, Any], *, at: int) -> dict[str, Any]:
    """Boxes, newest first; a box that is asked for by its name and is not there is no box."""
    if fields["box"] is not None:
        row = reader.row("box", {"tenant": tenant, "box": fields["box"]})
        found = [view(row, at=at)] if row is not None and fields["claim"] in (None, row[10]) else []
        kept = [box for box in found if fields["label"] in (None, box["label"]) and not (fields["live"] and box["closed_at"])]
        return {"boxes": kept}
    rows = reader.rows(
        "boxes", {"tenant": tenant, "label": fields["label"], "live": int(fields["live"]), "limit": fields["limit"]}
    )
    return {"boxes": [view(row, at=at) for row in rows]}


def competes(reader: Reader, tenant: int, box: str) -> bool:
    """Whether what this box writes is a draft."""
    row = reader.row("box", {"tenant": tenant, "box": box})
    return row is not None and bool(row[9])


def promote(tx: Transaction, tenant: int, box: str, *, tool: str) -> list[Row]:
    """The box has won: its drafts, to be told once. One that does not compete any more has none left."""
    which = {"tenant": tenant, "box": box}
    if tx.row("box", which) is None:
        raise NotFound(f"there is no box {box!r}: look with `herdbook box ls`")
    drafts = tx.rows("drafts_of_box", which | {"tool": tool}) if competes(tx, tenant, box) else []
    tx.run("box_has_won", which)
    return drafts


def runs(reader: Reader, tenant: int, box: str) -> dict[str, Any]:
    """What was begun in a box, in order. A box that is not there has none."""
    return {"sessions": [name for (name,) in reader.rows("runs_of_box", {"tenant": tenant, "box": box})]}


def one(reader: Reader, tenant: int, box: str, *, at: int) -> dict[str, Any]:
    row = reader.row("box", {"tenant": tenant, "box": box})
    if row is None:
        raise NotFound(f"there is no box {box!r}: look with `herdbook box ls`")
    return view(row, at=at)


def view(row: Row, *, at: int) -> dict[str, Any]:
    box, provider, isolation, label, owner, opened_at, lease_until, closed_at, detail, competing, _ = row
    return {
        "box": box,
        "provider": provider,
        "isolation": isolation,
        "label": label,
        "owner": owner,
        "state": "closed" if closed_at is not None else "open",
        "live": closed_at is None and lease_until > at,
        "opened_at": clock.iso(opened_at),
        "lease_until": clock.iso(lease_until),
        "closed_at": None if closed_at is None else clock.iso(closed_at),
        "detail": detail,
        "competes": bool(competing),
    }


def lease_end(seconds: int, *, at: int) -> int:
    if not 0 < seconds <= limits.BOX_LEASE_SECONDS_MAX:
        raise InvalidRequest(f"a lease is 1 to {limits.BOX_LEASE_SECONDS_MAX} seconds, not {seconds}")
    return at + seconds * 1_000_000
