"""The two rules: relevance first, and the reciprocal ranks of the seeds; what each leg says, and what a ranker adds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from herdbook.fastloop import learned
from herdbook.fastloop.briefing import Briefer
from herdbook.fastloop.features import FORM, NAMES
from herdbook.fastloop.ordering import NO_EMBEDDER, Orderer
from herdbook.fastloop.search import Searcher
from herdbook.record.precedents import EVERY, name_of
from herdbook.record.tunables import DEFAULT
from herdbook.record.types import Version
from tests.fastloop.fake_record import NOW, TENANT, Asked, FakeRecord

RRF = replace(DEFAULT, fusion="rrf")


@dataclass
class Meanings:
    """Cosines by key."""

    by_key: dict[str, float]

    def cosines(self, tenant: int, question: str, versions: Sequence[Version]) -> tuple[dict[int, float], str]:
        return {version.id: self.by_key[version.key] for version in versions if version.key in self.by_key}, ""

    def nearest(self, tenant: int, question: str, limit: int) -> list[int]:
        return []


def keys(answer: dict[str, Any]) -> list[str]:
    return [entry["key"] for entry in answer["entries"]]


def brief(record: FakeRecord, *, semantics: Any = NO_EMBEDDER, **asked: Any) -> dict[str, Any]:
    return Briefer(record, Orderer(semantics=semantics)).brief(TENANT, Asked(**asked), now=NOW).answer


def three(record: FakeRecord) -> None:
    record.write("acme/ci", "old", "the pool of connections is small", age_days=100, confidence=0.9, moves=1)
    record.write("acme/ci", "new", "logs are verbose", age_days=1, confidence=0.5)
    record.write("acme/ci", "mid", "a pool", age_days=10, confidence=0.7)


def test_the_seeds_rule_is_theirs_to_the_digit() -> None:
    """The baseline of every bench would be another rule."""
    record = FakeRecord(tuned=RRF)
    three(record)
    found = brief(record, semantics=Meanings({"old": 0.9, "new": 0.3}), task="pool", explain=True)
    scores = {entry["key"]: entry["explain"]["score"] for entry in found["entries"]}
    confidences = {entry["key"]: entry["effective_confidence"] for entry in found["entries"]}
    by_confidence = sorted(confidences, key=lambda key: -confidences[key])
    expected = {
        "old": 0.4 / 61 + 0.2 / 62 + 0.2 / 63 + 0.2 / (61 + by_confidence.index("old")),
        "new": 0.4 / 62 + 0.2 / 61 + 0.2 / (61 + by_confidence.index("new")),
        "mid": 0.2 / 61 + 0.2 / 62 + 0.2 / (61 + by_confidence.index("mid")),
    }
    assert pytest.approx(expected, abs=1e-6) == scores
    assert sorted(expected, key=lambda key: -expected[key]) == keys(found)
    assert "rrf" == found["ranking"]["rule"]


def test_age_and_confidence_do_not_outvote_the_topic() -> None:
    """One fresh note about something else would stand above the answer."""
    record = FakeRecord()
    record.write("acme/ci", "pool", "the connection pool has 50 places", age_days=60, confidence=0.4)
    for number in range(30):
        record.write("acme/ci", f"k{number}", f"connection {number} is fine", confidence=0.95)
    assert "pool" == keys(brief(record, task="connection pool places"))[0]
    record.tuned = RRF
    assert "pool" != keys(brief(record, task="connection pool places"))[0]


def test_meaning_finds_what_words_do_not() -> None:
    """A question in other words would be answered with whatever happens to share one."""
    record = FakeRecord()
    record.write("acme/ci", "tz", "the suite passes with TZ=UTC only")
    record.write("acme/ci", "paint", "the calendar on the wall is blue")
    asked = "why do calendar specs break in Berlin"
    assert ["paint"] == keys(brief(record, task=asked))
    found = brief(record, task=asked, semantics=Meanings({"tz": 0.8, "paint": 0.1}))
    assert ["tz", "paint"] == keys(found)
    assert (["semantic", "keyword"], {}) == (found["ranking"]["legs"], found["ranking"]["left_out"])


def test_a_leg_that_is_not_there_is_said() -> None:
    """Nobody would know that half of the ranking is missing."""
    record = FakeRecord()
    record.write("acme/ci", "tz", "UTC")
    found = brief(record, task="UTC")
    assert "herdbook[embed]" in found["ranking"]["left_out"]["semantic"]
    assert ["keyword"] == found["ranking"]["legs"]
    searched = Searcher(record).search(TENANT, Asked(query="UTC"), now=NOW).answer
    assert "herdbook[embed]" in searched["ranking"]["left_out"]["semantic"]


def test_what_failed_sinks_and_what_held_rises_whatever_it_is_read_beside() -> None:
    """A note that burnt us would rank as high as one that helped."""
    record = FakeRecord()
    for key, counters in {"held": {"held": 6.0}, "failed": {"failed": 6.0}, "fresh": {}}.items():
        record.write("acme/ci", key, "the pool has 50 places", **counters)
    assert ["held", "fresh", "failed"] == keys(brief(record, task="pool places"))


def test_what_helped_whatever_was_asked_comes_before_what_shares_a_word() -> None:
    """What makes every run here likelier to succeed would stand behind chatter, because it does not repeat the task."""
    record = FakeRecord()
    record.write("acme/ci", "chatter", "the pool was seen in run 7")
    for number in range(12):
        record.write("acme/ci", f"other-{number}", "the pool was seen")
    record.write("acme/ci", "seed", "PYTHONHASHSEED=0", observed=1, held=12.0)
    record.write("acme/ci", "unproven", "PYTHONHASHSEED=1", held=12.0)
    record.write("acme/ci", "useless", "PYTHONHASHSEED=2", observed=1, held=6.0, failed=6.0)
    task = "pool places of the connections to the database"
    found = brief(record, task=task, tokens=2_000)
    assert "seed" == keys(found)[0]
    assert "useless" == keys(found)[-1], "what runs do as well without is behind what the task names"
    assert "unproven" not in keys(found), "nobody vouches for what is only claimed to have helped"
    record.tuned = replace(DEFAULT, effect_weight=0.0)
    assert "seed" not in keys(brief(record, task=task, tokens=2_000))[:12]
    searched = Searcher(record).search(TENANT, Asked(query="pool"), now=NOW).answer["results"]
    assert "seed" not in [entry["key"] for entry in searched], "a search finds what is asked for"


def test_a_precedent_for_the_task_takes_no_hint_away() -> None:
    """A hint that would have helped would go, because runs with such a task came to use another that names it as little."""
    task = "totals are off by one cent"
    record = FakeRecord()
    for key in ("hint", "used", "another"):
        record.write("acme/ci", key, f"{key} sets the mode")
    assert {"hint", "used", "another"} == set(keys(brief(record, task=task)))
    record.parts = [(1, part, "", 4.0) for part in (name_of(task), EVERY)]
    record.used = [(1, name_of(task), 2, 4.0, 0.0, 0)]
    found = brief(record, task=task, names=True)
    assert "used" == keys(found)[0]
    assert {"hint", "used", "another"} == set(keys(found))
    assert [] == found["left_out"]["names"]
    record.write("acme/ci", "named", "totals are rounded")
    found = brief(record, task=task, names=True)
    assert ["used", "named"] == keys(found), "words narrow, and what they set aside is counted and named"
    assert {("hint", "not about the task"), ("another", "not about the task")} == {
        (each["key"], each["reason"]) for each in found["left_out"]["names"]
    }
    assert 2 == found["left_out"]["filtered"]


def test_explaining_gives_every_legs_score_and_rank() -> None:
    """Why an entry stands where it does could not be told."""
    record = FakeRecord()
    three(record)
    found = brief(record, semantics=Meanings({"old": 0.9, "new": 0.3}), task="pool", explain=True)
    legs = {entry["key"]: entry["explain"]["legs"] for entry in found["entries"]}
    every = {"semantic", "keyword", "temporal", "confidence", "evidence", "precedent", "effect", "learned"}
    assert every == set(legs["old"]), "also those that were left out, with no rank"
    assert (0.9, 1) == (legs["old"]["semantic"]["score"], legs["old"]["semantic"]["rank"])
    assert None is legs["mid"]["semantic"]["rank"]
    assert [1, 2, 3] == [legs[key]["temporal"]["rank"] for key in ("new", "mid", "old")]
    searched = Searcher(record).search(TENANT, Asked(query="pool", explain=True), now=NOW).answer
    assert {1, 2} == {entry["explain"]["legs"]["keyword"]["rank"] for entry in searched["results"]}
    assert "explain" not in brief(record)["entries"][0]


def test_explaining_gives_what_helps_whatever_is_asked() -> None:
    """An entry would come first for a reason that none of its legs shows."""
    record = FakeRecord()
    record.write("acme/ci", "helps", "nothing of the question", held=20.0, observed=True)
    record.write("acme/ci", "named", "pool")
    found = brief(record, task="pool", explain=True)
    legs = {entry["key"]: entry["explain"]["legs"] for entry in found["entries"]}
    assert "effect" in found["ranking"]["legs"]
    assert (1, None) == (legs["helps"]["effect"]["rank"], legs["named"]["effect"]["rank"])
    relevance = legs["helps"]["effect"]["score"]
    assert relevance > 0.0 == legs["helps"]["keyword"]["score"] == legs["named"]["effect"]["score"]
    scores = {entry["key"]: entry["explain"]["score"] for entry in found["entries"]}
    raised = math.exp(2.0 * legs["helps"]["evidence"]["score"])
    assert pytest.approx(scores["helps"], rel=1e-3) == relevance * raised
    assert [] == brief(record, explain=True)["ranking"]["legs"], "of nothing asked, there is nothing to be relevant to"


def artefact(**changes: Any) -> dict[str, Any]:
    weights = [0.0] * len(NAMES)
    weights[NAMES.index("chars")] = 1.0
    plain = {"bias": 0.0, "means": [0.0] * len(NAMES), "scales": [1.0] * len(NAMES)}
    return {"form": FORM, "names": list(NAMES), "samples": 100, "kind": "logistic", "weights": weights, **plain, **changes}


def test_a_ranker_has_the_part_of_the_word_that_it_is_given() -> None:
    """A promoted ranker would change nothing, or decide everything."""
    record = FakeRecord()
    record.write("acme/ci", "short", 1, held=2.0)
    record.write("acme/ci", "long", "a value of many characters")
    scorer = learned.scorer(artefact())
    assert not isinstance(scorer, str)
    orderer = Orderer(scorers=lambda tenant, name: scorer)

    def order(weight: float) -> list[str]:
        record.tuned = replace(DEFAULT, ranker="r1", ranker_weight=weight)
        return keys(Briefer(record, orderer).brief(TENANT, Asked(), now=NOW).answer)

    assert (["short", "long"], ["long", "short"]) == (order(0.01), order(1.0))
    record.tuned = replace(RRF, ranker="r1", ranker_weight=0.3)
    found = Briefer(record, orderer).brief(TENANT, Asked(explain=True), now=NOW).answer
    [long] = [entry for entry in found["entries"] if entry["key"] == "long"]
    expected = 0.7 * (0.2 / 61 + 0.2 / 61) + 0.3 / 61
    assert pytest.approx(expected, abs=1e-6) == long["explain"]["score"]
    assert ("rrf+r1", ["learned"]) == (found["ranking"]["rule"], found["ranking"]["legs"])


def test_a_ranker_that_has_seen_little_says_what_confidence_says() -> None:
    """Five runs would reorder everything."""
    record = FakeRecord(tuned=replace(DEFAULT, ranker="r1", ranker_weight=1.0))
    record.write("acme/ci", "long", "a value of many characters", confidence=0.2)
    record.write("acme/ci", "short", 1, confidence=0.8)
    scorer = learned.scorer(artefact(samples=19))
    assert not isinstance(scorer, str)
    answer = Briefer(record, Orderer(scorers=lambda tenant, name: scorer)).brief(TENANT, Asked(), now=NOW).answer
    assert ["short", "long"] == keys(answer)


def test_a_ranker_that_cannot_be_used_is_said_and_left_out() -> None:
    """A briefing would fail, or silently rank by features of another meaning."""
    refused = learned.scorer(artefact(form="f0"))
    assert isinstance(refused, str)
    record = FakeRecord(tuned=replace(DEFAULT, ranker="r1"))
    record.write("acme/ci", "a", 1)
    answer = Briefer(record, Orderer(scorers=lambda tenant, name: refused)).brief(TENANT, Asked(), now=NOW).answer
    assert (["a"], True) == (keys(answer), "'f0'" in answer["ranking"]["left_out"]["learned"])
    assert all(isinstance(learned.scorer(artefact(**{name: []})), str) for name in ("weights", "means", "scales"))
    assert isinstance(learned.scorer(artefact(kind="forest")), str)


def test_trees_are_walked_as_they_are_written() -> None:
    """A model trained elsewhere would score otherwise here."""
    tree = {
        "feature": 1,
        "at": 0.5,
        "low": {"leaf": -1.0},
        "high": {"feature": 0, "at": 0.0, "low": {"leaf": 0.0}, "high": {"leaf": 2.0}},
    }
    scorer = learned.scorer(artefact(kind="trees", trees=[tree, {"leaf": 0.25}], start=0.5))
    assert not isinstance(scorer, str)
    rows = [[0.0, 0.5], [0.0, 0.6], [1.0, 0.6]]
    expected = [1 / (1 + math.exp(-x)) for x in (-0.25, 0.75, 2.75)]
    assert pytest.approx(expected) == scorer.scores(rows)
