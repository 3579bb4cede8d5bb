"""The rows of many entries as columns of numbers, so that one question touches all of them at once. For large scopes, with numpy.

Only which rows come first is decided here, by the arithmetic of `scope` and `ranking` in their order of operations, so that the
numbers are theirs to the last digit. The rows themselves are then weighed as few rows always are.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from herdbook.fastloop.candidates import (
    ANYWAY,
    BLOCKS,
    COARSE,
    ENTRIES,
    FADING,
    FRESH,
    GRAIN,
    HEAD,
    NAME,
    ORDER,
    STALENESS,
    UNITS,
    VERSION,
    VERSION_ID,
    Row,
    Scale,
)
from herdbook.fastloop.ranking import EFFECT_MAX
from herdbook.fastloop.scope import LENGTH_PULL, SATURATION, Question, TokenStats, count
from herdbook.record.trust import EVIDENCE_SHRINK, acts
from herdbook.record.types import Version

Numbers = Any  # a numpy array; numpy is an extra, and has to be asked for by name
POSTING_BYTES: Final = 6  # a place and how often
TOKEN_BYTES: Final = 350  # two arrays, a dictionary slot and a short string
WASTE_MIN: Final = 256
FIRST_CAPACITY: Final = 1024
KINDS: Final = {
    "live": bool,
    "scores": float,
    "fresh": float,
    "held": float,
    "failed": float,
    "homes": "i4",
    "blocks": "i1",
    "tiers": "i1",
    "fadings": float,
    "ages": "i8",
    "names": "i8",
    "stands": bool,
    "lengths": float,
}


@cache
def numpy_there() -> bool:
    """Whether numpy is installed; it is not loaded for that."""
    return importlib.util.find_spec("numpy") is not None


def load_numpy() -> Any:
    return importlib.import_module("numpy")


@dataclass(slots=True)
class Columns:
    """One place for each version that was ever put; those that were dropped are masked."""

    place_of: Callable[[Row], tuple[int, int]]  # its block, of which the first are wanted each; and its tier among equals
    numpy: Any = field(default_factory=load_numpy)
    places: dict[int, int] = field(default_factory=dict)  # by version
    ids: list[int] = field(default_factory=list)
    said: dict[str, tuple[array[int], array[int]]] = field(default_factory=dict)  # token: places, and how often there
    postings: int = 0
    capacity: int = 0
    live: Numbers = None  # which places hold a candidate
    scores: Numbers = None  # what age and evidence make of it, in units
    fresh: Numbers = None  # what age alone makes of it
    held: Numbers = None
    failed: Numbers = None
    homes: Numbers = None  # the number of its path in `paths`
    paths: dict[str, int] = field(default_factory=dict)
    blocks: Numbers = None
    tiers: Numbers = None
    fadings: Numbers = None
    ages: Numbers = None
    names: Numbers = None  # of the versions
    stands: Numbers = None
    lengths: Numbers = None
    matrix: Numbers = None  # vectors of pieces, one after the other
    pieces: int = 0
    starts: list[int] = field(default_factory=list)  # of each embedded version's rows in the matrix
    embedded: list[int] = field(default_factory=list)  # its place
    waiting: dict[int, Version] = field(default_factory=dict)  # no vector yet

    @property
    def size_bytes(self) -> int:
        vectors = 0 if self.matrix is None else int(self.matrix.nbytes)
        return 96 * self.capacity + TOKEN_BYTES * len(self.said) + POSTING_BYTES * self.postings + vectors

    @property
    def ties(self) -> tuple[Numbers, ...]:
        """What decides between equal scores, one after the other: as `sorted` has rows."""
        return self.tiers, self.fadings, self.ages, self.names

    @property
    def wasteful(self) -> bool:
        """Whether more places are empty than taken."""
        return len(self.ids) > WASTE_MIN + 2 * int(self.live[: len(self.ids)].sum())

    def put(self, rows: Sequence[Row]) -> None:
        """Candidates as they are judged now."""
        if not rows:
            return
        at = [self.placed(row[VERSION]) for row in rows]
        self.live[at] = True
        self.scores[at] = [-row[ORDER] for row in rows]
        self.fresh[at] = [row[FRESH] for row in rows]
        self.held[at], self.failed[at] = zip(*[row[HEAD][9:11] for row in rows], strict=True)
        self.stands[at] = [acts(row[NAME]) for row in rows]
        self.blocks[at], self.tiers[at] = zip(*map(self.place_of, rows), strict=True)
        self.fadings[at] = [row[FADING] for row in rows]
        self.ages[at] = [row[STALENESS] for row in rows]

    def rebase(self, scale: Scale) -> None:
        """Scores at other base rates, by the arithmetic of `candidates.rebased`."""
        numpy, size = self.numpy, len(self.ids)
        at = numpy.flatnonzero(self.live[:size] & (self.held[:size] + self.failed[:size] > 0.0))
        held, failed = self.held[at], self.failed[at]
        base = numpy.array([scale.bases.get(path, 0.5) for path in self.paths])[self.homes[at]]
        surplus = held * (1.0 - base) - failed * base
        score = self.fresh[at] * numpy.exp(scale.evidence_lambda * surplus / (held + failed + EVIDENCE_SHRINK))
        self.scores[at] = numpy.floor(score * COARSE + 0.5) * GRAIN

    def order(self, version_id: int) -> int:
        return -int(self.scores[self.places[version_id]])

    def empty(self) -> None:
        """No candidate is in the running."""
        self.live[:] = False

    def drop(self, version_id: int) -> None:
        self.live[self.places[version_id]] = False
        self.waiting.pop(version_id, None)

    def candidates(self, guests: Sequence[Row], *, without: Iterable[int]) -> Numbers:
        """Which places are in the running: what is live, without these versions, and with rows that are there for this time."""
        self.put(guests)
        live = self.live[: len(self.ids)].copy()
        for row in guests:
            self.live[self.places[row[VERSION_ID]]] = False
        for version_id in without:
            live[self.places[version_id]] = False
        return live

    def placed(self, version: Version) -> int:
        """Where a version is; its text is taken in when it comes first, since it never changes."""
        at = self.places.get(version.id)
        if at is None:
            at = self.places[version.id] = len(self.ids)
            self.ids.append(version.id)
            self.grow()
            self.names[at] = version.id
            self.homes[at] = self.paths.setdefault(version.path, len(self.paths))
            self.tell(at, count(version))
            self.waiting[version.id] = version
        return at

    def tell(self, at: int, stats: TokenStats) -> None:
        self.lengths[at] = stats.length
        self.postings += len(stats.counts)
        for token, times in stats.counts.items():
            places = self.said.get(token)
            if places is None:
                places = self.said[token] = array("i"), array("i")
            places[0].append(at)
            places[1].append(times)

    def grow(self) -> None:
        if len(self.ids) <= self.capacity:
            return
        more = max(FIRST_CAPACITY, self.capacity)
        numpy = self.numpy
        for name, kind in KINDS.items():
            new = numpy.zeros(more, kind)
            old = getattr(self, name)
            setattr(self, name, new if old is None else numpy.concatenate([old, new]))
        self.capacity += more

    def coverage(self, question: Question, candidates: Numbers) -> Numbers | None:
        """`scope.coverage` of every place, of which only candidates count; None where no token matches any of them."""
        numpy, size = self.numpy, len(self.ids)
        known = int(candidates.sum())
        scores = numpy.zeros(size)
        lengths = self.lengths[:size]
        pull = SATURATION * LENGTH_PULL / max(1.0, float(lengths[candidates].sum()) / known)
        softer = SATURATION * (1.0 - LENGTH_PULL) + pull * lengths
        ceiling, found = 0.0, False
        for token in question.tokens:
            hits, times = self.hits(token, candidates)
            weight = math.log1p((known - len(hits) + 0.5) / (len(hits) + 0.5)) * (SATURATION + 1.0)
            ceiling += weight
            if len(hits):
                found = True
                scores[hits] += weight if token in question.names else weight * times / (times + softer[hits])
        return scores / ceiling if found else None

    def hits(self, token: str, candidates: Numbers) -> tuple[Numbers, Numbers]:
        """The places of the candidates that say it, and how often each does."""
        said = self.said.get(token)
        if said is None:
            return (), ()
        places = self.numpy.frombuffer(said[0], dtype=self.numpy.int32)
        among = candidates[places]
        return places[among], self.numpy.frombuffer(said[1], dtype=self.numpy.int32)[among].astype(float)

    def take_vectors(self, made: dict[int, Numbers]) -> None:
        """Vectors of versions that were waiting for them."""
        numpy = self.numpy
        if not made:
            return
        for version_id, rows in made.items():
            del self.waiting[version_id]
            self.starts.append(self.pieces)
            self.embedded.append(self.places[version_id])
            if self.matrix is None or self.pieces + len(rows) > len(self.matrix):
                more = numpy.zeros((max(FIRST_CAPACITY, self.pieces), rows.shape[1]), numpy.float32)
                self.matrix = more if self.matrix is None else numpy.concatenate([self.matrix, more])
            self.matrix[self.pieces : self.pieces + len(rows)] = rows
            self.pieces += len(rows)

    def nearest_piece(self, asked: Numbers) -> Numbers:
        """For every embedded version, in their order, the product with its nearest piece."""
        return self.numpy.maximum.reduceat(self.matrix[: self.pieces] @ asked, self.starts)

    def first(
        self, relevances: Numbers | None, candidates: Numbers, wanted: int, *, standing_stays: bool, effect_weight: float
    ) -> tuple[list[int], int]:
        """The places of the first so many of each block, in any order, and how many of all candidates stay in the running.

        Without relevances each keeps its score; with them, what is not about the question stays only if it stands.
        """
        numpy, size = self.numpy, len(self.ids)
        scores, blocks, stay = self.scores[:size], self.blocks[:size], candidates
        if relevances is not None:
            if standing_stays:
                raised = numpy.clip(scores / UNITS - 1.0, 0.0, EFFECT_MAX)
                relevances = relevances + numpy.where(self.stands[:size] & (blocks == ENTRIES), effect_weight * raised, 0.0)
            about = relevances > 0.0
            scores = numpy.where(about, numpy.floor(relevances * scores + 0.5), scores)
            blocks = numpy.where(about, blocks, ANYWAY)
            stay = candidates & (about | self.stands[:size]) if standing_stays else candidates & about
        found: list[int] = []
        for block in range(BLOCKS):
            places = numpy.flatnonzero(stay & (blocks == block))
            found += self.smallest((-scores, *(column[:size] for column in self.ties)), places, wanted).tolist()
        return found, int(stay.sum())

    def smallest(self, keys: Sequence[Numbers], places: Numbers, wanted: int) -> Numbers:
        """So many of these places, the smallest by these keys one after the other."""
        first, rest = [], places
        for key in keys:
            if len(rest) <= wanted:
                break
            each = key[rest]
            bound = self.numpy.partition(each, wanted - 1)[wanted - 1]
            sure = rest[each < bound]
            first.append(sure)
            wanted -= len(sure)
            rest = rest[each == bound]
        return self.numpy.concatenate([*first, rest[:wanted]])
