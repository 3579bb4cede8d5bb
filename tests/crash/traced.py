"""Programs that are run under the tracer: to see that a sync comes before an acknowledgement, and to die at each call in turn."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import herdbook
from herdbook.client import Client
from tests.crash import tracing
from tests.crash.running import say

ENTITY = "acme/ci"
SYNCS = ("fsync", "fdatasync")
SENDS = ("sendto", "sendmsg", "write", "writev")


def main() -> None:
    what, place, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    warm(place)
    try:
        {"acknowledgements": acknowledgements, "answers": answers, "deaths": deaths, "births": births}[what](place, count)
    except tracing.CannotTrace as problem:
        say({"cannot": str(problem)})


def warm(place: Path) -> None:
    """Import and open once, untraced: what follows is only what writing does."""
    with herdbook.open(place / "record.db", agent="writer", session="warm") as client:
        client.write(ENTITY, "k0", 0, why="w")
        client.read(ENTITY, "k0")
        client.commit_outcome("success", ref="warm", used=["k0"])


def acknowledgements(place: Path, count: int) -> None:
    """Write so many times in process, each acknowledged by a byte on a pipe; how many of these came after a sync of the log."""
    reader, writer = os.pipe()
    acknowledged, pipe = os.fdopen(reader, "rb", buffering=0), os.readlink(f"/proc/self/fd/{writer}")

    def work() -> None:
        with herdbook.open(place / "record.db", agent="writer", session="run") as client:
            client.start_session()
            os.write(writer, b"-")
            for nth in range(count):
                client.write(ENTITY, f"k{nth % 3}", {"n": nth}, why="w")
                os.write(writer, b"+")

    seen = Acknowledgements(pipe)
    status = tracing.traced(work, seen.watch)
    os.close(writer)
    said = acknowledged.read(count + 1)
    say({"status": status, "acknowledged": said.count(b"+"), "synced": seen.synced, "calls": seen.calls})


def answers(place: Path, count: int) -> None:
    """Serve to one client that writes so many times, each after the answer before; how many answers came after a sync."""
    path = place / "served.sock"
    seen = Acknowledgements("socket:", size_min=100)  # an event loop wakes itself by single bytes
    client = os.fork()
    if client == 0:
        try:
            write_to(path, count)
        finally:
            os._exit(1)
    command = [sys.executable, "-m", "herdbook", "serve", "--unix", str(path)]

    def work() -> None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execv(command[0], command)

    served = tracing.traced(work, seen.watch)
    say({"status": served, "acknowledged": seen.acknowledged, "synced": seen.synced, "calls": seen.calls})


def write_to(path: Path, count: int) -> None:
    """The client, and then the signal that ends the server: its parent is ours, its number is the peer's."""
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        os.sched_yield()
    client = Client(url=f"unix:{path}", spool="", agent="writer", session="served", timeout_seconds=30)
    for nth in range(count):
        client.write(ENTITY, f"k{nth % 3}", {"n": nth, "by": "served"}, why="w")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        peer.connect(str(path))
        server, *_ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    os.kill(server, signal.SIGTERM)
    os._exit(0)


class Acknowledgements:
    """Counts what is sent to a place, and whether the write-ahead log was made durable since the one before."""

    def __init__(self, place: str, size_min: int = 1) -> None:
        self.place, self.size_min, self.fresh = place, size_min, False
        self.acknowledged, self.synced, self.calls = 0, 0, 0

    def watch(self, called: tracing.Called) -> bool:
        self.calls += 1
        if called.name in SYNCS and called.file.endswith("-wal"):
            self.fresh = True
        elif called.name in SENDS and called.file.startswith(self.place) and called.size >= self.size_min:
            self.acknowledged += 1
            self.synced += self.fresh
            self.fresh = False
        return True


def deaths(place: Path, first: int) -> None:
    """Over a record that is there: die before the 1st, the 2nd, ... call that changes a file or a lock, in a fixed story."""

    def prepare(home: Path) -> None:
        for name in ("record.db", "record.db.reads", "seal.key"):
            shutil.copy(place / name, home / name)

    die_at_each(place, first, prepare, story)


def births(place: Path, first: int) -> None:
    """The same where there is nothing yet: files are made, the schema, the key."""
    die_at_each(place, first, lambda home: None, first_write)


def die_at_each(place: Path, first: int, prepare: Callable[[Path], None], tell: Callable[[Path, Told], None]) -> None:
    """Until a child reaches its end."""
    nth, status, step = first, -1, int(sys.argv[4])
    while status != 0:
        home = place / f"death-{nth}"
        home.mkdir()
        prepare(home)
        reader, writer = os.pipe()
        status = tracing.traced(partial(tell, home, Told(writer)), Death(home, nth).watch)
        os.close(writer)
        with os.fdopen(reader, "rb") as said:
            done = said.read().decode().split()
        say({"nth": nth, "home": str(home), "status": status, "done": done})
        nth += step


class Death:
    """Comes with the n-th call that touches a file of a home, before it is carried out."""

    def __init__(self, home: Path, nth: int) -> None:
        self.home, self.left = str(home), nth

    def watch(self, called: tracing.Called) -> bool:
        self.left -= not called.file or called.file.startswith(self.home)
        return self.left > 0


class Told:
    """Where a child says what was acknowledged to it."""

    def __init__(self, writer: int) -> None:
        self.writer = writer

    def acknowledge(self, name: str) -> None:
        os.write(self.writer, f"{name}\n".encode())


def story(home: Path, told: Told) -> None:
    """Open, read, write twice, commit, attest, revise, close: with ids, so that it can be told again."""
    os.environ["HERDBOOK_HOME"] = str(home)
    client = herdbook.open(home / "record.db", agent="writer", session="run")
    client.start_session()
    told.acknowledge("session")
    steps = (
        ("read", lambda: client.read(ENTITY, "k0", version=1)),
        ("w1", lambda: client.write(ENTITY, "k0", 1, why="w", request_id="w1")),
        ("w2", lambda: client.write("acme/new", "k1", 2, why="w", request_id="w2")),
        ("o1", lambda: client.commit_outcome("success", ref="o1", used=["k0"], task_input="t")),
        ("a1", lambda: client.attest("o1", exit_code=0)),
        ("v1", lambda: client.revise_outcome("o1", "failure", request_id="v1")),
    )
    for name, step in steps:
        step()
        told.acknowledge(name)
    client.close()


def first_write(home: Path, told: Told) -> None:
    """A record is made, and the first thing is written."""
    os.environ["HERDBOOK_HOME"] = str(home)
    client = herdbook.open(home / "record.db", agent="writer", session="")
    told.acknowledge("opened")
    client.write("acme/new", "k1", 2, why="w", request_id="w1")
    told.acknowledge("w1")
    client.close()


if __name__ == "__main__":
    main()
