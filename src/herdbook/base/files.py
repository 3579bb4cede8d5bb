"""Files that a person names: read only if they are ordinary and as large as they may be, written whole or not at all.

A device has no end, a pipe may never begin, a folder is no text, and a link to nothing would make a file where nobody looked:
each is refused with a sentence, before a byte is read or written.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from herdbook.base.errors import DiskFull, InvalidRequest, NotFound, TooLarge, Unavailable
from herdbook.base.whole_file import write_whole


def read(path: Path, *, what: str, bytes_max: int) -> bytes:
    """What is in the file. `what` says in errors what it was to be."""
    try:
        # Not blocking: a pipe that nobody writes to would be waited for before it could be looked at.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError as problem:
        raise NotFound(f"there is no {path}, which was to be {what}: check its name") from problem
    except (OSError, ValueError) as problem:
        raise InvalidRequest(f"{path}, {what}, cannot be read ({reason(problem)}): check its name and permissions") from problem
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InvalidRequest(f"{path}, {what}, is no ordinary file: name one, not a folder, a pipe or a device")
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise TooLarge(f"{path}, {what}, is over {bytes_max} bytes: check that it is the right file")
    return data


def read_text(path: Path, *, what: str, bytes_max: int) -> str:
    try:
        return read(path, what=what, bytes_max=bytes_max).decode()
    except UnicodeDecodeError as problem:
        raise InvalidRequest(f"{path}, {what}, is not UTF-8: {problem.reason} at byte {problem.start}") from problem


def write(path: Path, data: bytes) -> None:
    """Put it there, through a link to a file that is there, with the permissions that file had."""
    target(path)
    try:
        write_whole(path, data)
    except OSError as problem:
        kind = DiskFull if problem.errno == 28 else Unavailable
        raise kind(f"{path} could not be written ({reason(problem)}): nothing was changed there") from problem


def target(path: Path) -> Path:
    """The file that would be written: an ordinary one, or a name that is free."""
    real = Path(os.path.realpath(path))
    if path.is_symlink() and not real.exists():
        raise InvalidRequest(f"{path} is a link to nothing: remove it, or name the file that is meant")
    if real.exists() and not real.is_file():
        raise InvalidRequest(f"{path} is no ordinary file: name one, not a folder, a pipe or a device")
    return real


def reason(problem: Exception) -> str:
    return getattr(problem, "strerror", None) or "no such name"
