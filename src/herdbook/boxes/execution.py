"""A program started on this machine: its two streams read as they come, a watch that ends it on time, and its exit code.

The watch has its own thread, so a reader that is slow or gone cannot keep a program alive past its deadline.
"""

from __future__ import annotations

import os
import selectors
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import Popen
from typing import IO

from herdbook.base.errors import CannotIsolate
from herdbook.boxes.provider import TIMEOUT_EXIT_CODE, Chunk, Exit, Reason, Stream
from herdbook.boxes.spawn import OpenFile

READ_BYTES = 64 * 1024
WATCH_SECONDS = 0.25  # how late a full disk or a left-over process is noticed
DISK_SECONDS = 1.0
DRAIN_SECONDS = 2.0  # how long output is awaited from pipes that the dead program's children still hold


class LocalExecution:
    """One program and everything it started."""

    def __init__(
        self,
        process: Popen[bytes],
        *,
        end: Callable[[], object],  # kills the program's whole tree, and what is left of it once it has exited
        disk_is_full: Callable[[], bool],
        order: OpenFile,  # emptied by the launcher when it takes it
        note: Path,  # that it runs
        timeout_seconds: float,
    ) -> None:
        self._process = process
        self._end, self._disk_is_full, self._order, self._note = end, disk_is_full, order, note
        self._deadline = time.monotonic() + timeout_seconds
        self._killed: Reason | None = None
        self._exit: Exit | None = None
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._watch_over, name=f"box-watch-{process.pid}", daemon=True)
        self._watch.start()

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
        last_words = b""
        try:
            for stream, data in self._read():
                last_words = (last_words + data)[-2000:] if stream == "stderr" else last_words
                yield stream, data
            self._process.wait()
        finally:  # a reader that walks away ends the program; one that is killed has the watch, and the box dies with its owner
            was_started = self._order.is_empty()
            self._finish()
        if self._killed is None and self._process.returncode > 0 and not was_started:
            raise CannotIsolate(f"the box did not start: {last_words.decode(errors='replace').strip() or 'no reason given'}")

    def _read(self) -> Iterator[Chunk]:
        pipes: dict[Stream, IO[bytes] | None] = {"stdout": self._process.stdout, "stderr": self._process.stderr}
        given_up = None
        with selectors.DefaultSelector() as selector:
            for name, pipe in pipes.items():
                if pipe is not None:
                    selector.register(pipe, selectors.EVENT_READ, name)
            while selector.get_map():
                ready = selector.select(WATCH_SECONDS)
                for key, _ in ready:
                    data = os.read(key.fd, READ_BYTES)
                    if data:
                        yield key.data, data
                    else:
                        selector.unregister(key.fileobj)
                if not ready and self._process.poll() is not None:
                    given_up = given_up or time.monotonic() + DRAIN_SECONDS
                    if time.monotonic() > given_up:
                        return

    def _watch_over(self) -> None:
        next_look = time.monotonic() + DISK_SECONDS
        while not self._over.wait(max(0.0, min(WATCH_SECONDS, self._deadline - time.monotonic()))):
            now = time.monotonic()
            if self._process.poll() is not None:
                self._end()
            elif now >= self._deadline:
                self._kill("timeout")
            elif now >= next_look:
                next_look = now + DISK_SECONDS
                if self._disk_is_full():
                    self._kill("disk")

    def _kill(self, reason: Reason) -> None:
        if self._exit is None and self._process.poll() is None:
            self._killed = self._killed or reason
        self._end()

    def _finish(self) -> None:
        if self._process.poll() is None:
            self._kill("killed")
            self._process.wait()
        self._over.set()
        self._end()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        self._exit = exit_of(self._process.returncode, self._killed)
        self._note.unlink(missing_ok=True)
        self._order.close()


def exit_of(returncode: int, killed: Reason | None) -> Exit:
    """The exit as a shell would give it."""
    if killed == "timeout":
        return Exit(code=TIMEOUT_EXIT_CODE, reason="timeout")
    return Exit(code=128 - returncode if returncode < 0 else returncode, reason=killed or "exited")
