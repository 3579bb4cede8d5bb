"""A program that runs where this machine's kernel does not count it: output as it comes, a deadline, and its exit code.

The watch has its own thread, so a reader that is slow or gone cannot keep a program alive past its deadline.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from herdbook.boxes.provider import TIMEOUT_EXIT_CODE, Chunk, Exit, Reason

LOOK_SECONDS = 1.0  # how often the disk is looked at


class Program(Protocol):
    """What is asked of a running program, wherever it runs."""

    def chunks(self) -> Iterator[Chunk]: ...

    def kill(self) -> None:
        """End it with all it started, from any thread; a program that has ended is fine. The chunks then end, too."""
        ...

    def finish(self) -> int:
        """Its exit code as a shell would give it, once the chunks have ended; nothing of it is left behind."""
        ...


def never() -> bool:
    return False


class WatchedExecution:
    """One program under a deadline."""

    def __init__(self, program: Program, *, timeout_seconds: float, disk_is_full: Callable[[], bool] = never) -> None:
        self._program, self._disk_is_full = program, disk_is_full
        self._deadline = time.monotonic() + timeout_seconds
        self._killed: Reason | None = None
        self._exit: Exit | None = None
        self._over = threading.Event()
        threading.Thread(target=self._watch_over, name="box-watch", daemon=True).start()

    @property
    def exit(self) -> Exit:
        if self._exit is None:
            raise RuntimeError("the program has not ended: read its output to the end first")
        return self._exit

    def kill(self) -> None:
        self._kill("killed")

    def __iter__(self) -> Iterator[Chunk]:
        if self._exit is not None:
            return
        whole = False
        try:
            yield from self._program.chunks()
            whole = True
        finally:  # a reader that walks away ends the program; one that is killed leaves that to the reaper
            if not whole:
                self._kill("killed")
            code = self._program.finish()
            self._over.set()
            if self._killed == "timeout":
                code = TIMEOUT_EXIT_CODE
            self._exit = Exit(code=code, reason=self._killed or "exited")

    def _watch_over(self) -> None:
        while not self._over.wait(max(0.0, min(LOOK_SECONDS, self._deadline - time.monotonic()))):
            if time.monotonic() >= self._deadline:
                return self._kill("timeout")
            if self._disk_is_full():
                return self._kill("disk")
        return None

    def _kill(self, reason: Reason) -> None:
        if self._exit is None and not self._over.is_set():
            self._killed = self._killed or reason
            self._program.kill()
