"""How confidence fades with time, and how use keeps it alive. Pure: no I/O, no clock; ages are handed in.

Nothing here deletes: what has faded leaves briefings, never the history.
"""

from __future__ import annotations

from functools import lru_cache
from math import log1p
from typing import Final

from herdbook.base.clock import MICROSECONDS_PER_DAY

BASE_DAYS: Final = 30.0  # seed
KIND_FACTORS: Final = {"fact": 1.0, "belief": 0.5, "experience": 1.5}  # seed
OUTCOME_FACTOR: Final = 2  # seed: one real outcome doubles the half-life, further ones don't
# Effective confidence under which an unproven entry leaves briefings: a fresh fact that nobody reads gets there in 100 days.
FLOOR: Final = 0.05

assert 0.0 < FLOOR < 0.5, "a fresh note must not be faded when it is written"


def half_life_days(base_days: float = BASE_DAYS, kind: str = "fact", recalls: int = 0, outcomes: int = 0) -> float:
    """Use keeps an entry alive: reads by their logarithm, an outcome by two."""
    assert base_days > 0 and recalls >= 0 and outcomes >= 0
    days = base_days * KIND_FACTORS[kind] * (1.0 + log1p(recalls))
    return days * OUTCOME_FACTOR if outcomes else days


def effective_confidence(confidence: float, age_days: float, half_life: float) -> float:
    """Confidence as it counts today. A clock that jumped back makes nothing younger than new: this never exceeds `confidence`."""
    assert half_life > 0.0  # False for NaN too
    # max() keeps its first argument when the second is NaN, so a NaN becomes "new" or "nothing", never a number above all others.
    age = max(0.0, age_days)
    return float(min(1.0, max(0.0, confidence)) * 0.5 ** (age / half_life))


@lru_cache(maxsize=256)
def half_lives(base_days: float) -> dict[str, float]:
    """Of what nobody has read and no outcome has touched, by kind, in microseconds."""
    return {kind: base_days * factor * MICROSECONDS_PER_DAY for kind, factor in KIND_FACTORS.items()}


def effective_now(confidence: float, age: int, kind: str, recalls: int, outcomes: int, *, base_days: float = BASE_DAYS) -> float:
    """`effective_confidence` at the half-life of these counters in one step; `age` is in microseconds."""
    if age <= 0:
        return confidence
    half_life = half_lives(base_days)[kind] * (1.0 + log1p(recalls))
    faded: float = 0.5 ** (age / (half_life * OUTCOME_FACTOR if outcomes else half_life))
    return confidence * faded
