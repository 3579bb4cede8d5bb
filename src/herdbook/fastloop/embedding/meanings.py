"""Cosines between a question and versions, out of vectors kept with the record; what has none yet is embedded behind the answer.

Keywords answer meanwhile, and how many are missing is said. Only the first answer of a process that may be over at once waits.
Vectors of another model or recipe are never looked at. Inside a scope every vector is compared; without one, a scan of one bit a
dimension picks what is then compared exactly.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import re
import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from herdbook.base.errors import HerdbookError, Unavailable
from herdbook.fastloop.columns import Columns
from herdbook.fastloop.embedding.models import Embedder, Vectors
from herdbook.fastloop.text import strings_of
from herdbook.record import vectors
from herdbook.record.record import Record
from herdbook.record.types import Version

RECIPE: Final = "r1"  # of `parts` and `pieces`: another way of cutting texts is another space
NEAR: Final = 0.1  # cosines below this say nothing
QUESTIONS_MAX: Final = 256
PARTS: Final = re.compile(r"[;\n]|[.!?]\s|: ")
PARTS_MAX: Final = 8
PART_CHARS_MIN: Final = 12  # less is seldom a thing that can be looked for
BATCH: Final = 16
SCAN_PAGE: Final = 5_000
RERANKED_MAX: Final = 400
HALF: Final = "<f2"


@dataclass(slots=True)
class Scope:
    """The vectors of some versions as one matrix; a version may have several rows."""

    matrix: Vectors
    starts: Vectors  # where each version's rows begin
    ids: list[int]


@dataclass(eq=False)
class Meanings:
    """The semantic leg over one record."""

    record: Record
    embedder: Embedder
    inline_max: int = 0  # so many are embedded before the first answer: a command is over before anything behind it is done
    bytes_max: int = 64 * 1024 * 1024
    questions: OrderedDict[str, Vectors] = field(default_factory=OrderedDict)
    scopes: OrderedDict[tuple[Any, ...], Scope] = field(default_factory=OrderedDict)
    scans: dict[int, Scan] = field(default_factory=dict)
    held: int = 0
    turn: threading.Lock = field(default_factory=threading.Lock)
    due: dict[int, dict[int, Version]] = field(default_factory=dict)  # what looks have missed, by tenant and version
    walks: dict[int, int] = field(default_factory=dict)  # tenants whose whole record is looked through, and how far that is
    walked: set[int] = field(default_factory=set)  # tenants of which it was begun
    worker: threading.Thread | None = None
    stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        OPEN.add(self)

    @cached_property
    def numpy(self) -> Any:
        return importlib.import_module("numpy")

    @cached_property
    def space(self) -> str:
        """What vectors are kept under: model, dimensions, recipe."""
        return f"{self.embedder.model}/{made(self.embedder, ['dimensions'], question=True).shape[1]}/{RECIPE}"

    def cosines(self, tenant: int, question: str, versions: Sequence[Version]) -> tuple[dict[int, float], str]:
        """The cosine of each version that is near the question at all; and what is missing, or nothing."""
        try:
            asked, scope = [self.asked(part) for part in asked_parts(question)], self.scope(tenant, versions)
        except (HerdbookError, ImportError, OSError) as problem:
            return {}, told(problem)
        missing = len(versions) - len(scope.ids)
        note = not_embedded(missing, len(versions)) if missing else ""
        if not scope.ids:
            return {}, note
        best = self.numpy.maximum.reduce([self.best(scope, part) for part in asked])
        near = self.numpy.flatnonzero(best >= NEAR)
        return dict(zip([scope.ids[at] for at in near.tolist()], best[near].tolist(), strict=True)), note

    def of_columns(self, tenant: int, question: str, columns: Columns, candidates: Vectors) -> tuple[Vectors, str]:
        """The cosine of each place of a large scope, zero where it is not near; and what is missing, or nothing."""
        numpy = self.numpy
        try:
            asked = [self.asked(part) for part in asked_parts(question)]
            if columns.waiting:
                kept, missing = self.kept(tenant, list(columns.waiting.values()))
                columns.take_vectors({number: self.rows_of(pieces) for number, pieces in kept.items()})
                self.catch_up(tenant, missing)
        except (HerdbookError, ImportError, OSError) as problem:
            return None, told(problem)
        waiting = sum(1 for number in columns.waiting if candidates[columns.places[number]])
        note = not_embedded(waiting, int(candidates.sum())) if waiting else ""
        if not columns.embedded:
            return None, note
        products = [columns.nearest_piece(part) for part in asked]
        floor = self.embedder.floor
        best = numpy.maximum.reduce([(each - floor) / (1.0 - floor) for each in products])
        found = numpy.zeros(len(candidates))
        found[columns.embedded] = numpy.where(best >= NEAR, best, 0.0)
        return numpy.where(candidates, found, 0.0), note

    def best(self, scope: Scope, asked: Vectors) -> Vectors:
        """The cosine of each version's nearest piece, above what any two texts have."""
        floor = self.embedder.floor
        return (self.numpy.maximum.reduceat(scope.matrix @ asked, scope.starts) - floor) / (1.0 - floor)

    def asked(self, question: str) -> Vectors:
        """The question's vector, a long one's by its beginning, which says what it is about. Fleets ask the same again."""
        question = question[: self.embedder.chars_max]
        found = self.questions.get(question)
        if found is None:
            found = self.made([question], question=True)[0]
            with self.turn:
                self.questions[question] = found
                while len(self.questions) > QUESTIONS_MAX:
                    self.questions.popitem(last=False)
        return found

    def scope(self, tenant: int, versions: Sequence[Version]) -> Scope:
        """The matrix of these versions, kept for the next question over the same ones when nothing is missing."""
        name = (tenant, *[version.id for version in versions])
        found = self.scopes.get(name)
        if found is None:
            kept, missing = self.kept(tenant, versions)
            found = self.stacked(name[1:], kept)
            self.catch_up(tenant, missing)
            if not missing:
                self.hold(name, found)
        return found

    def kept(self, tenant: int, versions: Sequence[Version]) -> tuple[dict[int, bytes], list[Version]]:
        """The vectors of these versions, a few made at once for a first answer; and which have none yet."""
        kept = vectors.load(self.record.store, tenant, self.space, [version.id for version in versions])
        missing = [version for version in versions if version.id not in kept]
        at_once, self.inline_max = self.inline_max, 0  # a process that asks again is still there when they are made
        if missing and at_once:
            now, missing = missing[:at_once], missing[at_once:]
            kept |= self.embed(tenant, now)
        return kept, missing

    def rows_of(self, pieces: bytes) -> Vectors:
        return self.numpy.frombuffer(pieces, dtype=HALF).reshape(-1, self.dims)

    def stacked(self, ids: Sequence[int], kept: dict[int, bytes]) -> Scope:
        numpy = self.numpy
        present = [number for number in ids if number in kept]
        rows = [self.rows_of(kept[number]) for number in present]
        counts = [len(row) for row in rows]
        starts = numpy.concatenate([[0], numpy.cumsum(counts)[:-1]]).astype(int) if rows else numpy.zeros(0, int)
        matrix = numpy.concatenate(rows).astype(numpy.float32) if rows else numpy.zeros((0, self.dims), numpy.float32)
        return Scope(matrix, starts, present)

    @cached_property
    def dims(self) -> int:
        return int(self.space.rsplit("/", 2)[1])

    def hold(self, name: tuple[Any, ...], scope: Scope) -> None:
        with self.turn:
            if name in self.scopes:
                return
            self.scopes[name] = scope
            self.held += scope.matrix.nbytes + 64 * len(name)
            while self.held > self.bytes_max and len(self.scopes) > 1:
                gone, old = self.scopes.popitem(last=False)
                self.held -= old.matrix.nbytes + 64 * len(gone)

    def embed(self, tenant: int, versions: Sequence[Version]) -> dict[int, bytes]:
        """Vectors of these versions, kept for everybody."""
        texts = [pieces(version, chars_max=self.embedder.chars_max) for version in versions]
        flat = [text for each in texts for text in each]
        if not flat:
            return {}
        made, found, at = self.made(flat), dict[int, bytes](), 0
        for version, each in zip(versions, texts, strict=True):
            found[version.id] = made[at : at + len(each)].astype(HALF).tobytes()
            at += len(each)
        rows = list(found.items())
        self.record.store.write(lambda tx: vectors.keep(tx, tenant, self.space, rows), tenant=tenant)
        return found

    def made(self, texts: Sequence[str], *, question: bool = False) -> Vectors:
        """One vector of this space for each text."""
        found = made(self.embedder, texts, question=question)
        if found.shape[1] != self.dims:
            told = f"the embedder answers with {found.shape[1]} dimensions where it had {self.dims}"
            raise Unavailable(f"{told}: it is another model now, so start what asks it again")
        return found

    def catch_up(self, tenant: int, missing: Sequence[Version], *, everything: bool = False) -> None:
        """Embed what is missing in a thread that is there as long as there is something; one at a time."""
        if not missing and not everything:
            return
        with self.turn:
            if self.stopped.is_set():
                return
            self.due.setdefault(tenant, {}).update((version.id, version) for version in missing)
            if everything or tenant not in self.walked:
                self.walked.add(tenant)
                self.walks.setdefault(tenant, 0)
            if self.worker is None or not self.worker.is_alive():
                atexit.unregister(self.close)
                atexit.register(self.close)  # nobody need close what was opened, and a thread in a model aborts the process
                self.worker = threading.Thread(target=self.embed_behind, name="herdbook-embed", daemon=True)
                self.worker.start()

    def embed_behind(self) -> None:
        """Until nothing is due, what looks have missed first; who comes after that begins another thread."""
        while (tenant := self.next_due()) is not None:
            with suppress(HerdbookError, ImportError, OSError):  # nobody listens here; the next look finds it missing
                if versions := self.batch_due(tenant):
                    there = vectors.load(self.record.store, tenant, self.space, [version.id for version in versions])
                    self.embed(tenant, [version for version in versions if version.id not in there])
                elif after := self.embed_next(tenant, after=self.walks.pop(tenant), limit=BATCH):
                    self.walks[tenant] = after

    def next_due(self) -> int | None:
        """A tenant for whom something is to be done; None where this thread is over."""
        with self.turn:
            found = None if self.stopped.is_set() else next(iter((*self.due, *self.walks)), None)
            if found is None:
                self.worker = None
            return found

    def batch_due(self, tenant: int) -> list[Version]:
        """Some of what looks have missed, taken from the list."""
        with self.turn:
            waiting = self.due.get(tenant, {})
            batch = [waiting.pop(number) for number in list(waiting)[:BATCH]]
            if not waiting:
                self.due.pop(tenant, None)
            return batch

    def close(self) -> None:
        """Wait for the batch under way: a process that ends while the model runs in another thread is aborted."""
        with self.turn:
            self.stopped.set()
            worker = self.worker
        if worker is not None:
            worker.join()
        atexit.unregister(self.close)

    def embed_next(self, tenant: int, *, after: int, limit: int) -> int:
        """Embed some that have no vector yet; where to go on, or 0 when there are no more. What is broken is passed over."""
        ids = vectors.waiting(self.record.store, tenant, self.space, after=after, limit=limit)
        found = self.record.versions(tenant, ids)
        self.embed(tenant, [version for version in found.values() if isinstance(version, Version)])
        return ids[-1] if len(ids) == limit else 0

    def state(self, tenant: int) -> dict[str, Any]:
        """How far embedding has come."""
        total, embedded = vectors.counts(self.record.store, tenant, self.space)
        return {"space": self.space, "entries": total, "embedded": embedded}

    def tidy(self, tenant: int) -> None:
        """Once everything is embedded, what other models left behind goes."""
        self.record.store.write(lambda tx: vectors.drop_others(tx, tenant, self.space), tenant=tenant)

    def nearest(self, tenant: int, question: str, limit: int) -> list[int]:
        """Current versions of the whole record whose vectors are nearest; none where the embedder cannot be asked."""
        try:
            found = self.scans.setdefault(tenant, Scan(self)).nearest(tenant, self.asked(question), limit)
        except (HerdbookError, ImportError, OSError):
            return []  # because the leg says so itself when it is measured for the matches of the words
        self.catch_up(tenant, [], everything=True)
        return vectors.current(self.record.store, tenant, found)


@dataclass
class Scan:
    """One bit a dimension of every vector of a tenant, 48 bytes for 384 of them; grows by what came since."""

    meanings: Meanings
    bits: Vectors = None
    ids: list[int] = field(default_factory=list)
    last: int = 0
    turn: threading.Lock = field(default_factory=threading.Lock)

    def nearest(self, tenant: int, asked: Vectors, limit: int) -> list[int]:
        meanings = self.meanings
        numpy = meanings.numpy
        with self.turn:
            self.grow(tenant)
            bits, ids = self.bits, self.ids
        if bits is None:
            return []
        apart = numpy.bitwise_count(bits ^ numpy.packbits(asked > 0)).sum(axis=1, dtype=numpy.int32)
        first = numpy.argpartition(apart, min(RERANKED_MAX, len(ids)) - 1)[:RERANKED_MAX].tolist()
        some = list(dict.fromkeys(ids[at] for at in first))
        scope = meanings.stacked(some, vectors.load(meanings.record.store, tenant, meanings.space, some))
        if not scope.ids:
            return []
        best = meanings.best(scope, asked)
        order = [at for at in numpy.argsort(-best, kind="stable").tolist() if best[at] >= NEAR]
        return [scope.ids[at] for at in order[:limit]]

    def grow(self, tenant: int) -> None:
        meanings = self.meanings
        numpy = meanings.numpy
        while rows := vectors.page(meanings.record.store, tenant, meanings.space, after=self.last, limit=SCAN_PAGE):
            made = [numpy.frombuffer(blob, dtype=HALF).reshape(-1, meanings.dims) for _, blob, _ in rows]
            new = numpy.packbits(numpy.concatenate(made) > 0, axis=1)
            self.bits = new if self.bits is None else numpy.concatenate([self.bits, new])
            self.ids += [number for (number, _, _), each in zip(rows, made, strict=True) for _ in each]
            self.last = rows[-1][2]


def made(embedder: Embedder, texts: Sequence[str], *, question: bool) -> Vectors:
    """One vector for each text, whatever was plugged in; `Unavailable` if there is none, for words answer then."""
    numpy = importlib.import_module("numpy")
    try:
        asked = [embedder.question(text) for text in texts] if question else embedder.passages(texts)
        found = numpy.asarray(asked, dtype=numpy.float32)
    except (HerdbookError, ImportError, OSError):
        raise
    except Exception as problem:  # because models of other libraries fail in ways of their own
        said = str(problem).split("\n")[0][:200]
        raise Unavailable(f"the embedder failed ({type(problem).__name__}: {said}): look at it, or set embed=off") from problem
    if found.ndim != 2 or len(found) != len(texts) or not numpy.isfinite(found).all():
        raise Unavailable("the embedder gives something else than one vector of numbers a text: look at it, or set embed=off")
    return found


def not_embedded(missing: int, known: int) -> str:
    return f"{missing} of {known} entries are not embedded yet, which goes on behind the answer: `herdbook embed` waits for it"


def told(problem: Exception) -> str:
    return problem.message if isinstance(problem, HerdbookError) else f"the embedder cannot be loaded: {problem}"


def asked_parts(question: str) -> list[str]:
    """A question, and each of the things it asks for: the mean of three errors in one vector is near none of their answers."""
    parts = [part.strip() for part in PARTS.split(question)]
    parts = [part for part in parts if len(part) >= PART_CHARS_MIN][:PARTS_MAX]
    return [question, *parts] if len(parts) > 1 else [question]


def pieces(version: Version, *, chars_max: int) -> list[str]:
    """A version's text as a model can read it: in pieces of so many characters, cut between words, none left out."""
    value = " ".join(strings_of(json.loads(version.value_text)))
    said = [version.key, value, version.why or "", version.applies_when or ""]
    text = " ".join(". ".join(part for part in said if part).split())
    found = []
    while len(text) > chars_max:
        cut = text.rfind(" ", chars_max // 2, chars_max)
        cut = chars_max if cut < 0 else cut
        found.append(text[:cut])
        text = text[cut:].lstrip()
    return [*found, text]


OPEN: Final[weakref.WeakSet[Meanings]] = weakref.WeakSet()


def after_fork_in_child() -> None:
    """The record stays with the parent, and so does what embeds; whoever held a lock is not here to let it go."""
    for meanings in list(OPEN):
        meanings.turn, meanings.stopped, meanings.worker = threading.Lock(), threading.Event(), None
        meanings.stopped.set()


os.register_at_fork(after_in_child=after_fork_in_child)
