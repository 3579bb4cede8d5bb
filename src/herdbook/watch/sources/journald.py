"""A systemd unit's journal, read on the host by `journalctl -o json`; which revision serves, the journal does not know."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

from herdbook.watch.findings import Line, RevisionState
from herdbook.watch.sources.protocol import LINES_PER_PAGE, Page, Unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping


class JournaldSource:
    """`unit`. A cursor is the journal's own."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.unit, self.program = options["unit"], options.get("program", "journalctl")

    def tail(self, service: str, since: str) -> Page:
        place = [f"--after-cursor={since}"] if since.startswith("s=") else [f"--since=@{int(float(since))}"]
        command = [self.program, "-o", "json", "--no-pager", "-u", self.unit, *place, "-n", f"+{LINES_PER_PAGE}"]
        try:
            done = subprocess.run(command, capture_output=True, timeout=30, check=False)
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise Unreadable(f"the journal of {self.unit} cannot be read: {problem}") from problem
        if done.returncode != 0:
            raise Unreadable(f"the journal of {self.unit} cannot be read: {done.stderr.decode(errors='replace')[:200]}")
        entries = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
        lines = tuple(Line(text_of(each.get("MESSAGE")), int(each.get("__REALTIME_TIMESTAMP", 0)) / 1e6) for each in entries)
        return Page(lines, entries[-1]["__CURSOR"] if entries else since, len(entries) == LINES_PER_PAGE)

    def revision_state(self, service: str) -> RevisionState:
        return RevisionState()


def text_of(message: object) -> str:
    """The journal gives what is no UTF-8 as a list of bytes."""
    return bytes(message).decode("utf-8", "replace") if isinstance(message, list) else str(message or "")
