"""Which model, with which weight beside the default: chosen on later runs than those it was fitted to.

Runs are cut into blocks of time; each block is ranked by models fitted to the blocks before it. The measure is how often, within
an entity, what helped is put before what did not. A candidate has to beat the simpler one by more than one standard error, and
the default by more than chance alone often gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from herdbook.slowloop.arrays import numpy
from herdbook.slowloop.retrain.models import FITS, Model
from herdbook.slowloop.retrain.samples import Samples

BLOCKS: Final = 6
WEIGHTS: Final = (0.3, 0.6, 1.0)
REPEATS: Final = 5  # of each permutation
CLEAR: Final = 1.64  # standard errors a gain must have: with one, noise alone was offered as a ranker in 8 of 20 fleets
SCORE: Final = "score"

Fit = Callable[[Samples], Model]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model's method and its part of the score."""

    method: str  # default, logistic or gbm
    weight: float

    @property
    def name(self) -> str:
        return self.method if self.method == "default" else f"{self.method} at {self.weight:g}"


@dataclass(frozen=True, slots=True)
class Judged:
    """How a candidate did on runs it had not seen."""

    candidate: Candidate
    value: float  # of the measure; one half is chance
    gain: float  # over the default
    error: float  # standard error of the gain; infinite where one block of runs is all there is

    @property
    def known_error(self) -> float | None:
        """The error as it is told: infinity is no number of JSON."""
        return round(self.error, 4) if math.isfinite(self.error) else None

    def as_dict(self) -> dict[str, Any]:
        numbers = {"value": self.value, "gain": self.gain}
        return {
            "candidate": self.candidate.name,
            "method": self.candidate.method,
            "weight": self.candidate.weight,
            **{name: round(value, 4) for name, value in numbers.items()},
            "error": self.known_error,
        }


@dataclass(frozen=True, slots=True)
class Fold:
    """A block of runs, and the models fitted to what came before it."""

    held: Samples
    models: dict[str, Model]


DEFAULT: Final = Candidate("default", 0.0)


def folds(samples: Samples, fits: dict[str, Fit]) -> list[Fold]:
    """Blocks of time, each with models that have not seen it; what could only be fitted to a constant is not there."""
    np = numpy()
    numbers = np.unique(samples.runs)
    edges = np.array_split(numbers, min(BLOCKS, len(numbers)))
    found = []
    for block in edges[1:]:
        before, held = samples.where(samples.runs < block[0]), samples.where(np.isin(samples.runs, block))
        if len(np.unique(before.labels)) < 2:
            continue
        fitted = {name: fit(before) for name, fit in fits.items()}
        found.append(Fold(held, {name: model for name, model in fitted.items() if not model.is_constant(before.numbers)}))
    return found


def judge(found: Sequence[Fold], candidates: Sequence[Candidate], score_at: int) -> list[Judged]:
    """Every candidate that could be fitted in every fold, with its gain over the default on the same pairs."""
    able = [each for each in candidates if each == DEFAULT or all(each.method in fold.models for fold in found)]
    units = {each: [unit for fold in found for unit in fold_units(fold, each, score_at)] for each in able}
    return [judged(each, units[each], units[DEFAULT]) for each in able] if units.get(DEFAULT) else []


def judged(candidate: Candidate, units: Sequence[tuple[float, float]], default: Sequence[tuple[float, float]]) -> Judged:
    """Means over units, each with the weight of its pairs."""
    np = numpy()
    weights = np.array([weight for _, weight in units])
    values = np.array([value for value, _ in units])
    gains = values - np.array([value for value, _ in default])
    mean = float(np.average(gains, weights=weights))
    effective = float(weights.sum() ** 2 / (weights**2).sum())
    spread = float(np.average((gains - mean) ** 2, weights=weights))
    error = (spread / max(1e-9, effective - 1)) ** 0.5 if effective > 1.01 else float("inf")
    return Judged(candidate, float(np.average(values, weights=weights)), mean, error)


def fold_units(fold: Fold, candidate: Candidate, score_at: int) -> Iterator[tuple[float, float]]:
    """(how often right, weight of its pairs) for each entity of a block."""
    np = numpy()
    ordered = blended(fold.held, candidate, fold.models.get(candidate.method), score_at)
    for entity in np.unique(fold.held.entities):
        mask = fold.held.entities == entity
        unit = concordance(ordered[mask], fold.held.labels[mask], fold.held.weights[mask])
        if unit is not None:
            yield unit


def blended(samples: Samples, candidate: Candidate, model: Model | None, score_at: int) -> Any:
    """The score as a briefing would make it: rule and model, each against the best of its briefing."""
    np = numpy()
    rule = against_best(samples.numbers[:, score_at], samples.servings)
    if model is None or not candidate.weight:
        return rule
    said = against_best(np.asarray(model.chances(samples.numbers)), samples.servings)
    return (1 - candidate.weight) * rule + candidate.weight * said


def against_best(scores: Any, servings: Any) -> Any:
    np = numpy()
    _, place = np.unique(servings, return_inverse=True)
    best = np.full(place.max() + 1, -np.inf)
    np.maximum.at(best, place, scores)
    return scores / np.where(best[place] > 0, best[place], 1.0)


def concordance(scores: Any, labels: Any, weights: Any) -> tuple[float, float] | None:
    """Over pairs of a yes and a no: the share in which the yes is higher, a tie being half; with the pairs' weight."""
    np = numpy()
    yes, no = labels == 1, labels == 0
    if not yes.any() or not no.any():
        return None
    order = np.argsort(scores[no], kind="stable")
    lower, heavy = scores[no][order], np.concatenate([[0.0], np.cumsum(weights[no][order])])
    below, upto = np.searchsorted(lower, scores[yes], "left"), np.searchsorted(lower, scores[yes], "right")
    right = float((weights[yes] * (heavy[below] + heavy[upto]) / 2).sum())
    total = float(weights[yes].sum() * heavy[-1])
    return right / total, total


def choose(found: Sequence[Judged]) -> Judged:
    """The simplest that nothing beats by more than one standard error; the default, if even that one's gain may be luck."""
    default = best = next(each for each in found if each.candidate == DEFAULT)
    for each in found:
        if each.gain - best.gain > each.error:
            best = each
    return best if best.gain > CLEAR * best.error else default


def importances(found: Sequence[Fold], method: str, names: Sequence[str]) -> list[dict[str, Any]]:
    """What each feature is worth on unseen runs: how much worse the model gets when it is shuffled, with the spread."""
    np = numpy()
    luck = np.random.default_rng(1)
    told = []
    whole = mean_concordance(found, method, lambda held: held.numbers)
    for at, name in enumerate(names):
        losses = []
        for _ in range(REPEATS):

            def shuffled(held: Samples, at: int = at) -> Any:
                numbers = held.numbers.copy()
                numbers[:, at] = luck.permutation(numbers[:, at])
                return numbers

            losses.append(whole - mean_concordance(found, method, shuffled))
        told.append({"feature": name, "loss": round(float(np.mean(losses)), 4), "spread": round(float(np.std(losses)), 4)})
    return sorted(told, key=lambda each: -each["loss"])


def mean_concordance(found: Sequence[Fold], method: str, numbers_of: Callable[[Samples], Any]) -> float:
    np = numpy()
    units = []
    for fold in found:
        chances = np.asarray(fold.models[method].chances(numbers_of(fold.held)))
        unit = concordance(chances, fold.held.labels, fold.held.weights)
        if unit is not None:
            units.append(unit)
    return float(np.average([value for value, _ in units], weights=[weight for _, weight in units])) if units else 0.5


def candidates_for(methods: Sequence[str], weight: float | None) -> list[Candidate]:
    """The default first, then the simpler model and the smaller weight."""
    weights = WEIGHTS if weight is None else (weight,)
    return [DEFAULT, *(Candidate(method, each) for method in methods for each in weights)]


def fits_for(methods: Sequence[str], names: Sequence[str]) -> dict[str, Fit]:
    return {method: partial(FITS[method], names=names) for method in methods}
