"""What a ranker learns from: each served exposure of a run that ended, with its features as they were and a label.

What a run used and succeeded with is a yes, what it used and failed with a no; what was only shown counts for little, since it
was read whatever came of it. Nothing that was never linked to an outcome is taken for a no.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from herdbook.slowloop.arrays import numpy
from herdbook.slowloop.runs import Exposure, Run

SHOWN_WEIGHT: Final = 0.2  # of what was only shown, as the record credits it


@dataclass(frozen=True, slots=True)
class Samples:
    """Rows in the order of their runs; arrays of one length."""

    numbers: Any  # features, a row each
    labels: Any  # 1 yes, 0 no
    weights: Any
    runs: Any  # the number of its run
    servings: Any  # the number of its briefing or search
    entities: Any  # the number of the path that was asked about
    digest: str  # of all of it

    def __len__(self) -> int:
        return len(self.labels)

    def where(self, mask: Any) -> Samples:
        return replace(
            self,
            numbers=self.numbers[mask],
            labels=self.labels[mask],
            weights=self.weights[mask],
            runs=self.runs[mask],
            servings=self.servings[mask],
            entities=self.entities[mask],
        )


def samples_of(runs: Sequence[Run], form: str, *, by_outcome: bool = False) -> Samples:
    """The samples of these runs with features of this form; `by_outcome` labels all that was shown by how its run ended."""
    np = numpy()
    rows: list[tuple[tuple[float, ...], int, float, int, int, int]] = []
    servings: dict[tuple[str, str], int] = {}
    entities: dict[str, int] = {}
    for number, run in enumerate(runs):
        for exposure in learnable(run, form):
            label, weight = (int(run.success), 1.0) if by_outcome else labelled(run, exposure)
            serving = servings.setdefault((run.session, exposure.serving or ""), len(servings))
            rows.append((exposure.features, label, weight, number, serving, entities.setdefault(run.asked, len(entities))))
    numbers, labels, weights, numbered, served, places = list(zip(*rows, strict=True)) or [()] * 6
    return Samples(
        numbers=np.array(numbers, dtype=float),
        labels=np.array(labels, dtype=int),
        weights=np.array(weights, dtype=float),
        runs=np.array(numbered, dtype=int),
        servings=np.array(served, dtype=int),
        entities=np.array(places, dtype=int),
        digest=hashlib.sha256(json.dumps(rows).encode()).hexdigest(),
    )


def learnable(run: Run, form: str) -> Iterable[Exposure]:
    """What the run was served of this form, each claim once."""
    served = [each for each in run.exposures if each.served and each.form == form and each.features]
    return {each.claim: each for each in served}.values()


def labelled(run: Run, exposure: Exposure) -> tuple[int, float]:
    """(label, weight): a failed try is a no for what it used, even when the run ends well."""
    if exposure.used == "attempt":
        return 0, 1.0
    return int(run.success), 1.0 if exposure.used else SHOWN_WEIGHT
