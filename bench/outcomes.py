"""Committing an outcome that rests on ten and on a hundred entries, against one bare write transaction."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import herdbook
from bench import notes
from bench.bare import BareRecord
from bench.product import another_run, filled, opened
from bench.timing import Claim, Result, Scale, interleave, ratios, seconds_each

ENTRIES = 1_000
BOUNDS = {10: 6.0, 100: 25.0}  # causes: how many bare writes
OUTCOMES, WRITES = 10, 150  # a turn


def seconds_to_commit(book: herdbook.Client, entries: int, causes: int, chosen: random.Random) -> Callable[[], float]:
    """A turn: run after run, each reads that many entries of an entity somewhere in the record; only its outcome is timed."""

    def turn() -> float:
        spent = 0.0
        for _ in range(OUTCOMES):
            run = another_run(book)
            entity = chosen.randrange(entries // notes.KEYS_PER_PATH) * notes.KEYS_PER_PATH
            for key in chosen.sample(range(notes.KEYS_PER_PATH), causes):
                run.read(*notes.place(entity + key))
            began = time.perf_counter()
            answer = run.commit_outcome("success", task_input="make the suite pass")
            spent += time.perf_counter() - began
            assert len(answer["moved"]) == causes, f"{len(answer['moved'])} entries moved, {causes} were read"
        return spent / OUTCOMES

    return turn


def claims(scale: Scale) -> Iterator[Result]:
    """What a run was served becomes the cause of its outcome: folding in its reads is part of what is timed."""
    with tempfile.TemporaryDirectory(prefix="bench-outcomes-") as home:
        bare = BareRecord(Path(home) / "bare.db")
        filled(Path(home) / "record.db", notes.places_as_written(ENTRIES), scale.say)

        def bare_write(number: int) -> None:
            bare.write(f"bench/{number % 10}", f"key-{number % 50}", notes.TEXTS[number % len(notes.TEXTS)], notes.why(number))

        with opened(Path(home) / "record.db") as book:
            chosen = random.Random(1)
            sides = {str(causes): seconds_to_commit(book, ENTRIES, causes, chosen) for causes in BOUNDS}
            turns = interleave({"bare": lambda: seconds_each(bare_write, WRITES), **sides}, scale.passes)
        bare.close()
    for causes, bound in BOUNDS.items():
        yield Claim(
            name=f"outcome.causes{causes}",
            says=f"commit_outcome with {causes} causes, against a bare write transaction",
            samples=ratios(turns[str(causes)], turns["bare"]),
            sense="at most",
            bound=bound,
            detail={"outcome_us": min(turns[str(causes)]) * 1e6, "bare_us": min(turns["bare"]) * 1e6},
        )
