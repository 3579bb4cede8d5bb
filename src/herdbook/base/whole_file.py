"""Changing a file of somebody else's: whole or not at all, through links, with the permissions it had.

What is there while a full disk or a kill interrupts it is what was there before.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Put these bytes where `path` leads. `mode` is for a file that was not there. Raises OSError, and then nothing changed."""
    real = Path(os.path.realpath(path))
    real.parent.mkdir(parents=True, exist_ok=True)
    permissions = real.stat().st_mode & 0o777 if real.exists() else mode
    fresh = real.with_name(f".{real.name}.herdbook-{os.getpid()}")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, permissions)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        os.chmod(fresh, permissions)
        os.replace(fresh, real)
    except OSError:
        with suppress(OSError):
            fresh.unlink()
        raise
