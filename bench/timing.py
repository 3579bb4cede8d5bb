"""Passes, ratios and verdicts.

Sides that are compared take turns within one run, A B B A A B, and each turn of one is divided by the turn of the other beside
it: what else the machine is doing then weighs on both. A figure is min, median and max over the passes; the median decides.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Side = Callable[[], float]  # one turn of one side; returns seconds per operation, or operations per second
Sense = Literal["at most", "at least"]

NOISY_SPREAD = 2.0  # the largest sample over the smallest


@dataclass(frozen=True, slots=True)
class Claim:
    """One measured claim: its samples over the passes, and the bound that the median must keep."""

    name: str
    says: str
    samples: tuple[float, ...]
    sense: Sense
    bound: float
    unit: str = "x"
    detail: Mapping[str, float] = field(default_factory=dict)  # absolute figures, to look at, not to compare between runs

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def holds(self) -> bool:
        return self.median <= self.bound if self.sense == "at most" else self.median >= self.bound

    @property
    def noisy(self) -> bool:
        """Something else weighed on this run: repeat it on a quiet machine before believing it, either way."""
        return max(self.samples) > NOISY_SPREAD * min(self.samples)


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """A claim that could not be measured here, and why: never counted as kept."""

    name: str
    reason: str


Result = Claim | NotMeasured


@dataclass(frozen=True, slots=True)
class Scale:
    """How much to measure."""

    passes: int
    entries: int  # in the large record
    seconds: float  # of each contention load
    say: Callable[[str], None]  # progress


def seconds_each(work: Callable[[int], object], count: int) -> float:
    """Mean seconds of one call over `count` calls: a mean, so that stalls count."""
    assert count > 0
    began = time.perf_counter()
    for index in range(count):
        work(index)
    return (time.perf_counter() - began) / count


def cpu_seconds_each(work: Callable[[int], object], count: int) -> float:
    """Mean CPU seconds of one call: for the detail, since it hardly depends on the disk and on what else runs."""
    began = time.process_time()
    for index in range(count):
        work(index)
    return (time.process_time() - began) / count


def interleave(sides: Mapping[str, Side], passes: int) -> dict[str, list[float]]:
    """Each side once a pass, in turn, after one unrecorded warm-up turn each; every second pass runs backwards."""
    assert passes > 0
    for side in sides.values():
        side()
    turns: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(passes):
        for name in sides if number % 2 == 0 else reversed(list(sides)):
            turns[name].append(sides[name]())
    return turns


def ratios(over: Sequence[float], under: Sequence[float]) -> tuple[float, ...]:
    """Pass by pass."""
    return tuple(a / b for a, b in zip(over, under, strict=True))


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
