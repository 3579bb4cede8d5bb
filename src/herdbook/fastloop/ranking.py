"""Which entries first: the rules that make one order of relevance, freshness, evidence and what a ranker has learnt.

`relevance`, the default: cosine and keyword coverage together, times what age and evidence make of it, so that nothing outvotes
the topic. `rrf` is the reciprocal rank fusion of the seeds, exact. A leg that is not there is left out, and said. Pure: the
question's legs are handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, Protocol

from herdbook.fastloop.candidates import (
    ANYWAY,
    BLOCK,
    ENTRIES,
    FADING,
    NAME,
    ORDER,
    STALENESS,
    UNITS,
    VERSION_ID,
    Row,
    reordered,
)
from herdbook.record.trust import acts
from herdbook.record.tunables import Tuning

EFFECT_MAX: Final = 0.5  # what helps whatever is asked is as relevant as half a perfect match, at most
COSINE_MIN: Final = 0.2  # below it two texts have nothing to do with one another, whatever the model
LEARNED_MAX: Final = 200  # so many of the first get the ranker's word
UNTOUCHED: Final = 1e-3  # of each entry where only precedents touch the question: they say what is of use, not what is not
SAMPLES_MIN: Final = 20  # seed: below it a ranker falls back to the order of confidence


class Scorer(Protocol):
    """A trained ranker."""

    @property
    def samples(self) -> int:
        """How many runs it was trained on."""
        ...

    def scores(self, numbers: Sequence[Sequence[float]]) -> list[float]:
        """How likely each entry is to help, from 0 to 1, by its features."""
        ...


@dataclass(slots=True)
class Legs:
    """What was measured of each candidate for one question, by version; an empty leg was left out for the reason given."""

    keyword: dict[int, float] = field(default_factory=dict)
    semantic: dict[int, float] = field(default_factory=dict)
    precedent: dict[int, float] = field(default_factory=dict)  # no leg of rrf, which is the seeds' own
    learned: dict[int, float] = field(default_factory=dict)
    effect: dict[int, float] = field(default_factory=dict)  # of what stands, whatever is asked; no leg of rrf either
    left_out: dict[str, str] = field(default_factory=dict)  # leg: why

    def narrows(self, tuning: Tuning) -> bool:
        """Whether words or meaning name what the question is about, so that the rest is about something else."""
        return bool(self.keyword and tuning.keyword_weight) or any(cosine >= COSINE_MIN for cosine in self.semantic.values())

    def relevance(self, version_id: int, tuning: Tuning) -> float:
        """Cosine, coverage and precedents together; one where nothing was asked."""
        if not self.keyword and not self.semantic and not self.precedent:
            return 1.0
        cosine = self.semantic.get(version_id, 0.0)
        said = (cosine if cosine >= COSINE_MIN else 0.0) + tuning.keyword_weight * self.keyword.get(version_id, 0.0)
        return said + tuning.precedent_weight * self.precedent.get(version_id, 0.0)


def effects(rows: Sequence[Row], effect_weight: float) -> dict[int, float]:
    """Of what stands, runs ended better than others: that is relevance to any task of the place.

    By as much as age and evidence raise it, within EFFECT_MAX (docs/decisions/0026-effect-is-relevance.md).
    """
    return {
        row[VERSION_ID]: effect_weight * min(EFFECT_MAX, -row[ORDER] / UNITS - 1.0)
        for row in rows
        if row[ORDER] < -UNITS and row[BLOCK] == ENTRIES and acts(row[NAME])
    }


def weigh(rows: Sequence[Row], relevances: Sequence[float], effect: Mapping[int, float], *, standing_stays: bool) -> list[Row]:
    """The rows that are about the question, each with its relevance in its score; what stands may stay in a block behind them."""
    found: list[Row] = []
    for row, about in zip(rows, relevances, strict=True):
        relevance = about + effect.get(row[VERSION_ID], 0.0)
        if relevance > 0.0:
            found.append(rescored(row, relevance * -row[ORDER]))
        elif standing_stays and acts(row[NAME]):
            found.append((ANYWAY, *row[1:]))
    return found


def rescored(row: Row, score: float) -> Row:
    """The row with another score, in UNITS."""
    return reordered(row, -int(score + 0.5))


def fused(rows: Sequence[Row], legs: Legs, tuning: Tuning) -> list[Row]:
    """Reciprocal rank fusion as the seeds have it: each leg gives weight / (k + rank), ranks beginning with one.

    A leg lists what it found: words and meaning only what they touch, age and confidence everything.
    """
    lists = leg_lists(rows, legs)
    weights = {
        "semantic": tuning.rrf_semantic,
        "keyword": tuning.rrf_keyword,
        "temporal": tuning.rrf_temporal,
        "confidence": tuning.rrf_confidence,
    }
    if "learned" in lists:
        weights = {name: weight * (1.0 - tuning.ranker_weight) for name, weight in weights.items()}
        weights["learned"] = tuning.ranker_weight
    scores: dict[int, float] = dict.fromkeys(map(itemgetter(VERSION_ID), rows), 0.0)
    for name, listed in lists.items():
        for rank, version_id in enumerate(listed, start=1):
            scores[version_id] += weights[name] / (tuning.rrf_k + rank)
    return [rescored(row, scores[row[VERSION_ID]] * UNITS) for row in rows]


def leg_lists(rows: Sequence[Row], legs: Legs) -> dict[str, list[int]]:
    """Each leg's own list of versions, the best first; equals in the order they were written, the newest first."""
    newest = sorted(rows, key=lambda row: (row[STALENESS], -row[VERSION_ID]))
    lists = {
        "temporal": [row[VERSION_ID] for row in newest],
        "confidence": [row[VERSION_ID] for row in sorted(newest, key=itemgetter(FADING))],
    }
    for name, scores in (("semantic", legs.semantic), ("keyword", legs.keyword), ("learned", legs.learned)):
        if scores:
            found = [row[VERSION_ID] for row in newest if scores.get(row[VERSION_ID], 0.0) > 0.0]
            lists[name] = sorted(found, key=lambda version_id: -scores[version_id])
    return lists


def blended(rows: list[Row], learned: dict[int, float], weight: float) -> list[Row]:
    """The ranker's word beside the rule's, each measured against the best of these rows; who was not asked keeps the rule's."""
    best = float(max((-row[ORDER] for row in rows), default=0)) or 1.0
    highest = max(learned.values(), default=0.0) or 1.0

    def mixed(row: Row) -> float:
        return (1.0 - weight) * -row[ORDER] + weight * best * learned[row[VERSION_ID]] / highest

    return [rescored(row, mixed(row)) if row[VERSION_ID] in learned else row for row in rows]


def learned_of(rows: Sequence[Row], scorer: Scorer, numbers: Callable[[Row], Sequence[float]]) -> dict[int, float]:
    """What the ranker says of the first rows. One that has seen too little says what confidence says."""
    first = sorted(rows, key=itemgetter(ORDER))[:LEARNED_MAX]
    if scorer.samples < SAMPLES_MIN:
        return {row[VERSION_ID]: -row[FADING] for row in first}
    return dict(zip(map(itemgetter(VERSION_ID), first), scorer.scores([numbers(row) for row in first]), strict=True))
