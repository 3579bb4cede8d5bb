"""Who keeps a lease: host name, process id and when that process started, so that a reused id is never taken for the owner.

Also the same question for any process: a pid file that names a start time can be acted on without hitting a stranger.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import Final

IS_LINUX: Final[bool] = sys.platform == "linux"
KEPT: Final = "kept"  # in place of a process: only the lease says how long the box lives


def this_process() -> str:
    """`host:pid:start` of the caller."""
    return f"{socket.gethostname()}:{os.getpid()}:{started(os.getpid())}"


def nobody() -> str:
    """The owner of a box that is to outlive the process that made it."""
    return f"{socket.gethostname()}:0:{KEPT}"


def is_dead(owner: str) -> bool:
    """True only if the owner certainly is no more: it ran on this host and is gone. Elsewhere the lease decides."""
    host, pid, start = ["", "", *owner.rsplit(":", 2)][-3:]
    if host != socket.gethostname() or not pid.isdecimal() or start == KEPT:
        return False
    return started(int(pid)) != start


def started(pid: int) -> str:
    """When this process started, in whatever form the system has; empty if there is no such process, or only its corpse."""
    if IS_LINUX:
        return started_by_proc(pid)
    answer = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return "_".join(answer.stdout.replace(":", ".").split())


def started_by_proc(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            after_name = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if after_name[0] in (b"Z", b"X") else after_name[19].decode()
