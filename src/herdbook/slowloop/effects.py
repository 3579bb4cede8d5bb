"""What one entry does to the runs that read it: read against withheld, by the odds with which it was left to chance.

Only exposures that might have gone the other way count, each weighted by how unlikely what happened was, so that what was
withheld once in fifty says as much as it should. What a run's entity does anyway is taken off first. Estimates are shrunk towards
no effect by as much as all entries together allow. Pure.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from herdbook.slowloop.intervals import Z95, Z999
from herdbook.slowloop.runs import Run

SIDE_MIN: Final = 5  # runs with it and runs without it, below which nothing is said of an entry
SPREAD_MIN: Final = 0.02  # entries differ by at least this much, however alike the first few look


@dataclass(frozen=True, slots=True)
class Effect:
    """One claim's effect on success, before and after shrinking."""

    claim: str
    place: tuple[str, str, int]
    served: int
    withheld: int
    raw: float
    error: float
    estimate: float = 0.0
    spread: float = 0.0  # of the shrunken estimate

    @property
    def enough(self) -> bool:
        return min(self.served, self.withheld) >= SIDE_MIN

    @property
    def verdict(self) -> str:
        if not self.enough or abs(self.estimate) <= Z999 * self.spread:
            return "not enough data"
        return "helps" if self.estimate > 0 else "harms"

    def as_dict(self) -> dict[str, Any]:
        entity, key, version = self.place
        half = Z95 * self.spread
        return {
            "entity": entity,
            "key": key,
            "version": version,
            "effect": round(self.estimate, 4),
            "low": round(self.estimate - half, 4),
            "high": round(self.estimate + half, 4),
            "raw": round(self.raw, 4),
            "served": self.served,
            "withheld": self.withheld,
            "verdict": self.verdict,
        }


def effects(runs: Sequence[Run]) -> list[Effect]:
    """Every claim that was both read and withheld by chance, the surest first.

    Runs of the control arm are left out: there everything was withheld at once, which says nothing of any one entry.
    """
    runs = [run for run in runs if run.told]
    residual = residuals(runs)
    seen: dict[str, list[tuple[float, float, bool]]] = defaultdict(list)
    places: dict[str, tuple[str, str, int]] = {}
    for run in runs:
        for exposure in {each.claim: each for each in run.exposures if 0.0 < each.probability < 1.0}.values():
            seen[exposure.claim].append((residual[run.session], exposure.probability, exposure.served))
            places[exposure.claim] = exposure.place
    raw = [found for claim, rows in seen.items() if (found := raw_effect(claim, places[claim], rows)) is not None]
    return sorted(shrunk(raw), key=lambda each: (-abs(each.estimate) / max(each.spread, 1e-9), each.place))


def residuals(runs: Sequence[Run]) -> dict[str, float]:
    """Each run's success minus what the other runs of its entity came to: an outcome model that no single run can bend."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for run in runs:
        sums[run.asked][0] += run.success
        sums[run.asked][1] += 1
    found = {}
    for run in runs:
        total, count = sums[run.asked]
        found[run.session] = run.success - (total - run.success + 1.0) / (count - 1 + 2.0)
    return found


def raw_effect(claim: str, place: tuple[str, str, int], rows: Sequence[tuple[float, float, bool]]) -> Effect | None:
    """Weighted mean with it minus weighted mean without it; None where one side is empty."""
    sides = [[(y, 1.0 / (p if served else 1.0 - p)) for y, p, served in rows if served is with_it] for with_it in (True, False)]
    if not all(sides):
        return None
    means = [sum(y * w for y, w in side) / sum(w for _, w in side) for side in sides]
    variance = sum(weighted_variance(side, mean, rows) for side, mean in zip(sides, means, strict=True))
    return Effect(claim, place, len(sides[0]), len(sides[1]), means[0] - means[1], math.sqrt(variance))


def weighted_variance(side: Sequence[tuple[float, float]], mean: float, rows: Sequence[tuple[float, float, bool]]) -> float:
    """Of a side's weighted mean. With few on it, their own spread says little, so that of all runs is mixed in as if two were."""
    total = sum(w for _, w in side)
    effective = total**2 / sum(w**2 for _, w in side)
    overall = sum(y * y for y, _, _ in rows) / len(rows)
    own = sum(w * (y - mean) ** 2 for y, w in side) / total
    return (own * effective + overall * 2.0) / (effective + 2.0) / max(1.0, effective - 0.5)


def shrunk(raw: Sequence[Effect]) -> list[Effect]:
    """Towards nothing, by how much entries differ beyond what chance explains (method of moments)."""
    if not raw:
        return []
    weights = [1.0 / each.error**2 for each in raw]
    beyond = sum(w * (each.raw**2 - each.error**2) for w, each in zip(weights, raw, strict=True)) / sum(weights)
    prior = max(SPREAD_MIN**2, beyond)
    found = []
    for each in raw:
        pull = each.error**2 / (prior + each.error**2)
        # The second term: how much entries differ is itself only an estimate (Morris).
        variance = prior * pull + 2.0 / len(raw) * pull**2 * each.raw**2
        found.append(replace(each, estimate=(1 - pull) * each.raw, spread=math.sqrt(variance)))
    return found
