"""Running somebody's command as if we were not there: its output at once, apart, and unchanged; its signals; its exit code.

The command gets no terminal of ours and no new process group, so that ctrl-C and job control work as without us. What it prints
is passed on byte by byte, and the last of it is remembered.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import IO, Final

TAIL_BYTES_MAX: Final = 16 * 1024
PIECE_BYTES: Final = 64 * 1024
LINGER_SECONDS: Final = 2.0  # for what a child of the command still prints after the command itself has ended
NOT_FOUND: Final = 127  # as the shell says it
NOT_EXECUTABLE: Final = 126
FORWARDED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    exit_code: int  # as a shell gives it: 128 + n where a signal ended it
    seconds: float
    tail: bytes  # the last of its output, both streams as they arrived
    started: bool  # False where there was nothing to run
    stopped_by: str | None  # the signal somebody stopped us with: then its exit code says nothing about the work


class Tail:
    """The last bytes of two streams, as they arrived."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._lock = threading.Lock()

    def add(self, piece: bytes) -> None:
        with self._lock:
            self._pieces.append(piece[-TAIL_BYTES_MAX:])
            self._size += len(self._pieces[-1])
            while self._size - len(self._pieces[0]) >= TAIL_BYTES_MAX:
                self._size -= len(self._pieces.popleft())

    def bytes(self) -> bytes:
        with self._lock:
            return b"".join(self._pieces)[-TAIL_BYTES_MAX:]


def run(argv: Sequence[str], *, env: Mapping[str, str]) -> Ended:
    """Run it to its end, passing on everything; a command that cannot be started ends as a shell would say it."""
    started = time.monotonic()
    found = shutil.which(argv[0], path=env.get("PATH", os.defpath))
    if found is None:
        there = os.path.exists(argv[0]) and os.sep in argv[0]
        return Ended(NOT_EXECUTABLE if there else NOT_FOUND, 0.0, b"", started=False, stopped_by=None)
    tail = Tail()
    with forwarding() as forward:
        try:
            child = subprocess.Popen(argv, executable=found, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
        except OSError:
            return Ended(NOT_EXECUTABLE, 0.0, b"", started=False, stopped_by=None)
        forward.to(child)
        assert child.stdout is not None and child.stderr is not None
        pumps = [pump(child.stdout, 1, tail), pump(child.stderr, 2, tail)]
        code = child.wait()
        for each in pumps:
            each.join(LINGER_SECONDS)
    exit_code = code if code >= 0 else 128 - code
    return Ended(exit_code, time.monotonic() - started, tail.bytes(), started=True, stopped_by=forward.seen)


def pump(source: IO[bytes], target: int, tail: Tail) -> threading.Thread:
    """Pass on what comes. Where nobody reads it any more, its pipe is closed, which is how the command would have learnt it."""

    def passing() -> None:
        with suppress(OSError), source:
            while piece := os.read(source.fileno(), PIECE_BYTES):
                tail.add(piece)
                while piece:
                    piece = piece[os.write(target, piece) :]

    thread = threading.Thread(target=passing, name=f"herdbook-pass-{target}", daemon=True)
    thread.start()
    return thread


class Forward:
    """Signals that reach us go to the command, unless the terminal has sent them to it already."""

    def __init__(self) -> None:
        self.seen: str | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []

    def to(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        for number in self._early:
            child.send_signal(number)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.seen = signal.Signals(number).name
        if number in (signal.SIGINT, signal.SIGQUIT) and in_foreground():
            return
        if self._child is None:
            self._early.append(number)
        else:
            self._child.send_signal(number)


@contextmanager
def forwarding() -> Iterator[Forward]:
    """While a command runs, our own signals are its; a signal that was ignored before stays ignored."""
    forward = Forward()
    kept = {number: signal.getsignal(number) for number in FORWARDED}
    handled = [number for number in FORWARDED if kept[number] is not signal.SIG_IGN]
    for number in handled:
        signal.signal(number, forward)
    try:
        yield forward
    finally:
        for number in handled:
            signal.signal(number, kept[number])


def in_foreground() -> bool:
    """Whether our process group is the terminal's: then ctrl-C has reached the command without us."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
