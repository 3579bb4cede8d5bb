"""Fleets whose truth is known, as runs in memory: what each run would have come to with and without the record."""

from __future__ import annotations

import random
from dataclasses import dataclass

from herdbook.slowloop.runs import Exposure, Run

HOUR = 3_600_000_000


@dataclass(frozen=True, slots=True)
class Truth:
    """The uplift of a fleet: the mean over its runs of what being told changes."""

    uplift: float
    runs: list[Run]


def fleet(seed: int) -> Truth:
    """A random fleet: entities that differ, an effect that may be nothing, may grow as the record does, or may harm."""
    luck = random.Random(f"fleet {seed}")
    entities, count = luck.randint(1, 8), luck.choice([60, 120, 250, 500, 1000])
    control, strength, grows = luck.choice([0.1, 0.2, 0.3, 0.5]), luck.choice([0.0, 0.05, 0.15, 0.3, -0.1]), luck.random() < 0.5
    bases = [luck.uniform(0.15, 0.85) for _ in range(entities)]
    runs, gains = [], []
    for number in range(count):
        at = luck.randrange(entities)
        gain = strength * (2 * number / count if grows else 1.0)
        chances = bases[at], min(0.98, max(0.02, bases[at] + gain))
        told = luck.random() >= control
        gains.append(chances[1] - chances[0])
        runs.append(run(number, f"e/{at}", told=told, success=luck.random() < chances[told], tries=1 + (luck.random() < 0.3)))
    return Truth(sum(gains) / len(gains), runs)


def run(
    number: int,
    path: str,
    *,
    told: bool,
    success: bool,
    tries: int = 1,
    exposures: tuple[Exposure, ...] = (),
    kind: str | None = None,
) -> Run:
    return Run(
        session=f"s-{number}",
        asked=path,
        arm="on" if told else "control",
        type=kind or ("success" if success else "failure"),
        attested=True,
        tries=tries,
        seconds=60.0 * tries,
        at=number * HOUR,
        task="a task",
        exposures=exposures,
    )


def exposure(
    claim: str, *, served: bool, probability: float, rank: int = 1, features: tuple[float, ...] = (), used: str | None = None
) -> Exposure:
    return Exposure(claim, ("e/0", claim, 1), "1", rank, served, probability, features, "f1", used, 1.0 if used else 0.2)
