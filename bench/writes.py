"""A durable write through the record, against a bare transaction of two rows with the same SQLite settings."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench import notes
from bench.bare import BareRecord
from bench.product import opened
from bench.timing import Claim, Result, Scale, cpu_seconds_each, interleave, ratios, seconds_each

WRITES = 200  # a turn: short, so that both sides of a pass meet the same disk
PATHS, KEYS = 10, 50  # so that a quarter of the writes of a turn begin an entry and the rest supersede one


def claims(scale: Scale) -> Iterator[Result]:
    """Both write the same values in the same order to a file of their own."""
    with tempfile.TemporaryDirectory(prefix="bench-writes-") as home:
        bare = BareRecord(Path(home) / "bare.db")
        with opened(Path(home) / "record.db") as book:
            done = {"bare": 0, "record": 0}

            def place(side: str) -> tuple[int, str, str]:
                number = done[side] = done[side] + 1
                turn, within = divmod(number, WRITES)
                return number, f"bench/turn-{turn}/{within % PATHS}", f"key-{within % KEYS}"

            def bare_write(_: int) -> None:
                number, path, key = place("bare")
                bare.write(path, key, notes.TEXTS[number % len(notes.TEXTS)], notes.why(number))

            def record_write(_: int) -> None:
                number, path, key = place("record")
                book.write(path, key, notes.NOTES[number % len(notes.NOTES)], why=notes.why(number))

            turns = interleave(
                {"bare": lambda: seconds_each(bare_write, WRITES), "record": lambda: seconds_each(record_write, WRITES)},
                scale.passes,
            )
            cpu = {
                "record_cpu_us": cpu_seconds_each(record_write, WRITES) * 1e6,
                "bare_cpu_us": cpu_seconds_each(bare_write, WRITES) * 1e6,
            }
        bare.close()
    yield Claim(
        name="write",
        says="durable writes through the record, as a share of bare two-row transactions",
        samples=ratios(turns["bare"], turns["record"]),
        sense="at least",
        bound=0.5,
        detail={"record_us": min(turns["record"]) * 1e6, "bare_us": min(turns["bare"]) * 1e6, **cpu},
    )
