"""A small tracer: runs work in a child and is told of its file calls before the kernel carries them out; it may kill it there.

Linux only, by ptrace, so that neither a tool must be installed nor a library replaced. Threads and children are followed.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
from collections.abc import Callable
from typing import NamedTuple

NUMBERS = {  # of the calls that change a file or a lock, make it durable, or send something
    "x86_64": {
        1: "write", 18: "pwrite64", 20: "writev", 44: "sendto", 46: "sendmsg", 73: "flock", 74: "fsync", 75: "fdatasync",
        77: "ftruncate", 82: "rename", 83: "mkdir", 86: "link", 87: "unlink", 263: "unlinkat", 265: "linkat",
    },
    "aarch64": {
        64: "write", 68: "pwrite64", 66: "writev", 206: "sendto", 211: "sendmsg", 32: "flock", 82: "fsync", 83: "fdatasync",
        46: "ftruncate", 38: "renameat", 34: "mkdirat", 37: "linkat", 35: "unlinkat",
    },
}  # fmt: skip
BY_NAME = frozenset({"rename", "renameat", "mkdir", "mkdirat", "link", "linkat", "unlink", "unlinkat"})  # no open file is named
TRACE_ME, SYSCALL, SET_OPTIONS, GET_SYSCALL_INFO = 0, 24, 0x4200, 0x420E
GOOD_STOPS, FORKS, VFORKS, CLONES, EXECS, DIE_WITH_US = 1, 2, 4, 8, 16, 1 << 20
SYSCALL_STOP = signal.SIGTRAP | 0x80
WALL = 0x40000000  # threads too
ENTRY = 1


class SyscallInfo(ctypes.Structure):
    _fields_ = (
        ("op", ctypes.c_uint8),
        ("pad", ctypes.c_uint8 * 3),
        ("arch", ctypes.c_uint32),
        ("instruction", ctypes.c_uint64),
        ("stack", ctypes.c_uint64),
        ("number", ctypes.c_uint64),
        ("arguments", ctypes.c_uint64 * 6),
        ("more", ctypes.c_uint64 * 2),
    )


class Called(NamedTuple):
    """One call that is about to happen."""

    name: str
    file: str  # what its descriptor is open on
    size: int  # of what is written


class CannotTrace(Exception):
    """This machine does not let a process trace its own child."""


libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
libc.ptrace.restype = ctypes.c_long


def ptrace(request: int, process: int, address: int = 0, data: int = 0) -> int:
    return int(libc.ptrace(request, process, address, data))


def traced(work: Callable[[], None], watch: Callable[[Called], bool]) -> int:
    """Run `work` in a child; its exit status. `watch` sees each call before it happens; False kills the child there."""
    numbers = NUMBERS.get(platform.machine())
    if numbers is None or platform.system() != "Linux":
        raise CannotTrace(f"system calls are not known on {platform.system()} {platform.machine()}")
    child = os.fork()
    if child == 0:
        try:
            if ptrace(TRACE_ME, 0) != 0:
                os._exit(125)
            os.kill(os.getpid(), signal.SIGSTOP)
            work()
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, WALL)
    if os.WIFEXITED(status):
        raise CannotTrace("the kernel forbids tracing a child")
    ptrace(SET_OPTIONS, child, 0, GOOD_STOPS | FORKS | VFORKS | CLONES | EXECS | DIE_WITH_US)
    ptrace(SYSCALL, child)
    return follow(child, numbers, watch)


def follow(child: int, numbers: dict[int, str], watch: Callable[[Called], bool]) -> int:
    """Let the child and its threads run from one call to the next, to the end of the child."""
    while True:
        stopped, status = os.waitpid(-1, WALL)
        if not os.WIFSTOPPED(status):
            if stopped == child:
                return os.waitstatus_to_exitcode(status)
            continue
        number, passed_on = os.WSTOPSIG(status), 0
        if number == SYSCALL_STOP:
            found = call_of(stopped, numbers)
            if found is not None and not watch(found):
                os.kill(child, signal.SIGKILL)
                continue
        elif number not in (signal.SIGTRAP, signal.SIGSTOP):
            passed_on = number
        ptrace(SYSCALL, stopped, 0, passed_on)


def call_of(thread: int, numbers: dict[int, str]) -> Called | None:
    """What this thread is about to call, if it is one of ours and not on its way back."""
    info = SyscallInfo()
    if ptrace(GET_SYSCALL_INFO, thread, ctypes.sizeof(info), ctypes.addressof(info)) < 0 or info.op != ENTRY:
        return None
    name = numbers.get(info.number)
    if name is None:
        return None
    try:
        return Called(name, "" if name in BY_NAME else os.readlink(f"/proc/{thread}/fd/{info.arguments[0]}"), info.arguments[2])
    except OSError:
        return Called(name, "", 0)
