"""Differences between two groups with their 95 % intervals. Pure: numbers in, numbers out.

Intervals are those that hold for small groups. A verdict asks for more than the interval does, since people
look again after every run: a difference that leaves nothing out at 95 % now and then is to be expected, at 99.9 % it is not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

Z95: Final = NormalDist().inv_cdf(0.975)
Z999: Final = NormalDist().inv_cdf(0.9995)  # what a verdict needs: looked at again and again, 95 % would often be wrong by chance
GROUP_MIN: Final = 10  # below so many runs on either side nothing is said


@dataclass(frozen=True, slots=True)
class Difference:
    """One group's mean minus the other's."""

    estimate: float
    error: float  # standard error
    quantile: float  # of its distribution, for 95 %
    first: int  # how many are in the first group, and in the second
    second: int

    @property
    def low(self) -> float:
        return self.estimate - self.quantile * self.error

    @property
    def high(self) -> float:
        return self.estimate + self.quantile * self.error

    @property
    def sure(self) -> bool:
        """Whether its sign may be said: enough on both sides, and zero far outside."""
        enough = min(self.first, self.second) >= GROUP_MIN
        return enough and abs(self.estimate) > self.error * Z999 * self.quantile / Z95

    def as_dict(self) -> dict[str, float]:
        return {"estimate": round(self.estimate, 4), "low": round(self.low, 4), "high": round(self.high, 4)}


@dataclass(frozen=True, slots=True)
class Groups:
    """The values of both groups in one stratum, where they may be compared."""

    first: Sequence[float]
    second: Sequence[float]

    @property
    def weight(self) -> float:
        """How much the stratum can say: none where one side is empty."""
        both = len(self.first) + len(self.second)
        return len(self.first) * len(self.second) / both if both else 0.0


def share_difference(strata: Iterable[Groups]) -> Difference | None:
    """Difference of shares, stratum by stratum; None where no stratum has both sides."""
    known = [groups for groups in strata if groups.weight]
    if not known:
        return None
    if len(known) == 1:
        return two_shares(known[0])
    return weighted(known, imagined([groups.first for groups in known]), imagined([groups.second for groups in known]))


def two_shares(groups: Groups) -> Difference:
    """Agresti and Caffo's: one success and one failure imagined on each side; it holds from about ten a side."""
    estimate = adjusted(groups.first) - adjusted(groups.second)
    return Difference(estimate, math.sqrt(adjusted_variance(groups)), Z95, len(groups.first), len(groups.second))


def adjusted(values: Sequence[float]) -> float:
    return (sum(values) + 1) / (len(values) + 2)


def adjusted_variance(groups: Groups) -> float:
    return sum(adjusted(side) * (1 - adjusted(side)) / (len(side) + 2) for side in (groups.first, groups.second))


def mean_difference(strata: Iterable[Groups]) -> Difference | None:
    """Difference of means, stratum by stratum, with each side's variance taken within strata; None where it cannot be known."""
    known = [groups for groups in strata if groups.weight]
    first, second = within([groups.first for groups in known]), within([groups.second for groups in known])
    if not known or first is None or second is None:
        return None
    return weighted(known, first, second)


def weighted(known: Sequence[Groups], first: tuple[float, float], second: tuple[float, float]) -> Difference:
    """The strata's differences, each with the weight of what it can say; a side's variance comes with its degrees of freedom."""
    total = sum(groups.weight for groups in known)
    estimate = sum(groups.weight * (mean(groups.first) - mean(groups.second)) for groups in known) / total
    parts = (
        first[0] * sum(groups.weight**2 / len(groups.first) for groups in known) / total**2,
        second[0] * sum(groups.weight**2 / len(groups.second) for groups in known) / total**2,
    )
    sizes = sum(len(groups.first) for groups in known), sum(len(groups.second) for groups in known)
    return Difference(estimate, math.sqrt(sum(parts)), student(min(first[1], second[1])), *sizes)


def within(sides: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    """(variance around each stratum's own mean, degrees of freedom)."""
    freedom = sum(max(0, len(side) - 1) for side in sides)
    return (scatter(sides) / freedom, freedom) if freedom else None


def imagined(sides: Sequence[Sequence[float]]) -> tuple[float, float]:
    """The same for shares, with one success and one failure imagined: a few runs that all went well do not vary by nothing."""
    count = sum(map(len, sides))
    share = (sum(map(sum, sides)) + 1) / (count + 2)
    freedom = max(0, count - len(sides))
    return (scatter(sides) + 2 * share * (1 - share)) / (max(1, freedom) + (2 if freedom else 1)), max(1, freedom)


def scatter(sides: Sequence[Sequence[float]]) -> float:
    return sum((value - mean(side)) ** 2 for side in sides for value in side)


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def student(freedom: float) -> float:
    """The 97.5 % quantile of Student's t; right to 1 % from three degrees of freedom on."""
    v, z = max(1.0, freedom), Z95
    terms = ((z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384)
    return z + sum(term / v**power for power, term in enumerate(terms, start=1))
