"""The two kinds of box a watch has: the actor's, which reads, and an errand's, which is made after the gates and tells.

Each kind has a label, and the gateway's grants go by labels: what an actor's box can reach cannot write anything anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from herdbook.base.errors import Broken, HerdbookError
from herdbook.boxes.host import Host, OpenSocket
from herdbook.boxes.provider import Chunk, Isolation, Provider
from herdbook.boxes.reaper import Reaped, reap
from herdbook.client import Client
from herdbook.client import HerdbookError as Refused
from herdbook.watch import pushing

ACTOR: Final = "watch-actor"
ERRAND: Final = "watch-errand"
LABELS: Final = (ACTOR, ERRAND)
LINE_BYTES_MAX: Final = 2 * 1024 * 1024
STRAY_CHARS_MAX: Final = 2_000
ERRAND_SECONDS_MAX: Final = 120
# What moves traffic or machines: a box must not even find them, though it has no credential that they could use.
NEVER_INSIDE: Final = (
    "gcloud",
    "gsutil",
    "kubectl",
    "helm",
    "aws",
    "az",
    "flyctl",
    "fly",
    "heroku",
    "terraform",
    "pulumi",
    "docker",
)

Put = Callable[[str, bytes], None]


class Boxes:
    """Opens, runs and ends boxes for one worker. What it leaves behind when it dies, the reaper ends."""

    def __init__(self, book: Client, provider: Provider, open_socket: OpenSocket, *, minimum: Isolation = "namespace") -> None:
        self.book, self.provider, self.minimum = book, provider, minimum
        self.hosts = {label: Host(book, provider, open_socket=open_socket, label=label) for label in LABELS}

    def run(
        self,
        label: str,
        box_id: str,
        module: str,
        task: Mapping[str, Any],
        *,
        seconds: float,
        on_start: Callable[[Put], Callable[[], None]] = lambda put: lambda: None,
    ) -> tuple[dict[str, Any], int]:
        """A fresh box, one program of ours in it to its end, and the box destroyed: its last event, and its exit code."""
        host = self.hosts[label]
        box = host.open(box_id, minimum=self.minimum, without=NEVER_INSIDE)
        try:
            for path, data in pushing.files().items():
                host.put(box, path, data)
            host.put(box, "task.json", json.dumps(task).encode())
            stop = on_start(lambda path, data: host.put(box, path, data))
            events = Events()
            try:
                code = host.run(box, [box.python, "-m", module], timeout_seconds=seconds, on_output=events.take)
            finally:  # only a thread of this process: a killed one has none
                stop()
            return events.last(code), code
        finally:  # a convenience: what a killed worker leaves is the reaper's
            host.destroy(box, detail="the watch is over")

    def destroy(self, label: str, box_id: str) -> None:
        """End what an earlier attempt may have left. A box that never was is fine."""
        try:
            self.hosts[label].destroy(box_id, detail="left behind by an earlier attempt")
        except (HerdbookError, Refused) as problem:
            if problem.code != "not_found":
                raise

    def reap(self) -> list[Reaped]:
        return [each for label in LABELS for each in reap(self.book, self.provider, label)]

    def close(self) -> None:
        for host in self.hosts.values():
            host.close()


class Events:
    """A box's output, cut into JSON lines. What is none is kept as a few last words; a line without end is cut."""

    def __init__(self) -> None:
        self.rest = b""
        self.found: list[dict[str, Any]] = []
        self.stray = ""

    def take(self, chunk: Chunk) -> None:
        stream, data = chunk
        if stream == "stderr":
            self.stray = (self.stray + data.decode(errors="replace"))[-STRAY_CHARS_MAX:]
            return
        *whole, self.rest = (self.rest + data).split(b"\n")
        self.rest = self.rest[:LINE_BYTES_MAX]
        for line in whole:
            with suppress(ValueError, RecursionError):
                event = json.loads(line)
                if isinstance(event, dict):
                    self.found.append(event)

    def last(self, code: int) -> dict[str, Any]:
        """The event the program ends with. Raises Broken, with its own words, when there is none."""
        last = self.found[-1] if self.found else {}
        if code != 0 or last.get("event") not in ("finding", "done"):
            said = last.get("message") or self.stray.strip()[-500:] or "it said nothing"
            raise Broken(f"the program in the box ended with exit code {code}: {said}")
        return last
