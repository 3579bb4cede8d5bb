"""How much of an outcome each thing that was read deserves. Pure: no I/O, no clock.

Confidence moves for all that was served; evidence must tell the helpful entry from its neighbours, so it credits what was
acted on. The weights are defaults to be re-measured on simulated fleets, not truths.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

WEIGHTS: Final[Mapping[str, float]] = {"used": 1.0, "attempt": 1.0, "opened": 0.5, "served": 0.2}


def way(how: str, *, opened: bool) -> str:
    """What was shown and then opened was worth a look: that counts for more than having stood in a briefing."""
    return "opened" if how == "served" and opened else how


def weight(how: str, *, applies_when: str | None, observed: Iterable[str], weights: Mapping[str, float] = WEIGHTS) -> float:
    """The credit of one cause. An entry with a condition deserves none of an outcome in which the condition did not occur."""
    if applies_when is not None and applies_when not in observed:
        return 0.0
    return weights[how]


def nearest_factor(path: str, factors: Mapping[str, float]) -> float | None:
    """The multiplier of the nearest path: an entity's own, an ancestor's, the tenant's default under the empty path, or None."""
    while path and path not in factors:
        path = path.rpartition("/")[0]
    return factors.get(path)
