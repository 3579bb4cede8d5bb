"""What a large record costs over a small one: every in-process claim at a thousand entries, and at many times as many.

Reads are taken twice: of a thousand entries spread over the whole record, again and again; and of entries read for the first
time since the record was opened, seal check included. Writes begin and supersede entries anywhere; each outcome rests on the
entries of one entity, which were written at different times. Briefings and searches are of an entity of one size, which grew as
the record did.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import herdbook
from bench import briefing, notes
from bench.outcomes import after_reading, commit
from bench.product import another_run, filled, opened
from bench.timing import Claim, Result, Scale, Side, interleave, ratios, seconds_each

SMALL = 1_000
WORKING_SET = 1_000
RANKED = 100  # entries of the entity that is ranked
WRITES, READS, RANKINGS = 200, 1_000, 100  # a turn
BOUND = 1.5

MakeSide = Callable[[herdbook.Client, Path, int], Side]


def write_side(book: herdbook.Client, record: Path, entries: int) -> Side:
    """Every second write supersedes an entry somewhere, the others begin one."""
    chosen, fresh = random.Random(2), iter(range(entries, 100 * entries + 1_000_000))

    def write(number: int) -> None:
        entry = next(fresh) if number % 2 else chosen.randrange(entries)
        book.write(*notes.place(entry), [next(fresh), "again"], why=notes.why(number))

    return lambda: seconds_each(write, WRITES)


def read_side(book: herdbook.Client, record: Path, entries: int) -> Side:
    """A working set of one size, whatever the size of the record."""
    places = [notes.place(entry) for entry in random.Random(3).sample(range(entries), WORKING_SET)]
    return lambda: seconds_each(lambda number: book.read(*places[number % WORKING_SET]), READS)


def first_read_side(book: herdbook.Client, record: Path, entries: int) -> Side:
    """Each entry once after opening: nothing of it is cached in the process."""
    places = [notes.place(entry) for entry in random.Random(4).sample(range(entries), WORKING_SET)]

    def turn() -> float:
        with opened(record) as cold:
            cold.read("bench/warm", "up")
            return seconds_each(lambda number: cold.read(*places[number]), WORKING_SET)

    return turn


def brief_side(book: herdbook.Client, record: Path, entries: int) -> Side:
    """Of one entity, with a task, warm."""
    run = another_run(book)

    def brief(number: int) -> None:
        assert run.brief(briefing.ENTITY, task=task(number))["known"] == RANKED

    return lambda: seconds_each(brief, RANKINGS)


def changed_side(book: herdbook.Client, record: Path, entries: int) -> Side:
    """The same, each after a write to the entity, which is timed with it."""
    run, fresh = another_run(book), count()

    def rewrite_and_brief(number: int) -> None:
        book.write(briefing.ENTITY, f"key-{number % RANKED}", {"rewritten": next(fresh)}, why="so that the entity has changed")
        run.brief(briefing.ENTITY, task=task(number))

    return lambda: seconds_each(rewrite_and_brief, RANKINGS)


def search_side(book: herdbook.Client, record: Path, entries: int) -> Side:
    """Of one entity, warm."""
    return lambda: seconds_each(lambda number: book.search(task(number), entity=briefing.ENTITY), RANKINGS)


def task(number: int) -> str:
    return briefing.TASKS[number % len(briefing.TASKS)]


def outcome_side(causes: int) -> MakeSide:
    return lambda book, record, entries: after_reading(commit, book, entries, causes)


MEASURED: dict[str, tuple[str, MakeSide]] = {
    "read": ("a tracked point read in a working set", read_side),
    "first_read": ("the first read of an entry", first_read_side),
    "write": ("a durable write", write_side),
    "brief": ("a briefing on an entity", brief_side),
    "changed": ("a write to an entity and a briefing on it", changed_side),
    "search": ("a search of an entity", search_side),
    "outcome10": ("an outcome with 10 causes", outcome_side(10)),
    "outcome100": ("an outcome with 100 causes", outcome_side(100)),
}


def claims(scale: Scale) -> Iterator[Result]:
    """Both records stay open and take turns."""
    with tempfile.TemporaryDirectory(prefix="bench-growth-") as home:
        small, large = Path(home) / "small.db", Path(home) / "large.db"
        filled(small, briefing.places(RANKED, SMALL), scale.say)
        filled(large, briefing.places(RANKED, scale.entries), scale.say)
        with opened(small) as small_book, opened(large) as large_book:
            for book in (small_book, large_book):
                book.write("bench/warm", "up", 0, why="an entry that the first reads can begin with")
            for name, (says, make) in MEASURED.items():
                scale.say(f"growth: {says}")
                sides = {"small": make(small_book, small, SMALL), "large": make(large_book, large, scale.entries)}
                turns = interleave(sides, scale.passes)
                yield Claim(
                    name=f"growth.{name}",
                    says=f"{says} among {scale.entries:,} entries, against the same among {SMALL:,}",
                    samples=ratios(turns["large"], turns["small"]),
                    sense="at most",
                    bound=BOUND,
                    detail={"small_us": min(turns["small"]) * 1e6, "large_us": min(turns["large"]) * 1e6},
                )
