"""The last step before a program runs in a box: take the limits, give up every privilege, and become the program.

Runs inside the box, on its interpreter, as a file of its own: it imports nothing of herdbook. It exists so that limits are set in
a process that is already there, never between fork and exec of a threaded parent; and a limit on processes must be taken inside
the box's user namespace, or it would count everything its user runs on the host.

The order comes in an open file, so that neither arguments nor environment show in the host's process list. Taking the order
empties the file: a file still full after the end means that the box itself never started.
"""

from __future__ import annotations

import marshal  # a third of this program's time would go into importing json
import os
import resource
import sys
from typing import Any

CANNOT_RUN, NOT_FOUND = 126, 127  # as shells answer


def take_order(fd: int) -> dict[str, Any]:
    os.lseek(fd, 0, os.SEEK_SET)
    with os.fdopen(os.dup(fd), "rb") as file:
        order: dict[str, Any] = marshal.load(file)
    return order


def set_limits(limits: list[tuple[str, int]]) -> None:
    for name, value in limits:
        which = getattr(resource, name)
        hard = resource.getrlimit(which)[1]
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (allowed, allowed))


def drop_to(user: int) -> None:
    """From the namespace's root to its plain user; the kernel takes the capabilities away on the way."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def close_files() -> None:
    """Everything but the three standard streams, whoever left it open."""
    for name in os.listdir("/dev/fd"):
        if int(name) > 2:
            try:
                os.close(int(name))
            except OSError:
                continue  # because one of them was the listing itself


def main() -> int:
    fd = int(sys.argv[1])
    order = take_order(fd)
    if order["no_user_namespaces"]:
        with open(order["no_user_namespaces"], "w", encoding="ascii") as setting:
            setting.write("0")
    set_limits(order["limits"])
    if order["drop_to"]:
        drop_to(order["drop_to"])
    os.ftruncate(fd, 0)
    close_files()
    try:
        os.chdir(order["cwd"])
        os.execvpe(order["argv"][0], order["argv"], order["env"])
    except OSError as problem:
        os.write(2, f"cannot run {order['argv'][0]!r} in {order['cwd']}: {problem.strerror}\n".encode(errors="replace"))
        return NOT_FOUND if isinstance(problem, FileNotFoundError) else CANNOT_RUN


if __name__ == "__main__":
    sys.exit(main())
