"""One question over judged candidates: its legs are measured, and the rule of the path makes one order of them.

Briefings and searches go through here, on either engine. Legs that could not be measured are named with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final

from herdbook.fastloop.candidates import FADING, HEAD, ORDER, UNITS, VERSION, VERSION_ID, Row, Scale
from herdbook.fastloop.columns import Columns
from herdbook.fastloop.features import FORM, freshness_of, numbers_of
from herdbook.fastloop.kept import KeptPaths, Scene
from herdbook.fastloop.ranking import COSINE_MIN, UNTOUCHED, Legs, Scorer, blended, effects, fused, learned_of, leg_lists, weigh
from herdbook.fastloop.scope import StatsCache, found_inside, question_of
from herdbook.fastloop.sources import Semantics
from herdbook.record.trust import evidence
from herdbook.record.tunables import NO_RANKER, Tuning

NONE: Final[Mapping[int, float]] = MappingProxyType({})
NO_EMBEDDER: Final = "no embedder is installed: pip install 'herdbook[embed]'"
OFF: Final = "embedding is off: set embed=auto"
DIGITS: Final = 6
Scorers = Callable[[int, str], Scorer | str]  # by tenant and id; a text says why there is none


@dataclass(frozen=True, slots=True)
class Ordered:
    """What is about the question, with scores in place, and how that came about."""

    rows: list[Row]
    legs: Legs
    matched: bool  # False: nothing touches the question
    policy: str
    asked: str
    now: int
    scale: Scale
    tuning: Tuning
    behind: int = 0  # that come after these rows, where nobody looks
    passed_over: int = 0  # that are not about the question, of those that nobody named

    def numbers(self, row: Row) -> tuple[float, ...]:
        return numbers_of(row, asked=self.asked, now=self.now, scale=self.scale, legs=self.legs, tuning=self.tuning)

    def said(self) -> dict[str, Any]:
        """What the answer says of it."""
        legs = [name for name in ("semantic", "keyword", "precedent", "effect", "learned") if getattr(self.legs, name)]
        return {"rule": self.policy.partition("/")[0], "legs": legs, "left_out": self.legs.left_out}


@dataclass(frozen=True, slots=True)
class Measures:
    """The legs of one question by place, nothing but zero where there is no candidate."""

    keyword: Any
    precedent: Any
    semantic: Any  # None: left out
    missing: str  # of the semantic leg, and why

    def relevances(self, numpy: Any, tuning: Tuning) -> Any:
        """As `Legs.relevance`; None where nothing touches the question."""
        found = tuning.keyword_weight * self.keyword
        if self.semantic is not None:
            found = numpy.where(self.semantic >= COSINE_MIN, self.semantic, 0.0) + found
        narrows = found.any()
        found = found + tuning.precedent_weight * self.precedent
        if not found.any():
            return None
        return found if narrows else found + UNTOUCHED

    def legs(self, columns: Columns, places: Sequence[int]) -> Legs:
        """The legs of these places; of a leg that touches only others, its best, so that it counts as one that is there."""
        legs = Legs(left_out={"semantic": self.missing} if self.missing else {})
        for leg, scores in ((legs.keyword, self.keyword), (legs.semantic, self.semantic), (legs.precedent, self.precedent)):
            if scores is not None:
                found = [*places, int(scores.argmax())]
                each = zip(found, scores[found].tolist(), strict=True)
                leg.update({columns.ids[place]: score for place, score in each if score > 0.0})
        return legs


@dataclass(slots=True)
class Orderer:
    """Puts candidates in order, with the caches that takes."""

    cache: StatsCache = field(default_factory=StatsCache)
    kept: KeptPaths = field(default_factory=KeptPaths)
    semantics: Semantics | str = NO_EMBEDDER  # a text says why there is none
    scorers: Scorers | None = None

    def order(
        self,
        tenant: int,
        rows: Sequence[Row],
        question: str,
        *,
        asked: str,
        now: int,
        scale: Scale,
        tuning: Tuning,
        standing_stays: bool,
        precedents: Mapping[int, float] = NONE,
    ) -> Ordered:
        """The candidates of one question, or all of them where nothing is asked, or nothing touches what is asked."""
        legs = self.measured(tenant, rows, question) if question and rows else Legs()
        if precedents:
            legs.precedent = {row[VERSION_ID]: precedents[row[VERSION_ID]] for row in rows if row[VERSION_ID] in precedents}
        found, matched = list(rows), True
        if tuning.fusion == "rrf":
            found = fused(rows, legs, tuning)
        elif legs.keyword or legs.semantic or legs.precedent:
            relevances = [legs.relevance(row[VERSION_ID], tuning) for row in rows]
            matched = any(relevances)
            if not legs.narrows(tuning):
                relevances = [relevance + UNTOUCHED for relevance in relevances]
            if matched:
                legs.effect = effects(rows, tuning.effect_weight) if standing_stays else {}
                found = weigh(rows, relevances, legs.effect, standing_stays=standing_stays)
        else:
            matched = not question
        policy = tuning.fusion
        ordered = Ordered(found, legs, matched, f"{policy}/{FORM}", asked, now, scale, tuning)
        return ordered if tuning.ranker == NO_RANKER else self.learnt(tenant, ordered)

    def first(
        self,
        tenant: int,
        scene: Scene,
        question: str,
        *,
        asked: str,
        now: int,
        scale: Scale,
        tuning: Tuning,
        wanted: int | None,
        standing_stays: bool,
        precedents: Mapping[int, float] = NONE,
    ) -> Ordered:
        """As `order` of all candidates, but only the rows that may be among the first so many of a block; None wants all."""
        columns = scene.kept.columns
        if wanted is None or columns is None or tuning.fusion == "rrf" or tuning.ranker != NO_RANKER:
            rows = scene.rows()
            return self.order(
                tenant,
                rows,
                question,
                asked=asked,
                now=now,
                scale=scale,
                tuning=tuning,
                standing_stays=standing_stays,
                precedents=precedents,
            )
        candidates = columns.candidates(scene.guests, without=scene.hidden)
        legs, measures = Legs(), self.measures(tenant, scene, question, columns, candidates, precedents)
        relevances = None if measures is None else measures.relevances(columns.numpy, tuning)
        weight = tuning.effect_weight
        places, stay = columns.first(relevances, candidates, wanted, standing_stays=standing_stays, effect_weight=weight)
        rows = [scene.row(columns.ids[place]) for place in places]
        if measures is not None:
            legs = measures.legs(columns, places)
        if relevances is not None:
            legs.effect = effects(rows, weight) if standing_stays else {}
            rows = weigh(rows, relevances[places].tolist(), legs.effect, standing_stays=standing_stays)
        known, matched = int(candidates.sum()), relevances is not None or not question
        ordered = Ordered(rows, legs, matched, f"{tuning.fusion}/{FORM}", asked, now, scale, tuning)
        return replace(ordered, behind=stay - len(rows), passed_over=known - stay)

    def measures(
        self, tenant: int, scene: Scene, question: str, columns: Columns, candidates: Any, precedents: Mapping[int, float]
    ) -> Measures | None:
        """The question's legs over every candidate, by place; None where nothing is asked, or of nothing."""
        if not question or not candidates.any():
            return None
        keyword = columns.coverage(question_of(question), candidates)
        if keyword is None:
            rows = scene.rows()
            keyword = columns.numpy.zeros(len(candidates))
            keyword[[columns.places[row[VERSION_ID]] for row in rows]] = found_inside(question, [row[VERSION] for row in rows])
        precedent = columns.numpy.zeros(len(candidates))
        for version_id, lift in precedents.items():
            place = columns.places.get(version_id)
            if place is not None and candidates[place]:
                precedent[place] = lift
        if isinstance(self.semantics, str):
            return Measures(keyword, precedent, None, self.semantics)
        return Measures(keyword, precedent, *self.semantics.of_columns(tenant, question, columns, candidates))

    def measured(self, tenant: int, rows: Sequence[Row], question: str) -> Legs:
        versions = [row[VERSION] for row in rows]
        scores = self.cache.rank(tenant, question, versions)
        legs = Legs(keyword={version.id: score for version, score in zip(versions, scores, strict=True) if score > 0.0})
        if isinstance(self.semantics, str):
            legs.left_out["semantic"] = self.semantics
            return legs
        legs.semantic, missing = self.semantics.cosines(tenant, question, versions)
        if missing:
            legs.left_out["semantic"] = missing
        return legs

    def learnt(self, tenant: int, ordered: Ordered) -> Ordered:
        """With what the path's ranker says."""
        tuning, legs = ordered.tuning, ordered.legs
        scorer = "there is none" if self.scorers is None else self.scorers(tenant, tuning.ranker)
        if isinstance(scorer, str):
            legs.left_out["learned"] = f"ranker {tuning.ranker}: {scorer}"
            return ordered
        legs.learned = learned_of(ordered.rows, scorer, ordered.numbers)
        if tuning.fusion == "rrf":
            rows = fused(ordered.rows, legs, tuning)
        else:
            rows = blended(ordered.rows, legs.learned, tuning.ranker_weight)
        policy = f"{tuning.fusion}+{tuning.ranker}/{FORM}"
        return Ordered(rows, legs, ordered.matched, policy, ordered.asked, ordered.now, ordered.scale, tuning)


def explained(ordered: Ordered, shown: Sequence[int]) -> dict[int, dict[str, Any]]:
    """For each of these versions its score, and the score and rank that each leg gives it among all candidates."""
    lists = leg_lists(ordered.rows, ordered.legs)
    values: dict[str, Callable[[Row], float]] = {
        "semantic": lambda row: ordered.legs.semantic.get(row[VERSION_ID], 0.0),
        "keyword": lambda row: ordered.legs.keyword.get(row[VERSION_ID], 0.0),
        "precedent": lambda row: ordered.legs.precedent.get(row[VERSION_ID], 0.0),
        "effect": lambda row: ordered.legs.effect.get(row[VERSION_ID], 0.0),
        "temporal": partial(freshness_of, scale=ordered.scale, now=ordered.now),
        "confidence": lambda row: -row[FADING],
        "evidence": partial(evidence_of, scale=ordered.scale),
        "learned": lambda row: ordered.legs.learned.get(row[VERSION_ID], 0.0),
    }
    by_evidence = sorted(ordered.rows, key=lambda row: (-values["evidence"](row), row[ORDER]))
    for name, leg in (("precedent", ordered.legs.precedent), ("effect", ordered.legs.effect)):
        lists[name] = sorted(leg, key=leg.__getitem__, reverse=True)
    lists["evidence"] = list(map(itemgetter(VERSION_ID), by_evidence))
    ranks = {name: {version_id: rank for rank, version_id in enumerate(lists.get(name, ()), start=1)} for name in values}
    wanted = set(shown)
    return {
        row[VERSION_ID]: {
            "score": round(-row[ORDER] / UNITS, DIGITS),
            "legs": {
                name: {"score": round(values[name](row), DIGITS), "rank": found.get(row[VERSION_ID])}
                for name, found in ranks.items()
            },
        }
        for row in ordered.rows
        if row[VERSION_ID] in wanted
    }


def evidence_of(row: Row, scale: Scale) -> float:
    held, failed = row[HEAD][9:11]
    return evidence(held, failed, scale.bases.get(row[VERSION].path, 0.5))
