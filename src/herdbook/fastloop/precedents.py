"""The leg of precedents: how much more often than usual runs with such a task came to use an entry.

A note and the tasks it helps with share few words, but runs say which notes they used. The measure is a difference: an entry that
runs use whatever their task is gains nothing, nor does one that is only read beside others. What a run wrote about its task is
believed to be of use, until such runs do without it. Pure: what was asked and used is handed in.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from herdbook.fastloop.text import query_tokens
from herdbook.record.precedents import EVERY, name_of, parts_of

ALIKE_MIN: Final = 0.5  # parts that share less of their words are about something else
ALIKE_TOKENS_MAX: Final = 64
ALIKE_MAX: Final = 8  # parts that were asked before, to one of today's
PRIOR: Final = 2.0  # runs that a belief counts for
WROTE: Final = 0.5  # the belief in what such a run wrote

AskedRow = tuple[int, str, str, float]  # path, name, said, runs
PrecedentRow = tuple[int, str, int, float, float, int]  # path, part, version, used, since, wrote
Fetch = Callable[[Sequence[str]], Iterable[PrecedentRow]]


def lifts(asked: Sequence[AskedRow], task: str, fetch: Fetch) -> dict[int, float]:
    """By version, for what has any: from 0 to 1, for the part of the task it is most of use for."""
    alike = [found for part in parts_of(task) if (found := alike_to(part, tuple(asked)))]
    if not alike:
        return {}
    runs = {(path, name): count for path, name, _, count in asked}
    rows: dict[int, dict[str, PrecedentRow]] = defaultdict(dict)
    for row in fetch([EVERY, *dict.fromkeys(name for found in alike for name in found)]):
        rows[row[2]][row[1]] = row
    best: dict[int, float] = {}
    for version, known in rows.items():
        lift = max(lift_of(known, found, runs) for found in alike)
        if lift > 0.0:
            best[version] = lift
    return best


def lift_of(known: Mapping[str, PrecedentRow], alike: Mapping[str, float], runs: Mapping[tuple[int, str], float]) -> float:
    """Its use in runs that were asked something like this, above its use in all others; both shrunk."""
    used = since = belief = 0.0
    nearest = 0.0
    for name, likeness in alike.items():
        row = known.get(name)
        if row is not None:
            used += likeness * row[3]
            since += likeness * max(0.0, runs.get((row[0], name), 0.0) - row[4])
            belief = max(belief, likeness * WROTE * row[5])
            nearest = max(nearest, likeness)
    if not nearest:
        return 0.0
    every = known.get(EVERY)
    all_used, all_since = (used, since) if every is None else (every[3], max(0.0, runs.get((every[0], EVERY), 0.0) - every[4]))
    usual = all_used / (all_since + PRIOR)
    elsewhere = (max(0.0, all_used - used) + PRIOR * usual / 2) / (max(0.0, all_since - since) + PRIOR)
    return nearest * max(0.0, (used + PRIOR * belief) / (since + PRIOR) - elsewhere)


@lru_cache(maxsize=512)
def alike_to(part: str, asked: tuple[AskedRow, ...]) -> dict[str, float]:
    """The parts that were asked before and are about the same, by name, with how much of their words they share."""
    name, words = name_of(part), words_of(part)
    found = {}
    for _, other, said, _ in asked:
        if other == name:
            found[other] = 1.0
        elif other != EVERY and words:
            theirs = words_of(said)
            shared = len(words & theirs)
            if shared and (likeness := shared / math.sqrt(len(words) * len(theirs))) >= ALIKE_MIN:
                found[other] = max(likeness, found.get(other, 0.0))
    return dict(sorted(found.items(), key=lambda pair: -pair[1])[:ALIKE_MAX])


@lru_cache(maxsize=4_096)
def words_of(text: str) -> frozenset[str]:
    return frozenset(query_tokens(text, tokens_max=ALIKE_TOKENS_MAX))
