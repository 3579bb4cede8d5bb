"""The search itself: what starts, what is skipped, what counts as a failure, and when it stops."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import herdbook
from herdbook.base.errors import InvalidRequest, Unavailable
from herdbook.boxes.fanout import Attempt, Board, Budget, FanOut, Variant, fan_out

SPACE = [Variant({"N": str(number)}) for number in range(6)]
ONE = Budget(at_once=1)


class Memory:
    """A board in this process."""

    def __init__(self) -> None:
        self.dead: dict[str, str] = {}

    def why_not(self, variant: Variant) -> str:
        return self.dead.get(variant.approach, "")

    def add(self, attempt: Attempt, *, evidence: str) -> None:
        self.dead[attempt.variant.approach] = f"{attempt.why} {evidence}"


def exits(codes: Callable[[int], int]) -> Callable[..., str]:
    def run(attempt: Attempt, *, timeout_seconds: float, stop: threading.Event) -> str:
        attempt.exit_code = codes(int(attempt.variant.env["N"]))
        return "first\nlast line\n\n"

    return run


def states(found: FanOut) -> list[str]:
    return [attempt.state for attempt in found.attempts]


def test_it_ends_with_the_first_that_passes() -> None:
    """Attempts after the winner are paid for and thrown away."""
    board = Memory()
    found = fan_out(SPACE, board, exits(lambda number: int(number != 2)), ONE)
    assert ["failed", "failed", "won", "not started", "not started", "not started"] == states(found)
    assert "N=2" == (found.winner and found.winner.variant.approach)
    assert ["N=0", "N=1"] == list(board.dead)
    assert "N=0: exit code 1: last line" in board.dead["N=0"]


def test_a_dead_end_costs_no_attempt() -> None:
    """Eight attempts at what is known to fail would leave none for what is not."""
    board = Memory()
    budget = replace(ONE, attempts=2)
    runs = [fan_out(SPACE, board, exits(lambda number: int(number != 5)), budget) for _ in range(3)]
    assert [2, 2, 1] == [found.count("failed") for found in runs]
    assert [0, 2, 4] == [found.count("skipped") for found in runs]
    assert runs[2].winner


def test_a_failure_is_seen_by_what_starts_next_at_the_same_time() -> None:
    """A board that is only read at the beginning would share nothing while it matters."""
    board = Memory()
    twice = [SPACE[0], SPACE[1], SPACE[0], SPACE[1]]
    found = fan_out(twice, board, exits(lambda number: 1), Budget(at_once=1))
    assert ["failed", "failed", "skipped", "skipped"] == states(found)


def test_what_still_runs_is_ended_and_is_no_dead_end() -> None:
    """An attempt that we ended ourselves would be told as one that does not work."""
    board, running = Memory(), threading.Event()

    def run(attempt: Attempt, *, timeout_seconds: float, stop: threading.Event) -> str:
        if attempt.variant is SPACE[0]:
            running.set()
            assert stop.wait(20)
            attempt.exit_code = 137
        else:
            assert running.wait(20)
            attempt.exit_code = 0
        return ""

    found = fan_out(SPACE[:2], board, run, Budget(at_once=2))
    assert ["ended", "won"] == states(found)
    assert {} == board.dead


@pytest.mark.parametrize("budget", [replace(ONE, attempts=2), replace(ONE, box_seconds=0), replace(ONE, wall_seconds=0)])
def test_a_spent_budget_starts_nothing(budget: Budget) -> None:
    """A budget that is only reported is no budget."""
    found = fan_out(SPACE, Memory(), exits(lambda number: 1), budget)
    assert (2 if budget.attempts == 2 else 0) == found.count("failed")
    assert found.winner is None


def test_a_command_that_cannot_run_is_no_dead_end() -> None:
    """A typing error would rule out the whole space, for everybody and for ever."""
    board = Memory()
    with pytest.raises(InvalidRequest, match="127"):
        fan_out(SPACE, board, exits(lambda number: 127), Budget(at_once=3))
    assert {} == board.dead


def test_a_box_that_cannot_be_made_stops_it_all() -> None:
    """One worker that fails and others that go on would spend the budget on half a search."""

    def run(attempt: Attempt, *, timeout_seconds: float, stop: threading.Event) -> str:
        if attempt.variant is SPACE[1]:
            raise Unavailable("no engine")
        assert stop.wait(20)
        attempt.exit_code = 137
        return ""

    board = Memory()
    with pytest.raises(Unavailable):
        fan_out(SPACE, board, run, Budget(at_once=2))
    assert {} == board.dead


def test_a_rule_holds_among_many_dead_ends(tmp_path: Path) -> None:
    """What no briefing has room for would be tried again, the more surely the more had failed."""
    with herdbook.open(tmp_path / "record.db", agent="tester", session="") as book:
        book.dead_end("acme/many", "half-up", {"env": {"ROUNDING": "half_up"}}, why="finance wants half_even")
        for number in range(60):
            value = {"env": {"N": str(number)}, "evidence": "x" * 2_000}
            book.dead_end("acme/many", f"tried-{number}", value, why=f"N={number} failed")
        for number in range(60):
            book.write("acme/many", f"stands-{number}", {"n": number}, why="known beside them")
        board = Board(book.call, "acme/many")
        assert "half-up: finance wants half_even" == board.why_not(Variant({"N": "99", "ROUNDING": "half_up"}))
        assert all(board.why_not(Variant({"N": str(number)})) for number in range(60))
        assert "" == board.why_not(Variant({"N": "99", "ROUNDING": "half_even"}))
        book.write("acme/many", "half-up", {"env": {"ROUNDING": "half_up"}}, why="finance thought again")
        assert "" == board.why_not(Variant({"N": "99", "ROUNDING": "half_up"}))
