"""How long what is known at a path stays true, from the moments at which it was found not to be. Pure.

Ages at which entries are read measure the retriever, not the truth: they are reported and never acted on. What counts is each use
as a test: it passed, or it showed the claim to be stale, since from then on it failed or another claim took its place. Whether a
stale claim is noticed when it is used is unknown, and estimated with it, on a grid, around the default.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Final

from herdbook.base.clock import MICROSECONDS_PER_DAY
from herdbook.slowloop.runs import Run

REPORT_MIN: Final = 5  # staleness events below which the default stands, and that is said
ACT_MIN: Final = 15
GONE: Final = 2  # failed uses in a row after which a claim is stale; a claim that took its place counts for as many
GRID: Final = tuple(math.exp(math.log(0.5) + step * (math.log(720) - math.log(0.5)) / 99) for step in range(100))
NOTICED: Final = (0.2, 0.35, 0.5, 0.7, 0.9, 1.0)
SPREAD: Final = 1.0  # of the prior, in logarithms: within a factor of e of the default, two times in three
BOUND: Final = 4.0  # what acts stays within a quarter and four times the default


@dataclass(frozen=True, slots=True)
class Life:
    """One claim: the ages in days at which it was put to the test, and whether the last one showed it stale."""

    ages: tuple[float, ...]
    stale: bool


@dataclass(frozen=True, slots=True)
class HalfLife:
    """The posterior."""

    days: float
    low: float
    high: float
    events: int
    base: float

    @property
    def acts(self) -> bool:
        return self.events >= ACT_MIN

    @property
    def bounded(self) -> float:
        return min(self.base * BOUND, max(self.base / BOUND, self.days))

    def as_dict(self) -> dict[str, Any]:
        known = self.events >= REPORT_MIN
        return {
            "days": round(self.days, 2) if known else None,
            "low": round(self.low, 2) if known else None,
            "high": round(self.high, 2) if known else None,
            "events": self.events,
            "default": self.base,
            "acts": self.acts,
        }


def lives(runs: Iterable[Run], age_at: dict[str, int]) -> list[Life]:
    """Each claim's tests, from the runs that used it. `age_at` says where in a form's features the age is."""
    tests: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    newest: dict[str, tuple[int, str]] = {}  # by entry: its highest version that was shown, and the claim of that
    last: dict[str, tuple[float, int]] = {}  # by claim: its age when it was shown last, and when that was
    for run in sorted(runs, key=lambda each: each.at):
        for exposure in {each.claim: each for each in run.exposures if each.served}.values():
            if exposure.form not in age_at or not exposure.features:
                continue
            age = exposure.features[age_at[exposure.form]]
            entry, version = exposure.claim.partition(":")[0], exposure.place[2]
            shown = newest.setdefault(entry, (version, exposure.claim))
            if version > shown[0] and exposure.claim != shown[1] and tests[shown[1]]:
                known, at = last[shown[1]]
                superseded = known + (run.at - at) / MICROSECONDS_PER_DAY
                tests[shown[1]] += [(superseded, True)] * GONE
            newest[entry] = max(shown, (version, exposure.claim))
            last[exposure.claim] = age, run.at
            if exposure.used:
                tests[exposure.claim].append((age, exposure.used == "attempt" or not run.success))
    return [life_of(rows) for rows in tests.values()]


def life_of(rows: Sequence[tuple[float, bool]]) -> Life:
    """Failures before a later success were the run's own; the first of those at the end is where it was noticed.

    A single one is noise as often as not, so that a claim is stale only once two in a row have failed.
    """
    last_good = max((at for at, (_, failed) in enumerate(rows) if not failed), default=-1)
    stale = len(rows) - last_good - 1 >= GONE
    ages = [age for age, _ in rows[: last_good + (2 if stale else 1)]]
    return Life(tuple(sorted(ages)), stale)


def read_age_days(runs: Iterable[Run], age_at: dict[str, int]) -> float | None:
    """The median age of what was read: shown because people expect it."""
    ages = [
        exposure.features[age_at[exposure.form]]
        for run in runs
        for exposure in run.exposures
        if exposure.served and exposure.form in age_at and exposure.features
    ]
    return median(ages) if ages else None


def estimate(found: Iterable[Life], *, base: float) -> HalfLife:
    """The half-life around `base`, with its 90 % interval."""
    known = [life for life in found if life.ages]
    grid = [[-0.5 * ((math.log(days) - math.log(base)) / SPREAD) ** 2 for days in GRID] for _ in NOTICED]
    for life in known:
        for at, noticed in enumerate(NOTICED):
            for number, days in enumerate(GRID):
                grid[at][number] += math.log(max(1e-300, likelihood(life, days, noticed)))
    top = max(max(row) for row in grid)
    weights = [sum(math.exp(row[number] - top) for row in grid) for number in range(len(GRID))]
    total = sum(weights)
    days = math.exp(sum(weight * math.log(at) for weight, at in zip(weights, GRID, strict=True)) / total)
    return HalfLife(days, quantile(weights, 0.05), quantile(weights, 0.95), sum(life.stale for life in known), base)


def likelihood(life: Life, days: float, noticed: float) -> float:
    """Of these tests, over all moments at which the claim may have stopped being true."""
    passed = life.ages[:-1] if life.stale else life.ages
    edges = (0.0, *passed)
    still = [math.exp2(-age / days) for age in edges]
    found = 0.0
    for number, (before, after) in enumerate(pairwise(still)):
        missed = (1.0 - noticed) ** (len(passed) - number)
        found += (before - after) * missed * (noticed if life.stale else 1.0)
    if life.stale:
        return found + (still[-1] - math.exp2(-life.ages[-1] / days)) * noticed
    return found + still[-1]


def quantile(weights: Sequence[float], share: float) -> float:
    wanted, so_far = share * sum(weights), 0.0
    for weight, days in zip(weights, GRID, strict=True):
        so_far += weight
        if so_far >= wanted:
            return days
    return GRID[-1]
