"""Which runs are held out, and which are paired. Pure; the same runs give the same answer.

Runs of one task stay together, or a model would be examined on what it was taught; the tasks that came up last are held out,
since a model is wanted for what comes next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

PAIRS_PER_TASK_MAX: Final = 64

Pair = tuple[int, int]  # (the successful run, the failed one), by number


def held_out(tasks: Sequence[int], times: Sequence[int], *, share: float) -> frozenset[int]:
    """The tasks that came up last and together have at least this share of the runs; never all of them."""
    groups = sorted((min(times[number] for number in numbers), task, len(numbers)) for task, numbers in by_task(tasks))
    wanted, found = share * len(tasks), set()
    for _, task, count in reversed(groups[1:]):
        if wanted <= 0:
            break
        found.add(task)
        wanted -= count
    return frozenset(found)


def by_task(tasks: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """The numbers of each task's runs, in their order; sorting a list of numbers costs a fraction of a million small lists."""
    order = sorted(range(len(tasks)), key=tasks.__getitem__)
    return ((task, list(numbers)) for task, numbers in groupby(order, key=lambda number: tasks[number]))


def same_task_pairs(tasks: Sequence[int], successes: Sequence[int]) -> Iterator[Pair]:
    """Every success with every failure of its task, but not more than a number of them from one task."""
    for _, numbers in by_task(tasks):
        won = [number for number in numbers if successes[number]]
        lost = [number for number in numbers if not successes[number]]
        every = ((good, bad) for good in won for bad in lost)
        yield from (each for each, _ in zip(every, range(PAIRS_PER_TASK_MAX), strict=False))


def same_opening_pairs(openings: Sequence[tuple[str, ...]], successes: Sequence[int], *, paired: set[int]) -> Iterator[Pair]:
    """Runs no task has paired, by where and with which tool they opened: each is used once."""
    free = sorted((opening, number) for number, opening in enumerate(openings) if number not in paired and opening[-1])
    for _, group in groupby(free, key=lambda each: each[0]):
        numbers = [number for _, number in group]
        won = [number for number in numbers if successes[number]]
        yield from zip(won, (number for number in numbers if not successes[number]), strict=False)
