"""What may be set per tenant and entity path: ranking, credit, trust and experiments, as data in the record.

The nearest path wins. A value outside its bounds or of an unknown name is refused by name. Every setting is appended with who set
it and why, so that an earlier one is found again; setting a name to null takes it back to what the path above says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

from herdbook.base import clock, limits, text
from herdbook.base.errors import InvalidValue
from herdbook.record import answers, seals, trust
from herdbook.record.record import Record
from herdbook.record.store.protocol import Reader, Row, Transaction
from herdbook.record.types import Stamp

EVERYWHERE: Final = ""  # the path of the tenant itself
MULTIPLIER: Final = "multiplier_"
NO_RANKER: Final = "none"

Value = float | str


@dataclass(frozen=True, slots=True)
class Tuning:
    """What holds at one path. The multipliers are not here: the trigger that moves trust looks them up itself."""

    fusion: str = "relevance"
    evidence_lambda: float = 2.0
    keyword_weight: float = 0.5
    freshness_span: float = 0.1
    rrf_k: float = 60.0
    rrf_semantic: float = 0.4
    rrf_keyword: float = 0.2
    rrf_temporal: float = 0.2
    rrf_confidence: float = 0.2
    ranker: str = NO_RANKER
    ranker_weight: float = 0.3
    holdback: float = 0.0
    control: float = 0.0
    credit_used: float = 1.0
    credit_opened: float = 0.5
    credit_shown: float = 0.2
    half_life_days: float = 30.0


DEFAULT: Final = Tuning()


class Tunable(NamedTuple):
    """What one name means and takes."""

    meaning: str
    low: float = 0.0
    high: float = 1.0
    words: tuple[str, ...] = ()  # of a name that is set to one of these


TUNABLES: Final[Mapping[str, Tunable]] = {
    "fusion": Tunable("the ranking rule: relevance first, or the reciprocal ranks of the seeds", words=("relevance", "rrf")),
    "evidence_lambda": Tunable("how strongly evidence moves the order: relevance x exp(lambda x evidence)", high=20.0),
    "keyword_weight": Tunable("keyword coverage beside the cosine, in the relevance", high=4.0),
    "freshness_span": Tunable("the part of the relevance that age may take away", high=0.5),
    "rrf_k": Tunable("the constant of reciprocal rank fusion", low=1.0, high=1000.0),
    "rrf_semantic": Tunable("the weight of the semantic leg in rrf"),
    "rrf_keyword": Tunable("the weight of the keyword leg in rrf"),
    "rrf_temporal": Tunable("the weight of the temporal leg in rrf"),
    "rrf_confidence": Tunable("the weight of the confidence leg in rrf"),
    "ranker": Tunable("the id of the promoted ranker, or none"),
    "ranker_weight": Tunable("the part of the score that the ranker has"),
    "holdback": Tunable("the probability that a briefing leaves one entry out, or shows another instead of one", high=0.5),
    "control": Tunable(
        "the probability that a run is told nothing of what is known: its success is what the record is measured by"
    ),
    "credit_used": Tunable("the credit of an entry that was declared used, merged or cited"),
    "credit_opened": Tunable("the credit of an entry that was opened by its key, where nothing was declared"),
    "credit_shown": Tunable("the credit of an entry that was only shown, where nothing was declared"),
    "half_life_days": Tunable("the base of how confidence fades", low=0.5, high=3650.0),
} | {f"{MULTIPLIER}{name}": Tunable(f"what one {name} does to confidence", 0.01, 2.0) for name in trust.MULTIPLIERS}
DEFAULTS: Final[Mapping[str, Value]] = {each.name: getattr(DEFAULT, each.name) for each in fields(Tuning)} | {
    f"{MULTIPLIER}{name}": factor for name, factor in trust.MULTIPLIERS.items()
}
assert set(TUNABLES) == set(DEFAULTS), "every name has a meaning and a default"


def tuning_at(record: Record, tenant: int, path: str) -> Tuning:
    """What holds at a path; the empty path asks for the tenant itself."""
    rows = record.store.kept_rows("tuning_of", {"tenant": tenant, "paths": json.dumps(line_of(path))})
    if not rows:
        return DEFAULT
    given = {name: value for name, (value, _) in nearest(rows).items() if not name.startswith(MULTIPLIER)}
    return Tuning(**given)


def line_of(path: str) -> list[str]:
    """The path and everything above it, down to the tenant itself."""
    parts = path.split("/") if path else []
    return ["/".join(parts[:count]) for count in range(len(parts), -1, -1)]


def nearest(rows: Iterable[Row]) -> dict[str, tuple[Any, str]]:
    """Each name with its value and the path that sets it: the longest one wins, and a null passes on to the next."""
    found: dict[str, tuple[Any, str]] = {}
    for row in sorted(rows, key=lambda row: len(row[0])):
        if row[2] is not None and row[1] in TUNABLES:  # a name of a newer herdbook is not ours to apply
            found[row[1]] = json.loads(row[2]), row[0]
    return found


def tune(record: Record, tx: Transaction, stamp: Stamp, asked: dict[str, Any], *, at: int) -> dict[str, Any]:
    """Set names at a path, once per request id; answers with what holds there now."""
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
