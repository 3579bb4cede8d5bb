"""A briefing and a scoped search of small and large paths: warm, and after one write and one outcome at the path.

Half of the entries have outcomes, as at a path that is worked at: one more outcome bears on the evidence of all of them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import herdbook
from bench import notes
from bench.product import another_run, filled, opened
from bench.timing import Claim, Result, Scale, interleave, percentile, ratios

ENTITY = "bench/large"
BOUNDS_MS = {100: 1.0, 1_000: 1.5, 10_000: 5.0}
CHANGED_BOUND = 2.0
ASKED = 15  # a turn
USED_AT_ONCE = 50  # entries by a run
TASKS = tuple(notes.words(6, seed) for seed in range(1_000_000, 1_000_020))

Act = Callable[[int], object]


def seconds(act: Act, before: Act) -> float:
    """The median of one turn, each after something that is not timed."""
    found = []
    for number in range(ASKED):
        before(number)
        began = time.perf_counter()
        act(number)
        found.append(time.perf_counter() - began)
    return percentile(found, 0.5)


def claims(scale: Scale) -> Iterator[Result]:
    """Each size has a record of its own, so that nothing else is in it."""
    for entries, bound in BOUNDS_MS.items():
        with tempfile.TemporaryDirectory(prefix="bench-paths-") as home:
            record = Path(home) / "record.db"
            filled(record, ((ENTITY, f"key-{number}") for number in range(entries)), scale.say)
            with opened(record) as book:
                yield from of_size(book, entries, bound, scale)


def tried(book: herdbook.Client, entries: int) -> None:
    """Outcomes for half of them, good ones and bad ones."""
    for number, begin in enumerate(range(0, entries // 2, USED_AT_ONCE)):
        keys = range(begin, min(begin + USED_AT_ONCE, entries // 2))
        used = [{"entity": ENTITY, "key": f"key-{key}"} for key in keys]
        another_run(book).commit_outcome("failure" if number % 3 == 0 else "success", task_input="a task", used=used)


def of_size(book: herdbook.Client, entries: int, bound: float, scale: Scale) -> Iterator[Result]:
    tried(book, entries)
    run, fresh = another_run(book), count()
    began = time.perf_counter()
    run.brief(ENTITY, task=TASKS[0])
    cold = time.perf_counter() - began

    def change(_: int) -> None:
        number = next(fresh)
        value = {**notes.NOTES[number % entries % len(notes.NOTES)], "again": number}  # as long as it was, so as many are shown
        book.write(ENTITY, f"key-{number % entries}", value, why=notes.why(number))
        other = another_run(book)
        other.read(ENTITY, f"key-{(number + 1) % entries}")
        other.commit_outcome("success", ref=f"changed-{number}", task_input="a task")

    def brief(number: int) -> object:
        return run.brief(ENTITY, task=TASKS[number % len(TASKS)])

    def search(number: int) -> object:
        return run.search(TASKS[number % len(TASKS)], entity=ENTITY)

    def nothing(_: int) -> None:
        pass

    sides = {"brief": (brief, nothing), "changed": (brief, change), "search": (search, nothing)}
    turns = interleave({name: partial(seconds, *side) for name, side in sides.items()}, scale.passes)
    for name in ("brief", "search"):
        yield Claim(
            name=f"paths.{name}.{entries}",
            says=f"p50 of a {name} of a path with {entries:,} entries, warm",
            samples=tuple(each * 1e3 for each in turns[name]),
            sense="at most",
            bound=bound,
            unit="ms",
            detail={"cold_ms": cold * 1e3},
        )
    yield Claim(
        name=f"paths.changed.{entries}",
        says=f"the same briefing after a write and an outcome among {entries:,} entries, against a warm one",
        samples=ratios(turns["changed"], turns["brief"]),
        sense="at most",
        bound=CHANGED_BOUND,
    )
