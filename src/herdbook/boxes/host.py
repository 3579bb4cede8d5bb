"""The process outside that makes boxes: the row before the box, a lease kept alive, a socket to the record, and an end.

Whatever happens to this process, nothing is lost track of: each step leaves something the reaper finds. `with` and `close()`
are a convenience; no cleanup relies on them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType

from herdbook.base import ids, limits
from herdbook.base.claims import CLAIM_MARK, digest_of, new_claim
from herdbook.base.errors import Conflict, HerdbookError, NotFound
from herdbook.boxes import owner
from herdbook.boxes.book import Book
from herdbook.boxes.provider import SOCKET_IN_BOX, Box, BoxLimits, BoxSpec, Chunk, Execution, Isolation, Provider
from herdbook.boxes.reaper import reap

Close = Callable[[], None]
# From a box's id to where its socket to the record listens, the same place each time, and how to close it.
OpenSocket = Callable[[str], tuple[str, Close]]
OnOutput = Callable[[Chunk], None]
BEATS_PER_LEASE = 3  # two may be lost
REAP_SECONDS = 60.0


def drop_output(chunk: Chunk) -> None:
    """For callers who only want the exit code."""


@dataclass(frozen=True, slots=True)
class Held:
    box: Box
    close_socket: Close
    claim: str  # what the box's address of the record ends in, where it has one


class Host:
    """Makes, runs and ends boxes under one label; one background thread keeps their leases and reaps what nobody keeps."""

    def __init__(
        self,
        book: Book,
        provider: Provider,
        *,
        open_socket: OpenSocket,
        label: str,
        lease_seconds: int = limits.BOX_LEASE_SECONDS_DEFAULT,
        reap_seconds: float = REAP_SECONDS,
        wait: Callable[[threading.Event, float], bool] = threading.Event.wait,  # until stopped, or this many seconds
    ) -> None:
        self._book, self._provider, self._open_socket = book, provider, open_socket
        self._label, self._lease_seconds, self._reap_seconds, self._wait = label, lease_seconds, reap_seconds, wait
        self._held: dict[str, Held] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._heart: threading.Thread | None = None

    def open(
        self,
        box_id: str | None = None,
        *,
        limits: BoxLimits | None = None,
        minimum: Isolation = "process",
        outlives: bool = False,
        competes: bool = False,
        without: tuple[str, ...] = (),
    ) -> Box:
        """Make a box, `without` these programs of its host.

        One that `outlives` this process is not reaped when the process ends, only when its lease does. What one that `competes`
        writes is a draft, until it is promoted.
        """
        claim = new_claim()
        box_id = box_id or ids.new_name("box").replace("_", "-")
        BoxSpec(id=box_id, label=self._label)  # refuses bad names before anything is written
        self._book.box_open(
            box=box_id,
            provider=self._provider.name,
            isolation=self._provider.isolation,
            label=self._label,
            owner=owner.nobody() if outlives else owner.this_process(),
            lease_seconds=self._lease_seconds,
            competes=competes,
            claim=digest_of(claim),
        )
        close_socket: Close | None = None
        try:
            path, close_socket = self._open_socket(box_id)
            sockets = {path: SOCKET_IN_BOX}
            spec = BoxSpec(
                id=box_id, label=self._label, sockets=sockets, limits=limits or BoxLimits(), minimum=minimum, without=without
            )
            box = self._provider.create(spec)
        except Exception as problem:  # because whatever it was, the row must say that there is no box
            self._end(box_id, close_socket, detail=f"could not be made: {problem}")
            raise
        self._hold(Held(box, close_socket, claim))
        return box

    def adopt(self, box_id: str) -> Box:
        """Take over a box that an earlier process left: same files, same place of its socket, a fresh lease."""
        box = next((box for box in self._provider.list(self._label) if box.id == box_id), None)
        if box is None:
            raise NotFound(f"there is no box {box_id!r} with the label {self._label!r}: make a new one")
        claim = new_claim()  # the one before is known to nobody any more
        if self._book.box_beat(box=box_id, lease_seconds=self._lease_seconds, claim=digest_of(claim))["state"] != "open":
            raise Conflict(f"the box {box_id!r} is closed in the record: reap it, then make a new one")
        _, close_socket = self._open_socket(box_id)
        self._hold(Held(box, close_socket, claim))
        return box

    def put(self, box: Box, path: str, data: bytes, *, mode: int = 0o644) -> None:
        self._provider.put(box, path, data, mode=mode)

    def run(
        self,
        box: Box,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_seconds: float | None = None,
        on_output: OnOutput = drop_output,
    ) -> int:
        """Run a program to its end and answer its exit code, 124 if it ran out of time. It is told where the record is."""
        execution = self.start(box, argv, env=env, cwd=cwd, timeout_seconds=timeout_seconds)
        for chunk in execution:
            on_output(chunk)
        return execution.exit.code

    def start(
        self,
        box: Box,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_seconds: float | None = None,
    ) -> Execution:
        """As `run`, for callers who read the output themselves."""
        told = {"HERDBOOK_URL": self._record_for(box), **(env or {})}
        return self._provider.exec(box, argv, env=told, cwd=cwd, timeout_seconds=timeout_seconds)

    def _record_for(self, box: Box) -> str:
        """Where this box finds the record: its socket, or an address that only it is told."""
        held = self._held.get(box.id)
        if box.record_url and held is not None:
            return f"{box.record_url}{CLAIM_MARK}{held.claim}"
        return box.record_url or f"unix:{box.sockets.get(SOCKET_IN_BOX, SOCKET_IN_BOX)}"

    def destroy(self, box: Box | str, *, detail: str | None = None) -> None:
        """End a box and close its row. Doing it twice is doing it once."""
        box_id = box if isinstance(box, str) else box.id
        held = self._let_go(box_id)
        self._end(box_id, held.close_socket if held else None, detail=detail)

    def leave(self, box: Box, *, lease_seconds: int = limits.BOX_LEASE_SECONDS_MAX) -> None:
        """Stop keeping a box that outlives this process, without ending it: it may be adopted until its lease runs out."""
        self._book.box_beat(box=box.id, lease_seconds=lease_seconds)
        held = self._let_go(box.id)
        if held is not None:
            held.close_socket()

    def close(self) -> None:
        """End every box this host still holds."""
        for box_id in list(self._held):
            self.destroy(box_id)
        self._stopped.set()
        if self._heart is not None:
            self._heart.join()

    def __enter__(self) -> Host:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _end(self, box_id: str, close_socket: Close | None, *, detail: str | None) -> None:
        self._provider.destroy(box_id)
        if close_socket is not None:
            close_socket()
        self._book.box_close(box=box_id, detail=detail)

    def _hold(self, held: Held) -> None:
        with self._lock:
            self._held[held.box.id] = held
            if self._heart is None:
                self._heart = threading.Thread(target=self._beat_until_stopped, name=f"box-leases-{self._label}", daemon=True)
                self._heart.start()

    def _let_go(self, box_id: str) -> Held | None:
        with self._lock:
            return self._held.pop(box_id, None)

    def _beat_until_stopped(self) -> None:
        """Beats in time, and a pass of the reaper now and then: others may have died, on this machine or without a trace."""
        pause = min(self._lease_seconds / BEATS_PER_LEASE, self._reap_seconds)
        since_reaped = self._reap_seconds
        while True:
            if since_reaped >= self._reap_seconds:
                self._reap()
                since_reaped = 0.0
            if self._wait(self._stopped, pause):
                return
            since_reaped += pause
            for box_id in list(self._held):
                self._beat(box_id)

    def _reap(self) -> None:
        try:
            reap(self._book, self._provider, self._label)
        except (HerdbookError, OSError):
            return  # because there is another pass in a minute, and this host's own boxes are kept meanwhile

    def _beat(self, box_id: str) -> None:
        try:
            is_open = self._book.box_beat(box=box_id, lease_seconds=self._lease_seconds)["state"] == "open"
        except (NotFound, Conflict):
            is_open = False
        except (HerdbookError, OSError):
            return  # because the record may be back before the lease runs out; if not, the reaper says so by closing the row
        if not is_open and (held := self._let_go(box_id)) is not None:
            self._provider.destroy(box_id)  # somebody was told that it is gone: then it must be
            held.close_socket()
