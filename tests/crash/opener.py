"""Opens records in processes of its own: many at once, after a fork, where nothing may be written."""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import herdbook
from herdbook.client import HerdbookError as ClientError
from tests.crash.running import say

ENTITY = "acme/ci"


def at_once(place: Path, count: int) -> None:
    """So many processes open each of some fresh records at the same moment, and write once."""
    herdbook.open(place / "warm.db", agent="warm").close()
    for nth in range(count):
        reader, writer = os.pipe()
        os.environ["HERDBOOK_HOME"] = str(place / f"home-{nth}")
        children = [forked(partial(open_and_write, reader, f"p{who}")) for who in range(8)]
        os.close(reader)
        os.write(writer, b"g" * 8)
        say([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
        os.close(writer)


def open_and_write(gate: int, who: str) -> None:
    os.read(gate, 1)
    with herdbook.open(agent=who, session="") as client:
        client.write(ENTITY, "shared", who, why="w", request_id=who)


def forked(work: Any) -> int:
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as problem:
            os.write(2, f"{problem!r}\n".encode())
            raise
        finally:
            os._exit(1)
    return child


def forks(place: Path) -> None:
    """A client that was opened before a fork is used in the child, which opens the record again, too; then the parent goes on."""
    client = herdbook.open(place / "record.db", agent="writer", session="")
    client.write(ENTITY, "k", 0, why="w", request_id="before")
    child_ways = {
        "write": lambda: client.write(ENTITY, "k", 1, why="w", request_id="child"),
        "read": lambda: client.read(ENTITY, "k"),
        "open again": lambda: herdbook.open(place / "record.db"),
        "close": client.close,
    }
    child = forked(lambda: say({name: said_by(way) for name, way in child_ways.items()}))
    os.waitpid(child, 0)
    for nth in range(50):
        client.write(ENTITY, "k", ["parent", nth], why="w", request_id=f"parent-{nth}")
    client.close()
    child = forked(lambda: open_after(place, "after"))  # nothing is open: this one may
    say({"after": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])})


def lock_outlives(place: Path) -> None:
    """A process dies while it has its turn to write, and a child that it forked then lives on."""
    client = herdbook.open(place / "record.db", agent="writer", session="")
    client.write(ENTITY, "k", 0, why="w", request_id="before")

    def work(_: Any) -> None:
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # nobody waits for it when the test fails
            signal.pause()
        say({"child": child})
        sys.stdin.readline()

    client.transport.service.record.store.write(work)  # type: ignore[attr-defined]  # the one in this process


def twice(place: Path) -> None:
    """One process opens the record twice; told so, it writes on with the first."""
    first = herdbook.open(place / "record.db", agent="first", session="")
    first.write(ENTITY, "k", 0, why="w", request_id="first-0")
    second = herdbook.open(place / "record.db", agent="second", session="")
    second.write(ENTITY, "k", 1, why="w", request_id="second-0")
    second.close()
    say({"opened": True})
    sys.stdin.readline()
    for nth in range(1, 20):
        first.write(ENTITY, "k", ["first", nth], why="w", request_id=f"first-{nth}")
    say({"written": True})
    sys.stdin.readline()


def open_after(place: Path, who: str) -> None:
    with herdbook.open(place / "record.db", agent=who, session="") as client:
        client.write(ENTITY, "k", who, why="w", request_id=who)


def read_only(place: Path) -> None:
    """What opening says where nothing may be written, by how it is tried."""
    ways = {
        "new record": lambda: herdbook.open(place / "new" / "record.db"),
        "new record, old home": lambda: herdbook.open(place / "home" / "other.db"),
        "old record": lambda: herdbook.open(place / "home" / "record.db").read(ENTITY, "k"),
        "new key": lambda: with_home(place / "fresh", lambda: herdbook.open(Path(sys.argv[3]) / "elsewhere.db")),
    }
    os.environ["HERDBOOK_HOME"] = str(place / "home")
    say({name: said_by(way) for name, way in ways.items()})


def with_home(home: Path, work: Any) -> Any:
    os.environ["HERDBOOK_HOME"] = str(home)
    return work()


def said_by(way: Any) -> str:
    try:
        way()
    except (herdbook.HerdbookError, ClientError) as problem:
        return f"{problem.code}: {problem.message}"
    except Exception as problem:  # because whatever comes is to be named
        return f"untyped {problem!r}"
    return "opened"


if __name__ == "__main__":
    what, where = sys.argv[1], Path(sys.argv[2])
    if what == "at_once":
        at_once(where, int(sys.argv[3]))
    else:
        {"forks": forks, "lock_outlives": lock_outlives, "twice": twice, "read_only": read_only}[what](where)
