"""What an outcome of each type should do to confidence, by how often what it rests on turns up in trouble again. Pure.

For every run that failed and every claim it used: did the next run that used the same claim fail too? An entity's rate is drawn
towards that of all entities by as much as entities are alike (empirical Bayes), never the raw rate; from five of a type it is
reported, from ten it may act.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from herdbook.record.trust import MULTIPLIERS
from herdbook.slowloop.runs import Run

REPORT_MIN: Final = 5
ACT_MIN: Final = 10
STRENGTH: Final = (2.0, 200.0)  # how many imagined cases the others may count for, at least and at most
WEIGHT_MAX: Final = 1.5  # no type weighs more than half again as much as a critical failure does by default
WORST: Final = "critical_failure"
FAILURES: Final = tuple(name for name in MULTIPLIERS if name != "success")


@dataclass(frozen=True, slots=True)
class Count:
    """Of cases of one type at one place, how many were followed by trouble."""

    cases: int = 0
    again: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.cases + other.cases, self.again + other.again)


@dataclass(frozen=True, slots=True)
class Rate:
    """How often trouble follows, drawn towards the others'."""

    type: str
    count: Count
    rate: float
    multiplier: float

    @property
    def acts(self) -> bool:
        return self.count.cases >= ACT_MIN

    def as_dict(self) -> dict[str, Any]:
        reported = self.count.cases >= REPORT_MIN
        return {
            "type": self.type,
            "cases": self.count.cases,
            "again": self.count.again,
            "rate": round(self.rate, 4) if reported else None,
            "multiplier": round(self.multiplier, 4) if reported else None,
            "default": MULTIPLIERS[self.type],
            "acts": self.acts,
        }


def repeats(runs: Iterable[Run]) -> dict[str, dict[str, Count]]:
    """entity, type: how often the next run that rests on the same claim failed."""
    found: dict[str, dict[str, Count]] = defaultdict(lambda: defaultdict(Count))
    waiting: dict[str, tuple[str, str]] = {}
    for run in sorted(runs, key=lambda each: each.at):
        for claim in dict.fromkeys(each.claim for each in run.exposures if each.served and each.used):
            if claim in waiting:
                entity, kind = waiting.pop(claim)
                found[entity][kind] += Count(1, int(not run.success))
            waiting[claim] = run.asked, run.type
    return {entity: dict(kinds) for entity, kinds in found.items()}


def rates(counts: Mapping[str, Mapping[str, Count]], entity: str) -> list[Rate]:
    """The failure types of one entity, each drawn towards all entities'."""
    everywhere = {name: sum((kinds.get(name, Count()) for kinds in counts.values()), Count()) for name in MULTIPLIERS}
    fine = shrunk_rate(
        [kinds.get("success", Count()) for kinds in counts.values()], counts.get(entity, {}).get("success", Count())
    )
    worst = shrunk_rate([], everywhere[WORST]) if everywhere[WORST].cases else None
    found = []
    for name in FAILURES:
        count = counts.get(entity, {}).get(name, Count())
        rate = shrunk_rate([kinds.get(name, Count()) for kinds in counts.values()], count)
        found.append(Rate(name, count, rate, multiplier(name, rate, fine=fine, worst=worst)))
    return found


def shrunk_rate(all_counts: Sequence[Count], own: Count) -> float:
    """One place's rate, with the others as its beginning (beta-binomial, by the method of moments)."""
    known = [count for count in all_counts if count.cases]
    total = sum(known, Count())
    mean = (total.again + 1.0) / (total.cases + 2.0)
    strength = prior_strength(known, mean)
    return (own.again + mean * strength) / (own.cases + strength)


def prior_strength(known: Sequence[Count], mean: float) -> float:
    """How many cases the others count for: many where entities are alike."""
    if len(known) < 2:
        return STRENGTH[0]
    raw = [count.again / count.cases for count in known]
    size = sum(count.cases for count in known) / len(known)
    spread = sum((rate - mean) ** 2 for rate in raw) / (len(raw) - 1)
    between = max(1e-4, spread - mean * (1 - mean) / size)
    return min(STRENGTH[1], max(STRENGTH[0], mean * (1 - mean) / between - 1))


def multiplier(name: str, rate: float, *, fine: float, worst: float | None) -> float:
    """The factor: how much more trouble follows than after a success, as a share of what follows a critical failure anywhere.

    Where no critical failure has been seen yet, the default's own weight stands for it.
    """
    lift = log_odds(rate) - log_odds(fine)
    if worst is None:
        return MULTIPLIERS[name]
    whole = max(0.1, log_odds(worst) - log_odds(fine))
    weight = min(WEIGHT_MAX, max(0.0, lift / whole))
    return math.exp(weight * math.log(MULTIPLIERS[WORST]))


def log_odds(rate: float) -> float:
    held = min(0.99, max(0.01, rate))
    return math.log(held / (1 - held))
