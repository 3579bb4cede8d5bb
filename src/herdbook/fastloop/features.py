"""What the ranking saw of one entry when it was shown: numbers in a fixed order, kept with the read.

A ranker learns from these and from nothing read later, since later numbers hold the outcome itself. The order is a form with a
name; a changed list is a new form, and rows of another form are not mixed with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from herdbook.base.clock import MICROSECONDS_PER_DAY
from herdbook.fastloop.candidates import FADING, HEAD, NAME, ORDER, STALENESS, UNITS, VERSION, VERSION_ID, Row, Scale
from herdbook.fastloop.decay import OUTCOME_FACTOR
from herdbook.fastloop.ranking import Legs
from herdbook.record.trust import evidence
from herdbook.record.tunables import Tuning

FORM: Final = "f1"
NAMES: Final = (
    "score",  # by which it was ordered
    "relevance",  # cosine and keyword coverage together; 1 without a task
    "cosine",  # 0 without an embedder
    "coverage",  # keywords, from 0 to 1
    "freshness",  # 0.5 ^ (age / half-life)
    "evidence",
    "confidence",
    "effective",  # confidence, faded
    "standing",  # -1 contested, 0 unproven, 1 observed, 2 corroborated
    "dead_end",  # 0 or 1
    "age_days",
    "recalls",
    "moves",
    "held",
    "failed",
    "failed_since",
    "inherited",  # how many levels above the path that was asked about
    "kind",  # 0 fact, 1 belief, 2 experience
    "origin",  # 0 principal, 1 operator, 2 agent, 3 external
    "base_rate",  # of its entity
    "chars",  # of value and why
    "has_why",
    "conditional",  # whether it has an applies_when
)
STANDINGS: Final = {"contested": -1, "unproven": 0, "observed": 1, "corroborated": 2, "retired": -1}
KINDS: Final = {"fact": 0, "belief": 1, "experience": 2}
ORIGINS: Final = {"principal": 0, "operator": 1, "agent": 2, "external": 3}


def numbers_of(row: Row, *, asked: str, now: int, scale: Scale, legs: Legs, tuning: Tuning) -> tuple[float, ...]:
    """One candidate's numbers, in the order of NAMES."""
    version, judged = row[VERSION], row[HEAD]
    _, _, confidence, moves, recalls, _, _, failed_since, _, held, failed = judged
    version_id = row[VERSION_ID]
    base = scale.bases.get(version.path, 0.5)
    return (
        -row[ORDER] / UNITS,
        legs.relevance(version_id, tuning),
        legs.semantic.get(version_id, 0.0),
        legs.keyword.get(version_id, 0.0),
        freshness_of(row, scale, now=now),
        evidence(held, failed, base),
        confidence,
        -row[FADING],
        STANDINGS[row[NAME]],
        int(version.worked is False),
        max(0, now - version.at) / MICROSECONDS_PER_DAY,
        recalls,
        moves,
        held,
        failed,
        failed_since,
        max(0, asked.count("/") - version.path.count("/")),
        KINDS[version.kind],
        ORIGINS.get(version.origin, len(ORIGINS)),
        base,
        len(version.value_text) + len(version.why or ""),
        int(version.why is not None),
        int(version.applies_when is not None),
    )


def freshness_of(row: Row, scale: Scale, *, now: int) -> float:
    """How much of its youth an entry has kept, from 1 to 0; reads do not count."""
    half_life = scale.half_lives[row[VERSION].kind] * (OUTCOME_FACTOR if row[HEAD][3] else 1)
    fresh: float = 0.5 ** (max(0, now + row[STALENESS]) / half_life)
    return fresh


def as_text(numbers: Sequence[float]) -> str:
    """As it is kept: a JSON list."""
    return f"[{','.join([f'{number:.4g}' for number in numbers])}]"
