"""What is written in every bench, the same for every product: the values, their sizes and their names."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

KEYS_PER_PATH = 100

COMMON = (
    "amber anchor apple arrow autumn basket beacon birch bottle branch breeze bridge candle canyon carpet cedar chalk cherry "
    "circle cliff cloud clover copper coral cotton crane dawn delta desert dune eagle ember falcon feather fern field flint "
    "forest fountain"
)
COMMON_WORDS = COMMON.split()
RARE_WORDS = [first + second for first in COMMON_WORDS for second in COMMON_WORDS if first != second]  # amberbridge, and so on


def words(count: int, seed: int) -> str:
    """Text in which every second word is common and the others are rare, as in notes about software. One seed, one text."""
    chosen = random.Random(seed)
    return " ".join(chosen.choice(RARE_WORDS if number % 2 else COMMON_WORDS) for number in range(count))


def note(number: int) -> dict[str, object]:
    """A value as agents write them: a setting and thirty words, 330 bytes as JSON."""
    return {"setting": {"budget": str(number % 9)}, "text": words(30, number), "number": number}


NOTES = tuple(note(number) for number in range(1_000))  # made once: making them would weigh on what is measured
TEXTS = tuple(json.dumps(value) for value in NOTES)


def why(number: int) -> str:
    """The reason given with it, 60 bytes."""
    return f"measured in run {number}: the other settings failed within a minute"


def place(entry: int) -> tuple[str, str]:
    """Path and key of an entry: a hundred to a path, a hundred paths to a team."""
    path, key = divmod(entry, KEYS_PER_PATH)
    return f"bench/team-{path // 100}/service-{path % 100}", f"key-{key}"


def places_as_written(entries: int) -> Iterator[tuple[str, str]]:
    """Places in the order in which a record fills up: all paths grow at once, so one path's entries are far apart in time."""
    for key in range(KEYS_PER_PATH):
        for entry in range(key, entries, KEYS_PER_PATH):
            yield place(entry)
