"""Committing an outcome that rests on ten and on a hundred entries, against one bare write transaction."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import herdbook
from bench import notes
from bench.bare import BareRecord
from bench.product import another_run, filled, opened
from bench.timing import Claim, Result, Scale, Side, interleave, ratios

ENTRIES = 1_000
BOUNDS = {10: 6.0, 100: 25.0}  # causes: how many bare writes
OUTCOMES = 10  # a turn


Act = Callable[[herdbook.Client, int], object]  # what ends a run, and how many entries it read


def after_reading(act: Act, book: herdbook.Client, entries: int, causes: int) -> Side:
    """A turn: run after run, each reads that many entries of an entity somewhere in the record; only what ends it is timed."""
    chosen = random.Random(5)

    def turn() -> float:
        spent = 0.0
        for _ in range(OUTCOMES):
            run = another_run(book)
            entity = chosen.randrange(entries // notes.KEYS_PER_PATH) * notes.KEYS_PER_PATH
            for key in chosen.sample(range(notes.KEYS_PER_PATH), causes):
                run.read(*notes.place(entity + key))
            began = time.perf_counter()
            act(run, causes)
            spent += time.perf_counter() - began
        return spent / OUTCOMES

    return turn


def commit(run: herdbook.Client, causes: int) -> None:
    answer = run.commit_outcome("success", task_input="make the suite pass")
    assert len(answer["moved"]) == causes, f"{len(answer['moved'])} entries moved, {causes} were read"


def beside_bare(write: Act, book: herdbook.Client, entries: int) -> dict[str, Side]:
    """Both sides end a run that has read: a write among writes alone meets warmer caches, and a disk that is not idle."""
    acts: dict[str, Act] = {"bare": write, "outcome": commit}
    return {f"{name}{causes}": after_reading(act, book, entries, causes) for causes in BOUNDS for name, act in acts.items()}


def claims(scale: Scale) -> Iterator[Result]:
    """What a run was served becomes the cause of its outcome: folding in its reads is part of what is timed."""
    with tempfile.TemporaryDirectory(prefix="bench-outcomes-") as home:
        bare = BareRecord(Path(home) / "bare.db")
        filled(Path(home) / "record.db", notes.places_as_written(ENTRIES), scale.say)

        def bare_write(number: int) -> None:
            bare.write(f"bench/{number % 10}", f"key-{number % 50}", notes.TEXTS[number % len(notes.TEXTS)], notes.why(number))

        numbers = count()

        def write(run: herdbook.Client, causes: int) -> None:
            bare_write(next(numbers))

        with opened(Path(home) / "record.db") as book:
            turns = interleave(beside_bare(write, book, ENTRIES), scale.passes)
        bare.close()
    for causes, bound in BOUNDS.items():
        yield Claim(
            name=f"outcome.causes{causes}",
            says=f"commit_outcome with {causes} causes, against a bare write transaction",
            samples=ratios(turns[f"outcome{causes}"], turns[f"bare{causes}"]),
            sense="at most",
            bound=bound,
            detail={"outcome_us": min(turns[f"outcome{causes}"]) * 1e6, "bare_us": min(turns[f"bare{causes}"]) * 1e6},
        )
