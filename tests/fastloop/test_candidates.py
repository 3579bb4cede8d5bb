"""The quick ways of ranking a thousand entries give what the plain ones would."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.fastloop.briefing import Briefer, in_block
from herdbook.fastloop.candidates import (
    BLOCKS,
    PLAIN,
    UNITS,
    Gathered,
    Row,
    best_first,
    head_row,
    judge,
)
from herdbook.fastloop.decay import FLOOR, effective_now
from herdbook.fastloop.kept import Kept, gather
from herdbook.fastloop.scope import StatsCache
from herdbook.record.trust import evidence, standing
from herdbook.record.types import Head, Version
from tests.fastloop.fake_record import NOW, TENANT, Asked, FakeRecord

VERSION = FakeRecord().write("acme/ci", "port", 22)
NUMBERS = st.sampled_from([-1.0, -0.5, -0.25, 0.0])  # few, so that there are ties
PLACES = st.tuples(st.integers(0, BLOCKS - 1), st.integers(-5, 0), NUMBERS, st.integers(-3, 0))


@given(st.lists(PLACES, max_size=60), st.integers(1, 70))
def test_each_block_is_in_order_as_far_as_a_budget_reaches(places: list[tuple[int, int, float, int]], count: int) -> None:
    """The best entry of a large path would stand behind a weaker one, or nowhere."""
    rows: list[Row] = [
        (*place, number, "unproven", VERSION, (number, None, 0.5, 0, 0, 0, 0, 0.0, None, 0.0, 0.0), None, 1.0)
        for number, place in enumerate(places)
    ]
    found, expected = best_first(rows, count), sorted(rows)
    assert sorted(found) == found
    for block in range(BLOCKS):
        assert [row for row in expected if row[0] == block][:count] == [row for row in found if row[0] == block][:count]


@given(
    st.floats(0, 1),
    st.floats(-1, 3_000),
    st.integers(0, 50),
    st.integers(0, 9),
    st.integers(0, 1),
    st.integers(0, 1),
    st.floats(0, 4),
    st.floats(0, 20),
)
def test_a_place_follows_from_the_rules_of_trust_and_decay(
    confidence: float,
    age_days: float,
    recalls: int,
    moves: int,
    observed: int,
    corroborated: int,
    failed_since: float,
    held: float,
) -> None:
    """A briefing would rank and fade by other rules than those that are written down."""
    record = FakeRecord()
    counters = {
        "recalls": recalls,
        "moves": moves,
        "observed": observed,
        "corroborated": corroborated,
        "failed_since": failed_since,
        "held": held,
        "failed": failed_since,
    }
    version = record.write("acme/ci", "port", 22, confidence=confidence, age_days=age_days, **counters)
    gathered, head = Gathered(), record.trust[version.id]
    judge([head_row(head)], {version.id: version}, gathered, now=NOW, floor=FLOOR)
    effective = effective_now(confidence, NOW - version.at, "fact", recalls, moves)
    if standing(head) == "unproven" and effective < FLOOR:
        assert [version] == gathered.faded
    else:
        [row] = gathered.rows
        days = 60.0 if moves else 30.0
        score = (1.0 - PLAIN.freshness_span * (1.0 - 0.5 ** (max(0.0, age_days) / days))) * math.exp(
            PLAIN.evidence_lambda * evidence(held, failed_since, 0.5)
        )
        assert standing(head) == row[5]
        assert pytest.approx(score, abs=1e-6) == -row[1] / UNITS
        assert pytest.approx(effective) == -row[2]


class Moving(FakeRecord):
    """A record in which an outcome arrives between judging and showing."""

    def trust_of(self, tenant: int, version_ids: Sequence[int]) -> dict[int, Head]:
        found = super().trust_of(tenant, version_ids)
        return {
            number: head._replace(confidence=0.1, corroborated=0, last_type="failure", last_at=NOW)
            for number, head in found.items()
        }


def test_an_answer_agrees_with_itself_while_trust_moves() -> None:
    """An entry would stand under "Stands" and say of itself that it does not."""
    record = Moving()
    record.write("acme/ci", "port", 22, confidence=0.9, corroborated=1)
    answer = Briefer(record).brief(TENANT, Asked(), now=NOW).answer
    shown = answer["entries"][0]
    assert ("corroborated", 0.9, "failure") == (shown["standing"], shown["confidence"], shown["last_outcome"]["type"])
    assert "## Stands: corroborated\n- `port = 22` ada new v1, failure now" in answer["markdown"]


def test_an_entry_whose_trust_is_lost_is_left_out_and_counted() -> None:
    """One damaged row would take the whole briefing with it."""

    class Losing(FakeRecord):
        def trust_of(self, tenant: int, version_ids: Sequence[int]) -> dict[int, Head]:
            return {number: head for number, head in super().trust_of(tenant, version_ids).items() if head.key != "lost"}

    record = Losing()
    for key in ("lost", "kept"):
        record.write("acme/ci", key, 1)
    answer = Briefer(record).brief(TENANT, Asked(), now=NOW).answer
    assert (["kept"], 1) == ([view["key"] for view in answer["entries"]], answer["left_out"]["budget"])


def test_full_trust_is_asked_for_what_is_shown_only() -> None:
    """A briefing on a large path would cost what it costs to show all of it."""

    class Counting(FakeRecord):
        asked = 0

        def trust_of(self, tenant: int, version_ids: Sequence[int]) -> dict[int, Head]:
            self.asked += len(version_ids)
            return super().trust_of(tenant, version_ids)

    record = Counting()
    for number in range(400):
        record.write("acme/ci", f"k{number}", number)
    answer = Briefer(record).brief(TENANT, Asked(), now=NOW).answer
    assert len(answer["entries"]) <= record.asked < 400 // 3


def test_a_ranking_is_remembered_for_the_same_versions_only() -> None:
    """A new note would not be found by the question that was asked before it."""
    cache, record = StatsCache(), FakeRecord()
    versions: list[Version] = [record.write("acme/ci", f"k{at}", said) for at, said in enumerate(("build log", "cache"))]
    before: Any = cache.rank(TENANT, "cache", versions)
    assert before is cache.rank(TENANT, "cache", list(versions))
    versions.append(record.write("acme/ci", "k2", "cache"))
    after = cache.rank(TENANT, "cache", versions)
    assert [False, True, True] == [score > 0 for score in after]
    assert [0.0] == cache.rank(TENANT, "log", versions[1:2])


def test_a_gathered_path_asks_the_record_once() -> None:
    """Every ancestor would cost a query of its own."""
    record = FakeRecord()
    for path in ("acme", "acme/ci"):
        record.write(path, "port", 22)
    kept = Kept(FLOOR, in_block)
    kept.follow(record, TENANT, ["acme/ci", "acme"], now=NOW, scale=PLAIN)
    assert 2 == gather(record, TENANT, kept, now=NOW).gathered.known
    assert {"heads": 1, "versions": 1} == record.calls
