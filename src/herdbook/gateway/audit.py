"""What was done with credentials: which box, over which connection, what, and how it ended. Never a body or a header's value.

A line is written before a call goes out and another when it has ended, so no crash hides a call; without the first line there is
no call. Lines are handed to the system at once and brought to the disk within a second. One file a day (UTC), mode 0600.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, Final

import msgspec

from herdbook.base import clock
from herdbook.base.errors import DiskFull, Unavailable

SYNC_SECONDS: Final = 1.0
PREFIX: Final = "audit-"


class Audit:
    """The log of one gateway, on its event loop."""

    def __init__(self, folder: Path, source: clock.Clock) -> None:
        self.folder, self.clock = folder, source
        self.day = ""
        self.descriptor = -1
        self.syncing: asyncio.Task[None] | None = None

    def write(self, event: str, call: str, **fields: Any) -> None:
        """Append one line. Raises DiskFull or Unavailable, and then the call must not be made."""
        at = clock.iso(self.clock.now())
        line = msgspec.json.encode({"at": at, "event": event, "call": call, **fields}) + b"\n"
        try:
            if os.write(self.file_of(at[:10]), line) != len(line):
                raise DiskFull("the gateway's audit log has no room: free space; no call is made without its line")
        except OSError as problem:
            kind = DiskFull if problem.errno == 28 else Unavailable
            raise kind(f"the audit log cannot be written ({problem.strerror}): no call is made without its line") from problem
        if self.syncing is None or self.syncing.done():
            self.syncing = asyncio.get_running_loop().create_task(self.sync_soon())

    def file_of(self, day: str) -> int:
        if day != self.day:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            opened = os.open(self.folder / f"{PREFIX}{day}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self.close_file()
            self.day, self.descriptor = day, opened
        return self.descriptor

    async def sync_soon(self) -> None:
        await asyncio.sleep(SYNC_SECONDS)
        duplicate = os.dup(self.descriptor)  # so that midnight may close the other
        try:
            await asyncio.to_thread(os.fsync, duplicate)
        finally:
            os.close(duplicate)

    def close_file(self) -> None:
        if self.descriptor >= 0:
            os.fsync(self.descriptor)
            os.close(self.descriptor)
            self.descriptor = -1

    async def close(self) -> None:
        if self.syncing is not None:
            self.syncing.cancel()
            await asyncio.gather(self.syncing, return_exceptions=True)
        self.close_file()


def lines(folder: Path) -> list[dict[str, Any]]:
    """Everything that was written, oldest first. A line that a crash cut short is shown as what it is."""
    found = []
    for path in sorted(folder.glob(f"{PREFIX}*.jsonl")):
        for line in path.read_bytes().splitlines():
            try:
                found.append(msgspec.json.decode(line, type=dict[str, Any]))
            except msgspec.DecodeError:
                found.append({"event": "unreadable", "call": "", "at": path.name})
    return found
