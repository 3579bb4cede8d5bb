"""The first process of a container, by itself: what it forbids holds without any engine's own filter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from herdbook.boxes.launch import CALLS, CLONE3, FIRST_PROCESS, NAMESPACES
from herdbook.boxes.spawn import LAUNCH, order_bytes, order_for

KINDS = {"time": 0x80, "mnt": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000, "user": 0x10000000}
KINDS |= {"pid": 0x20000000, "net": 0x40000000}
# By the library, by number, and from a child; and what every program needs and must go on working.
INSIDE = """
import ctypes, errno, json, mmap, os, subprocess, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
unshare, clone, setns, clone3, kinds = json.loads(sys.argv[1])
def asked(number, *words):
    ctypes.set_errno(0)
    answer = libc.syscall(number, *map(ctypes.c_long, words))
    return errno.errorcode[ctypes.get_errno()] if answer == -1 else "done"
def by_the_older_door(number, flags):  # int 0x80, as 32-bit programs ask
    code = b"\\x53\\xb8" + number.to_bytes(4, "little") + b"\\xbb" + flags.to_bytes(4, "little") + b"\\xcd\\x80\\x5b\\xc3"
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    return errno.errorcode[-call()]
found = {name: asked(unshare, kind) for name, kind in kinds.items()}
found["with more"] = asked(unshare, 0x10020000)
found["clone"] = asked(clone, 0x10000000 | 17, 0, 0, 0, 0)
found["clone3"] = asked(clone3, 0, 0)
found["setns"] = asked(setns, os.open("/proc/self/ns/net", os.O_RDONLY), 0)
found["as another kind"] = asked(0x40000000 | unshare, 0x10000000)
found["files of its own"] = asked(unshare, 0x400)
if os.uname().machine == "x86_64":
    found["32 bits"] = by_the_older_door(310, 0x10000000)
thread = threading.Thread(target=found.update, args=({"thread": "done"},)); thread.start(); thread.join()
found["program"] = subprocess.run(["sh", "-c", "echo done | cat"], capture_output=True, text=True).stdout.strip()
print(json.dumps(found))
"""


def as_first_process(code: str, *arguments: str) -> Any:
    """What this program prints when the launcher has become it, as in a container but without one."""
    order = order_for([sys.executable, "-c", code, *arguments], env={"PATH": os.environ["PATH"]}, cwd="/", limits=[])
    command = [sys.executable, "-I", "-S", str(LAUNCH), FIRST_PROCESS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as launched:
        assert launched.stdin is not None
        assert launched.stdout is not None
        assert launched.stderr is not None
        launched.stdin.write(order_bytes(order))
        launched.stdin.flush()  # and stays open: its end is the end of the box
        said, problem = launched.stdout.read(), launched.stderr.read()
    assert b"" == problem
    return json.loads(said)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="containers of this machine need Linux")
def test_no_namespace_is_made_or_entered_whatever_the_engine_allows() -> None:
    """Podman's filter lets a box make user namespaces, and with them most of what a kernel offers to root alone."""
    machine = os.uname().machine
    assert machine in CALLS, f"the numbers of {machine}'s system calls are not known: add them to boxes/launch.py"
    unshare, clone, setns = next(iter(CALLS[machine].values()))
    found = as_first_process(INSIDE, json.dumps([unshare, clone, setns, CLONE3, KINDS]))
    refused = {**dict.fromkeys([*KINDS, "with more", "clone", "setns"], "EPERM"), "clone3": "ENOSYS"}
    assert refused == {name: found.pop(name) for name in refused}
    assert "ENOSYS" == found.pop("as another kind")
    assert found.pop("32 bits", "EPERM") in ("EPERM", "ENOSYS")  # ENOSYS where the kernel has no such door
    assert {"files of its own": "done", "thread": "done", "program": "done"} == found


def test_every_kind_of_namespace_is_among_those_forbidden() -> None:
    """One that is left out is a way around the filter."""
    assert sum(KINDS.values()) == NAMESPACES
