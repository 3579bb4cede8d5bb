"""Runs with features whose worth is known, for rankers: what helps shows in some of the numbers and in no others."""

from __future__ import annotations

import math
import random

from herdbook.fastloop.features import FORM, NAMES
from herdbook.slowloop.runs import Exposure, Run
from tests.slowloop import fleets

AT = {name: at for at, name in enumerate(NAMES)}


def runs(
    count: int, *, seed: int, driver: str = "evidence", strength: float = 1.5, entities: int = 3, used: bool = True
) -> list[Run]:
    """Each run is shown six entries. Whether using one helps depends on `driver` alone; the score knows nothing of it."""
    luck = random.Random(f"shown {seed}")
    found = []
    for number in range(count):
        numbers = [features(luck) for _ in range(6)]
        chances = [1 / (1 + math.exp(-strength * each[AT[driver]])) for each in numbers]
        picked = [luck.random() < 0.4 for _ in numbers]
        good = [luck.random() < chance for chance in chances]
        success = all(ok for ok, on in zip(good, picked, strict=True) if on) if any(picked) else luck.random() < 0.5
        exposures = tuple(
            exposure(
                f"k{number}-{at}",
                rank=at + 1,
                numbers=each,
                used=("declared" if ok or not success else "attempt") if on and used else None,
            )
            for at, (each, on, ok) in enumerate(zip(numbers, picked, good, strict=True))
        )
        found.append(fleets.run(number, f"e/{number % entities}", told=True, success=success, exposures=exposures))
    return found


def features(luck: random.Random) -> tuple[float, ...]:
    return tuple(luck.gauss(0, 1) if name != "score" else luck.uniform(0.1, 1.0) for name in NAMES)


def exposure(claim: str, *, rank: int, numbers: tuple[float, ...], used: str | None) -> Exposure:
    return Exposure(claim, ("e/0", claim, 1), "1", rank, True, 1.0, numbers, FORM, used, 1.0 if used else 0.2)
