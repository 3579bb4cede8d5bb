"""What may be set per tenant and entity path: ranking, credit, trust and experiments, as data in the record.

The nearest path wins. A value outside its bounds or of an unknown name is refused by name. Every setting is appended with who set
it and why, so that an earlier one is found again; setting a name to null takes it back to what the path above says.
"""

from __future__ import annotations

import json
from typing import Any

from herdbook.base import clock, limits, text
from herdbook.base.errors import InvalidValue
from herdbook.record import answers, rankers, seals
from herdbook.record.record import Record
from herdbook.record.store.protocol import Reader, Transaction
from herdbook.record.tunables import DEFAULTS, EVERYWHERE, MULTIPLIER, NO_RANKER, TUNABLES, Value, line_of, nearest
from herdbook.record.types import Stamp


def tune(record: Record, tx: Transaction, stamp: Stamp, asked: dict[str, Any], *, at: int) -> dict[str, Any]:
    """Set names at a path, once per request id; answers with what holds there now. Raises NotFound for a ranker nobody kept."""
    path = place(asked["entity"])
    values = {name: checked(name, value) for name, value in sorted(asked["values"].items())}
    if not values:
        raise InvalidValue("nothing is set: give names and values, such as holdback=0.1")
    why = None if asked["why"] is None else text.prose(asked["why"], what="why", chars_max=limits.WHY_CHARS_MAX)
    name = text.identifier(asked["request_id"], what="request id")
    digest = seals.digest("tune", path, json.dumps(values), why)
    before: dict[str, Any] | None = answers.first(tx, stamp.tenant, "tune", name, digest)
    if before is not None:
        return before
    if values.get("ranker") not in (None, NO_RANKER):
        rankers.load(record, tx, stamp.tenant, str(values["ranker"]))
    for tunable, value in values.items():
        put(tx, stamp, path, tunable, value, why, at=at)
    answer = told(tx, stamp.tenant, path) | {"set": values, "at": clock.iso(at), "request_id": name}
    answers.keep(tx, stamp.tenant, "tune", name, digest, answer)
    return answer


def put(tx: Transaction, stamp: Stamp, path: str, name: str, value: Value | None, why: str | None, *, at: int) -> None:
    where = {"tenant": stamp.tenant, "path": path}
    row = tx.row("next_tuning", where | {"name": name})
    assert row is not None
    written = None if value is None else json.dumps(value)
    more = {"name": name, "n": row[0], "value": written, "why": why, "identity": stamp.identity, "at": at}
    tx.run("insert_tuning", where | more)
    if name.startswith(MULTIPLIER):
        kind = name.removeprefix(MULTIPLIER)
        if value is None and path != EVERYWHERE:
            tx.run("drop_multiplier", where | {"type": kind})
        else:
            tx.run("set_multiplier", where | {"type": kind, "factor": DEFAULTS[name] if value is None else value})


def checked(name: str, value: Any) -> Value | None:
    """The value as it is kept. Raises InvalidValue that says what the name takes."""
    tunable = TUNABLES.get(name)
    if tunable is None:
        raise InvalidValue(f"there is nothing to tune named {name!r}: the names are {', '.join(TUNABLES)}")
    if value is None:
        return None
    if isinstance(DEFAULTS[name], str):
        if not isinstance(value, str) or (tunable.words and value not in tunable.words):
            raise InvalidValue(f"{name} is {' or '.join(tunable.words) or 'a word'}, not {value!r}")
        return text.identifier(value, what=name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not tunable.low <= value <= tunable.high:
        raise InvalidValue(f"{name} is a number from {tunable.low:g} to {tunable.high:g}, not {value!r}")
    return float(value)


def place(entity: str | None) -> str:
    return EVERYWHERE if entity is None else text.entity_path(entity)


def told(reader: Reader, tenant: int, path: str) -> dict[str, Any]:
    """Everything that may be set, with what holds at this path and where that was set."""
    rows = reader.rows("tuning_of", {"tenant": tenant, "paths": json.dumps(line_of(path))})
    found = nearest(rows)
    return {
        "entity": path or None,
        "tuning": [
            {
                "name": name,
                "value": found[name][0] if name in found else DEFAULTS[name],
                "set_at": (found[name][1] or "everywhere") if name in found else None,
                "default": DEFAULTS[name],
                "meaning": tunable.meaning,
            }
            for name, tunable in TUNABLES.items()
        ],
    }


def history(reader: Reader, tenant: int, path: str) -> list[dict[str, Any]]:
    """Everything that was set at this path, oldest first."""
    rows = reader.rows("tuning_history", {"tenant": tenant, "path": path})
    return [
        {"name": name, "value": None if value is None else json.loads(value), "n": n, "why": why, "by": by, "at": clock.iso(at)}
        for _, name, value, n, why, by, at in rows
    ]
