"""What runs came to use decides for tasks like theirs, as a difference: bystanders and what is always used gain nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from herdbook.fastloop.precedents import AskedRow, PrecedentRow, lifts
from herdbook.record.precedents import EVERY, name_of, names_of, parts_of

PATH = 7
CENTS, STAGING = "totals are off by one cent", "staging refuses the connection"


def asked(*parts: tuple[str, float]) -> list[AskedRow]:
    rows = [(PATH, name_of(said), said, runs) for said, runs in parts]
    return [*rows, (PATH, EVERY, "", sum(runs for _, runs in parts))]


def use(version: int, said: str, used: float, *, since: float = 0.0, wrote: int = 0) -> PrecedentRow:
    return PATH, name_of(said) if said else EVERY, version, used, since, wrote


def lift(version: int, parts: Sequence[AskedRow], task: str, *rows: PrecedentRow) -> float:
    return lifts(parts, task, lambda names: [row for row in rows if row[1] in names]).get(version, 0.0)


def test_use_in_such_runs_counts_above_use_in_all() -> None:
    """An entry that is used whatever the task would come before the one this task needs."""
    parts = asked((CENTS, 10), (STAGING, 10))
    needed = [use(1, CENTS, 9), use(1, "", 9)]
    always = [use(2, CENTS, 9), use(2, STAGING, 9), use(2, "", 18)]
    assert lift(1, parts, CENTS, *needed, *always) > 0.6
    assert lift(2, parts, CENTS, *needed, *always) < 0.1
    assert 0.0 == lift(1, parts, STAGING, *needed, *always)


def test_what_such_a_run_wrote_is_believed_until_runs_do_without_it() -> None:
    """A note would stay first because somebody wrote it once, or be unknown to the next run."""
    fresh = [use(1, CENTS, 0, since=4, wrote=1), use(1, "", 0, since=4, wrote=1)]
    found = [lift(1, asked((CENTS, runs)), CENTS, *fresh) for runs in (4, 5, 8, 30)]
    assert 0.5 == found[0]
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.05


def test_a_task_in_other_words_finds_the_runs_that_were_asked_the_same() -> None:
    """Only a task repeated to the letter would profit from what was learnt."""
    rows = [use(1, CENTS, 9), use(1, "", 9)]
    parts = asked((CENTS, 10), (STAGING, 10))
    same, other = lift(1, parts, CENTS, *rows), lift(1, parts, "since Monday the totals are off by a cent", *rows)
    assert same > other > 0.3
    assert 0.0 == lift(1, parts, "the cent symbol is not printed", *rows)


@pytest.mark.parametrize(
    "task, parts",
    [
        ("fix: totals are off by one; staging refuses it", ["totals are off by one", "staging refuses it"]),
        ("short", ["short"]),
        ("Look at the build. It fails on main.", ["Look at the build", "It fails on main."]),
    ],
)
def test_a_task_is_taken_apart_into_what_it_asks_for(task: str, parts: list[str]) -> None:
    """Two tasks that share one of three wishes would have nothing to do with one another."""
    assert parts == parts_of(task)


def test_numbers_and_case_do_not_make_another_task() -> None:
    """Each build would be a task of its own."""
    assert name_of("build 41 Fails") == name_of("Build  1207 fails") != name_of("build fails")
    assert {} == names_of("  ") == names_of(None)
    assert EVERY in names_of("x")
