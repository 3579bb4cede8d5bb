"""Trained rankers, as a briefing uses them: read from their JSON artefact, scored without any library. Pure.

An artefact holds `form` and `names` (of the features), `samples`, and one of two kinds:

    {"kind": "logistic", "weights": [...], "bias": b, "means": [...], "scales": [...]}
    {"kind": "trees", "trees": [...], "start": s}    a tree is {"feature": i, "at": x, "low": tree, "high": tree} or {"leaf": y}

Both add up to a log-odds; a value goes low when it is at most `at`. One whose form is not today's is refused, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from herdbook.fastloop.features import FORM, NAMES

Tree = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Logistic:
    """A weighted sum of standardised features."""

    samples: int
    weights: tuple[float, ...]
    bias: float
    means: tuple[float, ...]
    scales: tuple[float, ...]

    def scores(self, numbers: Sequence[Sequence[float]]) -> list[float]:
        parts = tuple(zip(self.weights, self.means, self.scales, strict=True))
        return [
            chance(self.bias + sum(w * (x - mean) / scale for x, (w, mean, scale) in zip(row, parts, strict=True)))
            for row in numbers
        ]


@dataclass(frozen=True, slots=True)
class Trees:
    """A sum of decision trees."""

    samples: int
    trees: tuple[Tree, ...]
    start: float

    def scores(self, numbers: Sequence[Sequence[float]]) -> list[float]:
        return [chance(self.start + sum(leaf(tree, row) for tree in self.trees)) for row in numbers]


def scorer(artefact: Mapping[str, Any]) -> Logistic | Trees | str:
    """The ranker an artefact describes, or why it cannot be used."""
    if artefact.get("form") != FORM or artefact.get("names") != list(NAMES):
        return f"it was trained on features of the form {artefact.get('form')!r}, and these are {FORM!r}: train it again"
    samples = int(artefact["samples"])
    if artefact["kind"] == "logistic":
        lists = [tuple(map(float, artefact[name])) for name in ("weights", "means", "scales")]
        if {len(NAMES)} != {len(each) for each in lists} or 0.0 in lists[2]:
            return "its lists do not fit its features: train it again"
        return Logistic(samples, lists[0], float(artefact["bias"]), lists[1], lists[2])
    if artefact["kind"] == "trees":
        return Trees(samples, tuple(artefact["trees"]), float(artefact["start"]))
    return f"its kind {artefact['kind']!r} is of another herdbook: upgrade, or train it again"


def leaf(tree: Tree, row: Sequence[float]) -> float:
    while "leaf" not in tree:
        tree = tree["low"] if row[tree["feature"]] <= tree["at"] else tree["high"]
    value: float = tree["leaf"]
    return value


def chance(log_odds: float) -> float:
    """From log-odds to a probability, without overflow."""
    return 1.0 / (1.0 + math.exp(-max(-500.0, min(500.0, log_odds))))
