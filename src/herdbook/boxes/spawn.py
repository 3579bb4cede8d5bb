"""Starting the launcher with its order, for every provider that runs programs on this machine."""

from __future__ import annotations

import marshal
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from herdbook.base.errors import InvalidRequest
from herdbook.boxes import launch, owner

LAUNCH = Path(launch.__file__)


def order_for(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    limits: Sequence[tuple[str, int]],
    drop_to: int = 0,
    no_user_namespaces: str = "",
) -> dict[str, Any]:
    """What the launcher is to do. Refuses what no program can be started with."""
    words = [*argv, cwd, *env, *env.values()]
    if not argv or any("\0" in word for word in words):
        raise InvalidRequest("a program is a list of texts without NUL characters, the first of which names it")
    if any("=" in name or not name for name in env):
        raise InvalidRequest("the name of an environment variable cannot be empty or hold '='")
    return {
        "argv": list(argv),
        "env": dict(env),
        "cwd": cwd,
        "limits": list(limits),
        "drop_to": drop_to,
        "no_user_namespaces": no_user_namespaces,
    }


def order_bytes(order: Mapping[str, Any]) -> bytes:
    """The order for a launcher that takes it on its input: its length, then a form that every Python reads, an older one too."""
    data = marshal.dumps(dict(order), 2)
    return len(data).to_bytes(4, "big") + data


class OpenFile:
    """An open, nameless file to hand to a child: it goes with the last process that holds it."""

    def __init__(self, data: bytes) -> None:
        self._file = os.fdopen(nameless(), "w+b")
        self._file.write(data)
        self._file.flush()
        self._file.seek(0)

    @property
    def fd(self) -> int:
        return self._file.fileno()

    def is_empty(self) -> bool:
        return os.fstat(self.fd).st_size == 0

    def close(self) -> None:
        self._file.close()


def nameless() -> int:
    """In memory where the system can, since an order holds the box's environment."""
    if owner.IS_LINUX:
        return os.memfd_create("herdbook")
    fd, path = tempfile.mkstemp()
    os.unlink(path)
    return fd


def order_file(order: Mapping[str, Any]) -> OpenFile:
    return OpenFile(marshal.dumps(dict(order)))
