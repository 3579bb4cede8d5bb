"""A file of lines, or of JSON lines; in a box, the file into which its host feeds what only the host can read.

A JSON line may say `time`, `message`, `severity` and `revision` under the names that loggers use. Beside it a file may hold the
state of the revisions: `{"serving", "newest", "newest_ready", "old_serves"}`.
"""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING, Any, BinaryIO

from herdbook.watch.findings import Line, RevisionState
from herdbook.watch.sources.moments import moment, well_formed
from herdbook.watch.sources.protocol import LINES_PER_PAGE, Page, Unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGE_BYTES = 256 * 1024
STATE_BYTES_MAX = 64 * 1024
LEVELS = {10: "TRACE", 20: "DEBUG", 30: "INFO", 40: "WARN", 50: "ERROR", 60: "FATAL"}  # pino and bunyan count them


class FileSource:
    """`path`, and `state` where there is one. A cursor is a place in the file.

    What stood there before the first look counts only if its own time says so: a line without one may be from last year. A file
    that was there and is not is being rotated; one that never was is no log.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.path, self.state = options["path"], options.get("state", "")
        self.since, self.old, self.found = 0.0, 0, False
        self.is_fed = options.get("begins") == "first line"
        self.trouble = options.get("trouble", "")  # a file with the reason why the host that feeds this one could not

    def tail(self, service: str, since: str) -> Page:
        at = int(since[1:]) if since.startswith("@") else 0
        if not since.startswith("@"):
            self.since = float(since)
        try:
            with plain(self.path) as file:
                self.found = True
                size = file.seek(0, os.SEEK_END)
                at = at if at <= size else 0  # it was rotated
                if not since.startswith("@") and not self.is_fed:
                    self.old = size
                file.seek(at)
                data = file.read(PAGE_BYTES)
        except FileNotFoundError as problem:
            if self.found:
                return Page((), since)
            raise Unreadable(f"there is no log of {service} at {self.path}") from problem
        except OSError as problem:
            raise Unreadable(f"the log of {service} cannot be read: {problem.strerror or problem}") from problem
        whole = data[: data.rfind(b"\n") + 1] or (data if len(data) == PAGE_BYTES else b"")
        texts = whole.split(b"\n")[:LINES_PER_PAGE] if whole else []
        taken = sum(len(text) + 1 for text in texts)
        taken = min(taken, len(whole))
        lines = [line_of(text.decode("utf-8", "replace")) for text in texts if text.strip()]
        fresh = tuple(each for each in lines if (each.at >= self.since if each.at else at >= self.old))
        return Page(fresh, f"@{at + taken}", bool(whole) and at + taken < size)

    def revision_state(self, service: str) -> RevisionState:
        if self.trouble and (told := short_text(self.trouble)):
            raise Unreadable(told)
        if not self.state:
            return RevisionState()
        try:
            return state_of(well_formed(json.loads(short_text(self.state))))
        except (ValueError, RecursionError):
            return RevisionState(detail="the file with the state of the revisions cannot be read")


def plain(path: str) -> BinaryIO:
    """Opened for reading, if it is a plain file: a pipe or a device would have no end, or never begin."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError("it is no plain file")
    return open(number, "rb")


def short_text(path: str) -> str:
    """A small file's text; none where there is none."""
    try:
        with plain(path) as file:
            return file.read(STATE_BYTES_MAX).decode("utf-8", "replace")
    except OSError:
        return ""


def line_of(text: str) -> Line:
    """A line of JSON by its usual names, or the text as it is."""
    try:
        found = well_formed(json.loads(text)) if text.startswith("{") else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return Line(text)
    said = next((found[name] for name in ("message", "msg", "textPayload", "text", "log") if name in found), text)
    level = level_of(found.get("severity") or found.get("level"))
    told = str(said)
    at = moment(found.get("time") or found.get("timestamp") or found.get("ts") or 0)
    shown = f"{level} {told}" if level and level not in told[:60].upper() else told
    return Line(shown, at, str(found.get("revision") or ""))


def level_of(told: Any) -> str:
    return LEVELS.get(told, "") if isinstance(told, int) else str(told or "").upper()


def state_of(found: Any) -> RevisionState:
    told = found if isinstance(found, dict) else {}
    ready = told.get("newest_ready")
    return RevisionState(
        serving=str(told.get("serving") or ""),
        newest=str(told.get("newest") or ""),
        newest_ready=ready if isinstance(ready, bool) else None,
        old_serves=told.get("old_serves") is True,
        detail=str(told.get("detail") or ""),
    )
