"""A systemd unit's journal, read on the host by `journalctl -o json`; which revision serves, the journal does not know."""

from __future__ import annotations

import json
import subprocess
import threading
from itertools import islice
from typing import TYPE_CHECKING, Any

from herdbook.watch.findings import Line, RevisionState
from herdbook.watch.sources.moments import well_formed
from herdbook.watch.sources.protocol import LINES_PER_PAGE, Page, Unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS_MAX = 30.0
LEVELS = {"0": "EMERGENCY", "1": "ALERT", "2": "CRITICAL", "3": "ERROR", "4": "WARNING"}


class JournaldSource:
    """`unit`. A cursor is the journal's own."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.unit, self.program = options["unit"], options.get("program", "journalctl")

    def tail(self, service: str, since: str) -> Page:
        place = f"--after-cursor={since}" if since.startswith("s=") else f"--since=@{int(float(since))}"
        entries = [json.loads(line) for line in self.first(place) if line.startswith(b"{")]
        lines = tuple(line_of(each) for each in entries)
        return Page(lines, entries[-1]["__CURSOR"] if entries else since, len(entries) == LINES_PER_PAGE)

    def first(self, place: str) -> list[bytes]:
        """The oldest lines from there. `-n` would give the newest in most versions: the program is ended when it said enough."""
        command = [self.program, "-o", "json", "--all", "--no-pager", "-q", "-u", self.unit, place]
        try:
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
                timer = threading.Timer(SECONDS_MAX, running.kill)
                timer.start()
                assert running.stdout is not None
                found = list(islice(running.stdout, LINES_PER_PAGE))
                running.kill() if len(found) == LINES_PER_PAGE else None
                said = running.communicate()[1]
                timer.cancel()
        except OSError as problem:
            raise Unreadable(f"the journal of {self.unit} cannot be read: {problem}") from problem
        if running.returncode != 0 and len(found) < LINES_PER_PAGE:
            why = said.decode(errors="replace").strip()[:200] or f"{self.program} ended with {running.returncode}"
            raise Unreadable(f"the journal of {self.unit} cannot be read: {why}")
        return found

    def revision_state(self, service: str) -> RevisionState:
        return RevisionState()


def line_of(entry: dict[str, Any]) -> Line:
    """A message with its level, where that says more than it does itself: units log what they print as `info`."""
    text, level = text_of(entry.get("MESSAGE")), LEVELS.get(str(entry.get("PRIORITY")), "")
    shown = f"{level} {text}" if level and level not in text[:60].upper() else text
    return Line(shown, int(entry.get("__REALTIME_TIMESTAMP") or 0) / 1e6)


def text_of(message: Any) -> str:
    """The journal gives what is no UTF-8 as a list of bytes, and a field that came twice as a list of either."""
    if not isinstance(message, list):
        return str(well_formed(message or ""))
    if all(isinstance(each, int) for each in message):
        return bytes(message).decode("utf-8", "replace")
    return " ".join(map(text_of, message))
