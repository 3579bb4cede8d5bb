"""Exact ranking inside a scope: token counts of immutable versions, kept per process, and BM25 over one question's candidates.

A version never changes, so its counts are never stale: the cache grows by the versions not seen yet and is bounded in bytes.
Which versions are current, and what they are worth, is asked of the record each time.
"""

from __future__ import annotations

import math
import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, cast

from herdbook.fastloop.text import folded, named, plain_value, query_tokens, words_of
from herdbook.record.types import Version

CACHE_BYTES_MAX: Final = 64 * 1024 * 1024
CROWDED: Final = 0.5  # of its bytes; below that it need not know what was used last
TOKEN_BYTES: Final = 100  # a dictionary slot and a short string, measured with tracemalloc on CPython 3.11
RANKED_MAX: Final = 64  # whole rankings kept, 10 MB together at most
RANKED_VERSIONS_MAX: Final = 2_000
QUERY_TOKENS_MAX: Final = 256
QUERY_CHARS_MAX: Final = 16_000  # of a long task, its beginning says what it is about

# The usual constants: a word said often counts little more than said once, and long entries don't win by being long.
SATURATION: Final = 1.2
LENGTH_PULL: Final = 0.75
PART_OF_A_WORD: Final = 0.1  # score of an entry found only as a substring, and only when no token matched anywhere


@dataclass(frozen=True, slots=True)
class TokenStats:
    """How often a version says each token."""

    counts: dict[str, int]
    length: int

    @property
    def size_bytes(self) -> int:
        return TOKEN_BYTES * (len(self.counts) + 2)


class StatsCache:
    """Token counts by version, the least recently used forgotten first; safe to use from many threads."""

    def __init__(self, bytes_max: int = CACHE_BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self.bytes_held = 0
        self.tokenized = 0  # how many versions were ever tokenised: the delta, for tests and metrics
        self._kept: OrderedDict[tuple[int, int], TokenStats] = OrderedDict()
        self._ranked: OrderedDict[tuple[int, str, tuple[int, ...]], list[float]] = OrderedDict()
        self._lock = threading.Lock()

    def rank(self, tenant: int, question: str, versions: Sequence[Version]) -> list[float]:
        """Relevance of each version to the question; where no token matches any of them, the plain text is looked for.

        It follows from the question and the versions alone, and a fleet asks again and again: whole answers are kept.
        """
        if len(versions) > RANKED_VERSIONS_MAX:
            return self._rank(tenant, question, versions)
        asked = (tenant, question, tuple([version.id for version in versions]))
        scores = self._ranked.get(asked)
        if scores is None:
            scores = self._rank(tenant, question, versions)
            with self._lock:
                self._ranked[asked] = scores
                while len(self._ranked) > RANKED_MAX:
                    self._ranked.popitem(last=False)
        return scores

    def _rank(self, tenant: int, question: str, versions: Sequence[Version]) -> list[float]:
        scores = coverage(question_of(question), self.stats(tenant, versions))
        return scores if any(scores) else found_inside(question, versions)

    def stats(self, tenant: int, versions: Sequence[Version]) -> list[TokenStats]:
        """Counts in the order of `versions`; only those not seen yet are tokenised, and outside the lock."""
        names = [(tenant, version.id) for version in versions]
        found = list(map(self._kept.get, names))
        if self.bytes_held > self.bytes_max * CROWDED:
            self._touch(names)
        if all(found):
            return cast("list[TokenStats]", found)
        fresh = {version.id: count(version) for version, stats in zip(versions, found, strict=True) if stats is None}
        self._keep(tenant, fresh)
        return [fresh[version.id] if stats is None else stats for version, stats in zip(versions, found, strict=True)]

    def _touch(self, names: Sequence[tuple[int, int]]) -> None:
        """These were used last. Only a cache that is filling up has to know."""
        with self._lock:
            for name in names:
                if name in self._kept:
                    self._kept.move_to_end(name)

    def _keep(self, tenant: int, fresh: dict[int, TokenStats]) -> None:
        with self._lock:
            for version_id, stats in fresh.items():
                if (tenant, version_id) not in self._kept:
                    self._kept[tenant, version_id] = stats
                    self.bytes_held += stats.size_bytes
                    self.tokenized += 1
            while self.bytes_held > self.bytes_max:
                self.bytes_held -= self._kept.popitem(last=False)[1].size_bytes


def count(version: Version) -> TokenStats:
    words = words_of(version)
    return TokenStats(dict(Counter(words)), len(words))


class Question(NamedTuple):
    """What a question is answered by: its tokens, and which of them are names."""

    tokens: list[str]
    names: frozenset[str]


@lru_cache(maxsize=256)
def question_of(text: str) -> Question:
    """A fleet asks with the same task again and again."""
    begins = text[:QUERY_CHARS_MAX]
    return Question(query_tokens(begins, tokens_max=QUERY_TOKENS_MAX), named(begins))


def coverage(question: Question, stats: Sequence[TokenStats]) -> list[float]:
    """BM25 of each candidate as a part of what a candidate that says all of it could reach; 0.0 says that no token matches.

    So it is from 0 to 1, and comparable between questions: one shared word of a long question is little. Rarity is measured
    among the candidates. A name is there or not: how often it is said, and in how long a text, tells nothing.
    """
    tokens, names = question
    counts, lengths = [entry.counts for entry in stats], [entry.length for entry in stats]
    scores = [0.0] * len(stats)
    asked, saying = frozenset(tokens), defaultdict[str, list[int]](list)
    for at, said in enumerate(counts):
        for token in said.keys() & asked:
            saying[token].append(at)
    if not saying:
        return scores
    pull = SATURATION * LENGTH_PULL / max(1.0, sum(lengths) / len(lengths))
    softer = [SATURATION * (1.0 - LENGTH_PULL) + pull * length for length in lengths]
    ceiling = 0.0
    # Added up in the order of the question, so that two processes give one score.
    for token in tokens:
        hits = saying.get(token, ())
        weight = math.log1p((len(stats) - len(hits) + 0.5) / (len(hits) + 0.5)) * (SATURATION + 1.0)
        ceiling += weight
        for at in hits:
            times = counts[at][token]
            scores[at] += weight if token in names else weight * times / (times + softer[at])
    return [score / ceiling for score in scores]


def found_inside(query: str, versions: Sequence[Version]) -> list[float]:
    """For questions that match no token: which entries hold the text as it stands, anywhere."""
    wanted = folded(query).strip()
    if not wanted:
        return [0.0] * len(versions)
    return [PART_OF_A_WORD if wanted in haystack(version) else 0.0 for version in versions]


def haystack(version: Version) -> str:
    place = version.path.rpartition("/")[2]
    return folded("\n".join((version.key, place, plain_value(version.value_text), version.why or "", version.applies_when or "")))
