"""A briefing on an entity of a thousand entries inside a large record, in process."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, islice
from pathlib import Path

import herdbook
from bench import notes
from bench.product import another_run, filled, opened
from bench.timing import Claim, Result, Scale, cpu_seconds_each, interleave, percentile

ENTITY, ENTITY_ENTRIES = "bench/large", 1_000
RECORD_ENTRIES = 100_000
BRIEFINGS = 15  # a turn
BOUND_MS = 3.0
TASKS = tuple(notes.words(6, seed) for seed in range(1_000_000, 1_000_020))


def places(entries: int, others: int) -> Iterator[tuple[str, str]]:
    """So many of the entity's among so many others, evenly: it grew as the record did."""
    elsewhere = notes.places_as_written(others)
    for number in range(entries):
        yield ENTITY, f"key-{number}"
        yield from islice(elsewhere, others // entries)


Before = Callable[[int], object]


def median_ms(book: herdbook.Client, before: Before, tasks: Sequence[str | None]) -> float:
    """One turn: a run's briefings, each after something else happened, which is not timed."""
    run, seconds = another_run(book), []
    for number in range(BRIEFINGS):
        before(number)
        began = time.perf_counter()
        answer = run.brief(ENTITY, task=tasks[number % len(tasks)])
        seconds.append(time.perf_counter() - began)
        assert answer["known"] == ENTITY_ENTRIES, f"the briefing saw {answer['known']} entries"
    return percentile(seconds, 0.5) * 1e3


def claims(scale: Scale) -> Iterator[Result]:
    """Tracked briefings: without a task, with one, and right after a write to the entity."""
    with tempfile.TemporaryDirectory(prefix="bench-briefing-") as home:
        record = Path(home) / "record.db"
        filled(record, places(ENTITY_ENTRIES, RECORD_ENTRIES - ENTITY_ENTRIES), scale.say)
        with opened(record) as book:
            rewritten = count()

            def nothing(_: int) -> None:
                pass

            def rewrite(number: int) -> None:
                book.write(ENTITY, f"key-{number}", {"rewritten": next(rewritten)}, why="so that the entity has changed")

            sides: dict[str, tuple[str, Before, Sequence[str | None]]] = {
                "plain": ("without a task", nothing, [None]),
                "task": ("with a task", nothing, TASKS),
                "changed": ("with a task, after a write to the entity", rewrite, TASKS),
            }
            turns = interleave({name: partial(median_ms, book, *side[1:]) for name, side in sides.items()}, scale.passes)
            cpu = {
                "cpu_ms": cpu_seconds_each(lambda _: another_run(book).transport.call("brief", {"entity": ENTITY}), BRIEFINGS)
                * 1e3
            }
    for name, (how, _, _) in sides.items():
        yield Claim(
            name=f"brief.{name}",
            says=f"p50 of a briefing on {ENTITY_ENTRIES:,} of {RECORD_ENTRIES:,} entries, {how}",
            samples=tuple(turns[name]),
            sense="at most",
            bound=BOUND_MS,
            unit="ms",
            detail=cpu if name == "plain" else {},
        )
