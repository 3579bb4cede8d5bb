"""Logs that only the host can read, fed into the box as files while the actor watches: it needs no way out to them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Final

from herdbook.base.errors import HerdbookError
from herdbook.watch.config import Service
from herdbook.watch.sources.choose import on_host
from herdbook.watch.sources.protocol import Source

FED_BYTES_MAX: Final = 32 * 1024 * 1024  # of one service; what comes after is left out, and the last line says so
PAGES_AT_ONCE: Final = 50

Put = Callable[[str, bytes], None]


class Feeder:
    """One service's logs on their way in."""

    def __init__(self, name: str, source: Source, *, since: float) -> None:
        self.name, self.source, self.cursor = name, source, repr(since)
        self.fed, self.full, self.trouble = bytearray(), False, ""

    def feed(self, put: Put) -> None:
        """What is new, behind what was fed before; the file in the box is always whole. A log that cannot be read is said so."""
        before, trouble, state = len(self.fed), "", None
        try:
            for _ in range(PAGES_AT_ONCE):
                page = self.source.tail(self.name, self.cursor)
                self.cursor = page.next
                for each in page.lines:
                    self.add({"time": each.at, "message": each.text, "revision": each.revision})
                if not page.more:
                    break
            state = self.source.revision_state(self.name)
        except Exception as problem:  # because what stands in a log is not ours to foresee, and must not end the worker
            trouble = str(problem) or type(problem).__name__
        if len(self.fed) > before or before == 0:
            put(f"logs/{self.name}.jsonl", bytes(self.fed))
        if trouble != self.trouble:
            put(f"logs/{self.name}.trouble.txt", trouble.encode())
            self.trouble = trouble
        if state is not None:
            put(f"logs/{self.name}.state.json", json.dumps(asdict(state)).encode())

    def add(self, line: dict[str, object]) -> None:
        if self.full:
            return
        self.full = len(self.fed) > FED_BYTES_MAX
        said = {"message": f"ERROR herdbook leaves out what comes after {FED_BYTES_MAX} bytes"} if self.full else line
        self.fed += json.dumps(said).encode() + b"\n"


class Feeding:
    """All of a watch's host-read services, from one thread until it is stopped."""

    def __init__(self, services: Mapping[str, Service], put: Put, *, since: float, poll_seconds: float) -> None:
        found = [(name, on_host(each.source, each.options)) for name, each in services.items()]
        self.feeders = [Feeder(name, source, since=since) for name, source in found if source is not None]
        self.put, self.poll_seconds = put, poll_seconds
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run, name="herdbook-feeding", daemon=True)

    def __enter__(self) -> Feeding:
        self.turn()
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.thread.join()

    def run(self) -> None:
        while not self.stopped.wait(self.poll_seconds):
            self.turn()

    def turn(self) -> None:
        for each in self.feeders:
            try:
                each.feed(self.put)
            except (HerdbookError, OSError):
                return  # because the box may be gone already: its end is somebody else's news
