"""Which run is going on in a folder of this machine: said by the hook that saw it begin, asked by others of the same agent.

An agent's tools are a process of their own that is not told the agent's session. Without this, what it reads through them would
belong to one run and the outcome to another.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

FRESH_SECONDS: Final = 24 * 3600.0  # an agent that has been left open for longer begins a run of its own


def place(home: Path, folder: str) -> Path:
    return home / "runs" / f"{sha256(os.path.realpath(folder).encode()).hexdigest()[:20]}.json"


def remember(home: Path, folder: str, said: dict[str, Any]) -> None:
    """What is known about the run in this folder, replacing what was."""
    save(place(home, folder), {**said, "at": time.time()})


def current(home: Path, folder: str) -> dict[str, Any]:
    """What is known about the run in this folder, or nothing."""
    found = load(place(home, folder))
    return found if time.time() - float(found.get("at", 0)) < FRESH_SECONDS else {}


def forget(home: Path, folder: str) -> None:
    with suppress(FileNotFoundError):
        place(home, folder).unlink()


def save(path: Path, data: dict[str, Any]) -> None:
    """A small private file, whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump(data, file)
    os.replace(fresh, path)


def load(path: Path) -> dict[str, Any]:
    """What such a file holds; nothing where it is missing or torn."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
