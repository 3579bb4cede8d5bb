"""What is held out is later and of other tasks; pairs are of one task and not too many."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from herdbook.slowloop.export import splits

RUNS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 1_000), st.integers(0, 1)), max_size=40)


@given(RUNS, st.floats(0, 0.99))
def test_held_out_tasks_began_after_all_others(runs: list[tuple[int, int, int]], share: float) -> None:
    """A model would be examined on what came before what it was taught."""
    tasks, times = [run[0] for run in runs], [run[1] for run in runs]
    late = splits.held_out(tasks, times, share=share)
    begun = {task: min(time for other, time, _ in runs if other == task) for task in set(tasks)}
    early = [begun[task] for task in begun if task not in late]
    assert all(begun[task] >= other for task in late for other in early)
    assert not tasks or early, "nothing would be left to train on"
    held = sum(task in late for task in tasks)
    assert held >= share * len(tasks) or len(early) == 1


@given(RUNS)
def test_pairs_are_a_success_and_a_failure_of_one_task(runs: list[tuple[int, int, int]]) -> None:
    """A preference would be between runs of different tasks, or between two failures."""
    tasks, wins = [run[0] for run in runs], [run[2] for run in runs]
    pairs = list(splits.same_task_pairs(tasks, wins))
    assert all(tasks[won] == tasks[lost] and wins[won] and not wins[lost] for won, lost in pairs)
    assert len(pairs) == len(set(pairs))
    every = {(a, b) for a in range(len(runs)) for b in range(len(runs)) if tasks[a] == tasks[b] and wins[a] and not wins[b]}
    assert set(pairs) <= every
    assert len(pairs) == sum(min(splits.PAIRS_PER_TASK_MAX, sum(tasks[a] == task for a, _ in every)) for task in set(tasks))


def test_one_task_cannot_fill_the_dataset_with_pairs() -> None:
    """A task tried a thousand times would be all that the model learns."""
    wins = [number % 2 for number in range(1_000)]
    assert splits.PAIRS_PER_TASK_MAX == len(list(splits.same_task_pairs([1] * 1_000, wins)))


def test_an_opening_is_used_once() -> None:
    """One lucky run would be preferred to every failure that opened alike."""
    openings = [("train", "acme", "look")] * 5 + [("holdout", "acme", "look"), ("train", "acme", "")]
    pairs = list(splits.same_opening_pairs(openings, [1, 0, 0, 0, 1, 0, 1], paired={4}))
    assert [(0, 1)] == pairs
