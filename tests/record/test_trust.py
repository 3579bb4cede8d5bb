"""The arithmetic of trust, and that the database's is the same: whatever is revised, confidence is the replay."""

from __future__ import annotations

import math
import sqlite3
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.base.errors import InvalidValue
from herdbook.record import credit, trust
from herdbook.testing.records import Desk, person
from tests.record.files import shell, sqlite_book

units = st.floats(0, 1)
factors = st.sampled_from(sorted(trust.MULTIPLIERS.values())) | st.floats(0, 2)


def test_the_seeds_multipliers() -> None:
    """Everybody was told these numbers."""
    assert {"success": 1.03, "minor_failure": 0.92, "failure": 0.90, "critical_failure": 0.85} == trust.MULTIPLIERS


@pytest.mark.parametrize(
    "x", [math.nan, math.inf, -math.inf, -0.1, 1.0000000001, True, False, "0.8", None, [0.5], 10**400, -(10**400)]
)
def test_the_only_door_into_confidence(x: object) -> None:
    """Not-a-number would become full trust in the first clamp it meets."""
    with pytest.raises(InvalidValue):
        trust.confidence(x)


@given(units)
def test_what_is_within_bounds_passes_the_door(x: float) -> None:
    """A legal number would be refused, or come out as another."""
    assert x == trust.confidence(x)
    assert math.copysign(1.0, trust.confidence(x)) == 1.0


@given(units, st.lists(factors, max_size=50))
def test_a_fold_stays_within_bounds(initial: float, moves: list[float]) -> None:
    """Confidence would leave [0, 1]."""
    x = initial
    for factor in moves:
        x = trust.moved(x, factor)
        assert 0.0 <= x <= 1.0
    assert x == trust.fold(initial, moves)


def test_a_move_cannot_be_taken_back_by_division() -> None:
    """If it could, a revision need not fold again, and this test should go."""
    assert trust.fold(0.99, [1.03, 0.85]) / 1.03 != pytest.approx(trust.fold(0.99, [0.85]))


@given(st.lists(st.tuples(st.booleans(), units), min_size=1, max_size=5), st.floats(0, 1))
def test_evidence_does_not_depend_on_the_order(causes: list[tuple[bool, float]], base: float) -> None:
    """Which of two runs was heard of first would decide what ranks."""
    found = set()
    for order in permutations(causes):
        held = math.fsum(weight for good, weight in order if good)
        failed = math.fsum(weight for good, weight in order if not good)
        found.add(trust.evidence(held, failed, base))
    assert 1 == len(found)
    assert -1.0 <= found.pop() <= 1.0


@given(st.floats(0, 1000), st.floats(0, 1))
def test_a_bystander_gains_nothing(runs: float, base: float) -> None:
    """An entry that stands beside others where most runs succeed would rise with them."""
    assert pytest.approx(0.0, abs=1e-9) == trust.evidence(runs * base, runs * (1 - base), base)


@given(st.floats(0, 100), st.floats(0, 100), st.floats(0.01, 0.99))
def test_a_success_helps_and_a_failure_hurts(held: float, failed: float, base: float) -> None:
    """Something would be ranked higher for having failed."""
    here = trust.evidence(held, failed, base)
    assert trust.evidence(held + 1, failed, base) > here > trust.evidence(held, failed + 1, base)


class Counters(NamedTuple):
    observed: int = 0
    corroborated: int = 0
    held: float = 0.0
    failed: float = 0.0
    failed_since: float = 0.0


@pytest.mark.parametrize(
    "counters, expected, acts",
    [
        (Counters(), "unproven", False),
        (Counters(held=99), "unproven", False),
        (Counters(observed=1), "observed", True),
        (Counters(observed=1, corroborated=1), "corroborated", True),
        (Counters(corroborated=1), "corroborated", True),
        (Counters(observed=1, failed_since=1.9), "observed", True),
        (Counters(observed=9, corroborated=9, held=99, failed_since=2), "contested", False),
        (Counters(failed_since=2), "contested", False),
    ],
)
def test_standing(counters: Counters, expected: str, acts: bool) -> None:
    """Something would be acted on that has not earned it, or not acted on though it has."""
    assert (expected, acts) == (trust.standing(counters), trust.acts(trust.standing(counters)))
    assert "retired" == trust.standing(counters, expired=True)
    assert not trust.acts("retired")
    assert {expected, "retired"} <= set(trust.STANDINGS)


@pytest.mark.parametrize(
    "path, expected", [("a/b/c", 3.0), ("a/b", 2.0), ("a/bc", 1.0), ("a", 1.0), ("b", 0.5), ("ab", 0.5), ("a/b/c/d", 3.0)]
)
def test_the_nearest_factor(path: str, expected: float) -> None:
    """A path would be moved by what was set for a namesake."""
    assert expected == credit.nearest_factor(path, {"": 0.5, "a": 1.0, "a/b": 2.0, "a/b/c": 3.0})
    assert credit.nearest_factor(path, {}) is None


# --- the database's arithmetic against a replay ------------------------------------------------------------------------

KINDS = sorted(trust.MULTIPLIERS)
steps = st.lists(
    st.tuples(st.just("outcome"), st.sampled_from(KINDS), st.sampled_from(["used", "served", "failed attempt"]))
    | st.tuples(st.just("revise"), st.sampled_from(KINDS), st.integers(0, 30))
    | st.tuples(st.just("attest"), st.sampled_from(["success", "failure"]), st.integers(0, 30))
    | st.tuples(st.just("foreign"), st.sampled_from(KINDS), st.just(0)),
    min_size=1,
    max_size=12,
)


class Replay:
    """A claim's moves, each as [outcome, how, factor, credit, held]; counted again from the beginning each time."""

    def __init__(self, initial: float) -> None:
        self.initial = initial
        self.moves: list[list[Any]] = []
        self.types: list[str] = []
        self.attested: list[set[str]] = []
        self.counted = False

    def outcome(self, kind: str, how: str) -> None:
        number = len(self.types)
        self.types.append(kind)
        self.attested.append(set())
        given = 0.0 if self.counted or how == "foreign" else 1.0
        if how != "foreign":
            self.counted = True
        if how != "failed attempt":
            weight = 0.2 if how == "served" else 1.0
            self.moves.append([number, how, trust.MULTIPLIERS[kind], given * weight, kind == "success"])
        else:
            self.moves.append([number, "attempt", 1.0, given, False])

    def revise(self, number: int, kind: str) -> None:
        self.types[number] = kind
        for move in self.moves:
            if move[0] == number and move[1] != "attempt":
                move[2], move[4] = trust.MULTIPLIERS[kind], kind == "success"

    def attest(self, number: int, result: str) -> None:
        if result in self.attested[number]:
            return
        self.attested[number].add(result)
        for move in self.moves:
            if move[0] == number and move[1] != "foreign":
                move[3] = 0.2 if move[1] == "served" else 1.0
        if result == "failure" and self.types[number] == "success":
            self.revise(number, "failure")

    @property
    def counters(self) -> tuple[float, float, float, float]:
        since = 0.0
        for *_, weight, held in self.moves:
            since = since * (1 - weight) if held else since + weight
        return (
            trust.fold(self.initial, [move[2] for move in self.moves]),
            sum(move[3] for move in self.moves if move[4]),
            sum(move[3] for move in self.moves if not move[4]),
            since,
        )


class Bench(NamedTuple):
    desk: Desk
    raw: sqlite3.Connection


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = Path(tmp_path_factory.mktemp("replay")) / "record.db"
    book = sqlite_book(path, synchronous="NORMAL")
    desk = person(book.open())
    raw = shell(path)
    yield Bench(desk, raw)
    raw.close()
    book.close()


def counters(raw: sqlite3.Connection, key: str) -> list[float]:
    row = raw.execute(
        "SELECT c.confidence, c.held, c.failed, c.failed_since FROM claim c JOIN version v ON v.entry = c.entry WHERE v.key = ?",
        (key,),
    ).fetchone()
    return list(row)


@given(initial=st.sampled_from([0.0, 0.5, 0.97, 1.0]) | units, told=steps)
def test_any_history_of_outcomes_and_revisions_equals_its_replay(bench: Bench, initial: float, told: list[Any]) -> None:
    """A number would be believed that nobody can work out again from the log."""
    desk, raw = bench
    key = f"k{bench.raw.execute('SELECT count(*) FROM entry').fetchone()[0]}"
    desk.write(key, 1, confidence=initial)
    replay = Replay(initial)
    refs: list[str] = []
    for what, kind, more in told:
        if what == "outcome":
            ref = f"{key}-{len(refs)}"
            session = desk.begin(ref)
            if more == "served":
                desk.read(key, session=session)
                desk.outcome(session, kind, ref=ref)
            elif more == "used":
                desk.outcome(session, kind, ref=ref, used=[desk.named(key)])
            else:
                desk.do("attempt", session=session, result="failure", used=[desk.named(key)])
                desk.outcome(session, kind, ref=ref, used=[])
            refs.append(ref)
            replay.outcome(kind, more)
        elif what == "foreign":
            ref = f"{key}-{len(refs)}"
            desk.outcome(desk.begin(ref), kind, ref=ref, used=[])
            raw.execute(
                "INSERT INTO outcome_cause (tenant, outcome, version) SELECT 1, o.id, v.id FROM outcome o, version v"
                " WHERE o.ref = ? AND v.key = ?",
                (ref, key),
            )
            refs.append(ref)
            replay.outcome(kind, "foreign")
        elif refs and what == "revise":
            desk.do("revise_outcome", ref=refs[more % len(refs)], type=kind)
            replay.revise(more % len(refs), kind)
        elif refs:
            desk.do("attest", ref=refs[more % len(refs)], result=kind)
            replay.attest(more % len(refs), kind)
        assert pytest.approx(replay.counters, abs=1e-12) == counters(raw, key)
