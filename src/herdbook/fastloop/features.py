"""What the ranking saw of one entry when it was shown: numbers in a fixed order, kept with the read.

A ranker learns from these and from nothing read later, since later numbers hold the outcome itself. The order is a form with a
name; a changed list is a new form, and rows of another form are not mixed with it.
"""

from __future__ import annotations

from typing import Final

from herdbook.base.clock import MICROSECONDS_PER_DAY
from herdbook.fastloop.candidates import Candidate
from herdbook.record.trust import evidence

FORM: Final = "f1"
NAMES: Final = (
    "score",  # by which it was ordered
    "relevance",  # cosine and keyword coverage together; 0 without a task
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


def features_of(
    candidate: Candidate, *, asked: str, now: int, base: float, score: float, relevance: float, cosine: float, coverage: float
) -> str:
    """One entry's numbers, as a JSON list."""
    version, head = candidate.version, candidate.head
    effective = -candidate.fading
    numbers = (
        score,
        relevance,
        cosine,
        coverage,
        effective / head.confidence if head.confidence else 0.0,
        evidence(head.held, head.failed, base),
        head.confidence,
        effective,
        STANDINGS[candidate.standing],
        int(version.worked is False),
        max(0, now - version.at) / MICROSECONDS_PER_DAY,
        head.recalls,
        head.moves,
        head.held,
        head.failed,
        head.failed_since,
        levels_above(version.path, asked),
        KINDS[version.kind],
        ORIGINS.get(version.origin, len(ORIGINS)),
        base,
        len(version.value_text) + len(version.why or ""),
        int(version.why is not None),
        int(version.applies_when is not None),
    )
    return f"[{','.join([f'{number:.4g}' for number in numbers])}]"


def levels_above(path: str, asked: str) -> int:
    return max(0, asked.count("/") - path.count("/"))
