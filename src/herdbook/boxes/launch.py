"""The last step before a program runs in a box: take the limits, give up every privilege, and become the program.

Runs inside the box, on its interpreter, as a file of its own: it imports nothing of herdbook. It exists so that limits are set in
a process that is already there, never between fork and exec of a threaded parent; and a limit on processes must be taken inside
the box's user namespace, or it would count everything its user runs on the host.

The order comes in an open file, so that neither arguments nor environment show in the host's process list. Taking the order
empties the file: a file still full after the end means that the box itself never started. In a container it comes on standard
input, so that it is in no engine's records either; there this is the first process, and lives as long as who holds the other end.
In a machine of its own it is told to watch over the program instead: nothing there ends what the program leaves behind.

An engine's own filter of system calls may let a box make namespaces within its container (Podman's does), and so reach much more
of the kernel. So the first process of a container forbids it to itself and to all that come from it, whatever the engine allows.
"""

from __future__ import annotations

import _thread  # all of `threading` would be imported for one thread
import errno
import marshal  # a third of this program's time would go into importing json
import os
import resource
import signal
import struct
import sys
from typing import Any

CANNOT_RUN, NOT_FOUND = 126, 127  # as shells answer
OWNER_IS_GONE = 137
NAMESPACES = 0x00000080 | 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
# For each machine, the kinds of system calls its kernel takes (AUDIT_ARCH_*), and there: unshare, clone, setns. From Linux's own
# tables, which never change. clone3 is the same everywhere. What has bit 30 set (x32) is refused whole.
CALLS = {
    "x86_64": {0xC000003E: (272, 56, 308), 0x40000003: (310, 120, 346)},
    "aarch64": {0xC00000B7: (97, 220, 268), 0x40000028: (337, 120, 375)},
    "riscv64": {0xC00000F3: (97, 220, 268)},
}
CLONE3, X32 = 435, 0x40000000
FIRST_PROCESS, WATCHED = "first-process", "watched"  # in place of the open file's number: the order comes on standard input


def take_order(fd: int) -> dict[str, Any]:
    os.lseek(fd, 0, os.SEEK_SET)
    with os.fdopen(os.dup(fd), "rb") as file:
        order: dict[str, Any] = marshal.load(file)
    return order


def take_order_from_input() -> dict[str, Any]:
    """The order, its length before it; the input stays open, for its end to be noticed."""
    order: dict[str, Any] = marshal.loads(exactly(int.from_bytes(exactly(4), "big")))
    return order


def exactly(size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = os.read(0, size - len(data))
        if not more:
            os._exit(OWNER_IS_GONE)
        data += more
    return data


def be_first_process() -> None:
    """Return in a child, and let this process only wait for it: the kernel shields a container's first process from signals."""
    child = os.fork()
    if child == 0:
        no_input()
        return
    _thread.start_new_thread(end_with_input, ())
    while True:
        ended, status = os.wait()
        if ended == child:  # the others are orphans of the program, and go with this process
            os._exit(as_shells_answer(status))


def be_watched() -> None:
    """Return in a child with a process group of its own; this process waits, passes on that it is to end, and clears away."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        no_input()
        return
    signal.signal(signal.SIGTERM, lambda *_: kill_group(child))
    status = os.waitpid(child, 0)[1]
    kill_group(child)
    os._exit(as_shells_answer(status))


def kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return  # because all of them have ended


def no_input() -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)


def as_shells_answer(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def end_with_input() -> None:
    """Whoever started this is gone: the first process ends, and the kernel ends all others with it."""
    while os.read(0, 1024):
        pass
    os._exit(OWNER_IS_GONE)


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


def prepare(order: dict[str, Any]) -> None:
    """In a namespace: no more of them, the limits, and the box's user."""
    if order["no_user_namespaces"]:
        with open(order["no_user_namespaces"], "w", encoding="ascii") as setting:
            setting.write("0")
    set_limits(order["limits"])
    if order["drop_to"]:
        drop_to(order["drop_to"])


def namespace_filter(calls: dict[int, tuple[int, int, int]]) -> bytes:
    """The kernel's filter program: every call that would make a namespace or enter one is refused, all others pass."""
    load, equal, at_least, any_bit, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, refuse, unknown = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
    number, architecture, flags = 0, 4, 16  # where the kernel puts them for the filter
    program = [(load, 0, 0, architecture)]
    for kind, (unshare, clone, setns) in calls.items():
        program += [
            (equal, 0, 12, kind),
            (load, 0, 0, number),
            (at_least, 9, 0, X32),
            (equal, 8, 0, CLONE3),  # its flags are behind a pointer; libraries then use the older one
            (equal, 6, 0, setns),
            (equal, 2, 0, unshare),
            (equal, 1, 0, clone),
            (answer, 0, 0, allow),
            (load, 0, 0, flags),
            (any_bit, 1, 0, NAMESPACES),
            (answer, 0, 0, allow),
            (answer, 0, 0, refuse),
            (answer, 0, 0, unknown),
        ]
    program.append((answer, 0, 0, unknown))
    return b"".join(struct.pack("=HBBI", *each) for each in program)


def make_no_namespaces() -> None:
    """For this process and all that come from it. Where it cannot be done at all the probe sees what the engine allows."""
    calls = CALLS.get(os.uname().machine)
    try:
        import ctypes
    except ImportError:
        return
    if calls is None or sys.byteorder != "little":
        return
    program = namespace_filter(calls)
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HP", len(program) // 8, ctypes.addressof(instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_filter, mode = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(set_filter, mode, ctypes.c_char_p(header), 0, 0):
        raise OSError(ctypes.get_errno(), "the filter of system calls was not taken")


def main() -> int:
    if sys.argv[1] in (FIRST_PROCESS, WATCHED):
        order = take_order_from_input()
        if sys.argv[1] == FIRST_PROCESS:
            make_no_namespaces()
        be_first_process() if sys.argv[1] == FIRST_PROCESS else be_watched()
        set_limits(order["limits"])
    else:
        fd = int(sys.argv[1])
        order = take_order(fd)
        prepare(order)
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
