"""The reads journal: an append-only file beside an SQLite record, so that a read never waits for the record's lock or its disk.

A line is appended for each exposure and is visible to every process at once. The next write, by whichever process, folds what
is new into the record inside its own durable transaction: what a session read is safe before its next write is acknowledged.
A generation in the first line and (generation, offset) in the record say how far folding has come; folding a line twice changes
nothing, so any doubt, such as a file shortened by a power cut, is answered by folding from the start.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import threading
from collections.abc import Sequence
from functools import cache
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from herdbook.record.store.protocol import Exposure, Reader, Serving, Transaction

if TYPE_CHECKING:
    import msgspec

HEADER_BYTES = 33  # 32 hex digits and a line end
TRUNCATE_BYTES_MIN = 1 << 20
SHAPE = [int, str, int, int, int, str, int, float, int]  # the types of an exposure's parts that every line has
SERVED_SHAPE = [*SHAPE, int, str]  # with its serving and its features
SERVED_PARTS = len(SERVED_SHAPE)
EMPTY = "[]"  # the features of what was ranked by none
SERVING = "serving"  # how the line of a serving begins
SERVING_SHAPE = [str, int, str, int, str, str, str, str, int, int]  # the types of its parts; what was asked may be null
SERVING_HOWS = ("briefing", "search")
ARMS = ("on", "holdback", "control")
HOWS = ("briefing", "read", "search")

SURROGATES = re.compile("[\ud800-\udfff]")  # no store keeps a lone one
quoted = json.encoder.encode_basestring


def line(exposure: Exposure) -> str:
    """One exposure as a JSON list. Written out, since every point read pays for it."""
    tenant, session, number, version, rank, how, served, probability, at, serving, features = exposure
    more = "" if serving is None else f',{serving},"{features or EMPTY}"'  # numbers, commas and brackets need no quoting
    return f'[{tenant},{quoted(session)},{number},{version},{rank},"{how}",{served},{float(probability)!r},{at}{more}]\n'


def serving_line(serving: Serving | None) -> str:
    return "" if serving is None else json.dumps([SERVING, *serving], ensure_ascii=False, separators=(",", ":")) + "\n"


def parsed(lines: Sequence[bytes]) -> list[list[Any] | None]:
    """Exposures and servings again, and None for a line that looks like neither: it must not stand in the way of later writes."""
    alike = read_alike(lines)
    if alike is not None:
        return list(alike)
    try:
        found = json.loads(b"[" + b",".join(lines) + b"]")  # all at once costs half of one by one
    except (ValueError, RecursionError):
        found = []
    if len(found) != len(lines):
        found = [parsed_alone(line) for line in lines]
    return [one if is_exposure(one) or is_serving(one) else None for one in found]


@cache
def point_reads() -> msgspec.json.Decoder[list[tuple[Any, ...]]]:
    """What reads many lines of point reads at once. Made when it is first needed: `--version` reads none."""
    import msgspec

    whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
    share = Annotated[float, msgspec.Meta(gt=0, le=1)]
    how, bit = Literal["briefing", "read", "search"], Literal[0, 1]
    return msgspec.json.Decoder(list[tuple[whole, str, whole, whole, whole, how, bit, share, whole]])  # type: ignore[valid-type]


def read_alike(lines: Sequence[bytes]) -> list[list[Any]] | None:
    """Lines of point reads, which is most of what there is, checked all at once; None where any is something else."""
    import msgspec

    try:
        found = point_reads().decode(b"[" + b",".join(lines) + b"]")
    except (msgspec.MsgspecError, UnicodeError):
        return None
    return None if len(found) != len(lines) or not all(storable(one[1]) for one in found) else [list(one) for one in found]


def parsed_alone(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def is_exposure(found: Any) -> bool:
    """Whether this has the shape of an exposure, and holds what the record can keep."""
    if not isinstance(found, list) or [type(part) for part in found] not in (SHAPE, SERVED_SHAPE):
        return False
    numbers = (found[0], found[2], found[3], found[4], found[8], *found[9:10])
    if not all(map(fits, numbers)) or found[6] not in (0, 1) or not 0 < found[7] <= 1:
        return False
    return found[5] in HOWS and storable(found[1]) and (len(found) == len(SHAPE) or are_features(found[10]))


def is_serving(found: Any) -> bool:
    """Whether this has the shape of a serving, likewise."""
    if not isinstance(found, list) or [type("" if part is None else part) for part in found] != SERVING_SHAPE:
        return False
    mark, tenant, session, number, asked, how, arm, policy, candidates, at = found
    if mark != SERVING or None in (session, how, arm, policy) or how not in SERVING_HOWS or arm not in ARMS or candidates < 0:
        return False
    return all(map(fits, (tenant, number, candidates, at))) and all(map(storable, (session, asked or "", policy)))


def fits(number: int) -> bool:
    return -(2**63) <= number < 2**63


def storable(text: str) -> bool:
    return text.isascii() or not SURROGATES.search(text)


def are_features(text: str) -> bool:
    """A JSON list of numbers."""
    found = parsed_alone(text.encode("ascii", "replace"))
    return isinstance(found, list) and all(type(each) in (int, float) and isfinite(each) for each in found)


def progress(reader: Reader) -> tuple[str, int, int]:
    """How far folding has come, as the record says: generation, offset, and the number of the last folding."""
    row = reader.row("meta", {"name": "reads_journal"})
    generation, offset, last = row[0].rsplit(":", 2) if row else ("", "0", "0")  # a damaged first line may hold anything
    return generation, int(offset), int(last)


class ReadsJournal:
    """One journal file, opened for the life of a store."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._append = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._truncate = os.open(path, os.O_RDWR | os.O_CLOEXEC)  # its own description, so that its lock excludes our own appends
        self._turn = threading.Lock()
        self.unreadable = 0
        if os.fstat(self._append).st_size < HEADER_BYTES:
            self._begin_generation(if_empty=True)

    def append(self, exposures: Sequence[Exposure], serving: Serving | None = None) -> None:
        """One system call for all of them; the shared lock only keeps a truncation from passing between.

        It begins with a line end, so that what a full disk or a crash tore before stays a line of its own and swallows nothing.
        """
        lines = f"\n{serving_line(serving)}{''.join(map(line, exposures))}".encode()
        with self._turn:
            fcntl.flock(self._append, fcntl.LOCK_SH)
            try:
                written = os.write(self._append, lines)
            finally:
                fcntl.flock(self._append, fcntl.LOCK_UN)
        if written != len(lines):
            raise OSError(28, "the reads journal could not be written whole")

    def fold(self, tx: Transaction) -> bool:
        """Move what is new into the record, inside the caller's transaction. True if there was anything."""
        size = os.fstat(self._append).st_size
        if size <= HEADER_BYTES:
            return False
        generation = self._generation()
        known, offset, last = progress(tx)
        if known != generation or offset > size:
            offset = HEADER_BYTES
        if offset >= size:
            return False
        block = os.pread(self._append, size - offset, offset)
        block = block[: block.rfind(b"\n") + 1]
        folded = max(tx.next_id(), last + 1)  # each folding after the one before it, even after the clock was set back
        found = self._parse(block)
        tx.many("insert_serving", [serving[1:] for serving in found if serving[0] == SERVING])
        reads = [[*read, None, None][:SERVED_PARTS] for read in found if read[0] != SERVING]
        tx.many("insert_read", [[*read, folded] for read in reads])
        tx.run("set_meta", {"name": "reads_journal", "value": f"{generation}:{offset + len(block)}:{folded}"})
        return True

    def truncate_if_folded(self, tx: Transaction) -> None:
        """After a durable commit: start the file anew once it is large and wholly in the record."""
        if os.fstat(self._append).st_size < TRUNCATE_BYTES_MIN:
            return
        fcntl.flock(self._truncate, fcntl.LOCK_EX)
        try:
            if progress(tx)[:2] == (self._generation(), os.fstat(self._truncate).st_size):
                self._begin_generation(if_empty=False)
        finally:
            fcntl.flock(self._truncate, fcntl.LOCK_UN)

    def renew_if_shortened(self, tx: Reader) -> None:
        """Start anew a file that ends before what was folded from it, as after a power cut: new lines would be passed over."""
        known, offset, _ = progress(tx)
        if offset <= os.fstat(self._truncate).st_size or known != self._generation():
            return
        fcntl.flock(self._truncate, fcntl.LOCK_EX)
        try:
            if known == self._generation():
                self._begin_generation(if_empty=False)
        finally:
            fcntl.flock(self._truncate, fcntl.LOCK_UN)

    def waiting_bytes(self) -> int:
        """Bytes in the file; those already folded are counted too until the file starts anew."""
        return os.fstat(self._append).st_size - HEADER_BYTES

    def close(self) -> None:
        os.close(self._append)
        os.close(self._truncate)

    def _generation(self) -> str:
        return os.pread(self._append, HEADER_BYTES - 1, 0).decode("ascii", "replace")

    def _parse(self, block: bytes) -> list[list[Any]]:
        found = parsed([line for line in block.split(b"\n") if line])
        exposures = [exposure for exposure in found if exposure is not None]
        self.unreadable += len(found) - len(exposures)  # a power cut may leave zeros; doctor reports them
        return exposures

    def _begin_generation(self, *, if_empty: bool) -> None:
        if if_empty:
            fcntl.flock(self._truncate, fcntl.LOCK_EX)
        try:
            if if_empty and os.fstat(self._truncate).st_size >= HEADER_BYTES:
                return
            # In this order, so that a process that dies in between leaves lines that are folded twice, which changes nothing.
            os.pwrite(self._truncate, secrets.token_hex(16).encode() + b"\n", 0)
            os.ftruncate(self._truncate, HEADER_BYTES)
        finally:
            if if_empty:
                fcntl.flock(self._truncate, fcntl.LOCK_UN)
