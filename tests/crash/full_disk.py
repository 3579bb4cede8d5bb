"""Fills the disk under a record, looks at what goes on, makes room again. Run where a small disk of our own can be mounted.

The disk is a tmpfs in a mount namespace (`unshare` without root), or a file-size limit of this process, which any may set.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import herdbook
from tests.crash import invariants
from tests.crash.running import Served, say

ENTITY = "acme/ci"
WRITES_MAX = 20_000
VALUE = "x" * 1_500
REFUSALS_WANTED = 20


class Tmpfs:
    """A disk of two megabytes."""

    def __init__(self, place: Path) -> None:
        self.ballast = place / "ballast"

    def fill(self) -> None:
        with self.ballast.open("ab", buffering=0) as file:
            for size in (65_536, 4_096, 1):
                try:
                    while file.write(b"b" * size):
                        pass
                except OSError:
                    continue

    def make_room(self) -> None:
        self.ballast.unlink()


class FileSizeLimit:
    """No file of this process grows beyond what the largest has."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(self) -> None:
        size = max(path.stat().st_size for path in self.place.rglob("*") if path.is_file())
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, self.before[1]))

    def make_room(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self.before)


class Story:
    """What a client was told: acknowledged, refused with which code."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.acknowledged: dict[str, int] = {}
        self.refused: list[str] = []
        self.reads: Counter[tuple[str, int]] = Counter()
        self.codes: Counter[str] = Counter()

    def write(self, nth: int) -> bool:
        name = f"w{nth}"
        try:
            answer = self.client.write(ENTITY, f"k{nth % 7}", [nth, VALUE], why="w", request_id=name)
        except Exception as problem:  # because whatever comes is to be counted by its kind
            self.codes[f"{code_of(problem)} {getattr(problem, 'status', 0)}"] += 1
            self.refused.append(name)
            return False
        self.acknowledged[name] = answer["version"]
        return True

    def read(self) -> str:
        try:
            answer = self.client.read(ENTITY, "k0")
        except Exception as problem:  # because whatever comes is to be counted by its kind
            return code_of(problem)
        self.reads[answer["key"], answer["version"]] += 1
        return "answered"

    def write_until_refused(self, disk: Tmpfs | FileSizeLimit) -> int:
        """Until so many writes in a row are refused, the disk being filled up each time it has room."""
        nth, in_a_row = len(self.acknowledged), 0
        while in_a_row < REFUSALS_WANTED:
            assert nth < WRITES_MAX, "the disk does not fill"
            in_a_row = 0 if self.write(nth) else in_a_row + 1
            if in_a_row == 1:
                disk.fill()
            nth += 1
        return nth


def code_of(problem: Exception) -> str:
    return f"{getattr(problem, 'code', '')}" or f"untyped {problem!r}"


def asked(client: Any, untracked: Any) -> dict[str, str]:
    """Every way of asking, on a full disk: what came of it."""
    ways: dict[str, Callable[[], Any]] = {
        "read": lambda: untracked.read(ENTITY, "k0"),
        "read an old one": lambda: untracked.read(ENTITY, "k1", version=1),
        "tracked read": lambda: client.read(ENTITY, "k0"),
        "brief": lambda: untracked.brief(ENTITY),
        "tracked brief": lambda: client.brief(ENTITY),
        "history": lambda: untracked.history(ENTITY, "k0"),
        "list": untracked.list,
        "diff": lambda: untracked.diff(ENTITY, "k0"),
        "search": lambda: untracked.search("w"),
        "search below": lambda: untracked.search("w", entity="acme"),
        "why": lambda: untracked.why(ENTITY, "k0"),
        "trace": lambda: untracked.trace("o0"),
        "status": untracked.status,
        "boxes": untracked.box_list,
    }
    return {name: result_of(way) for name, way in ways.items()}


def result_of(way: Callable[[], Any]) -> str:
    try:
        way()
    except Exception as problem:  # because whatever comes is to be named
        return code_of(problem)
    return "answered"


def tell(place: Path, disk: Tmpfs | FileSizeLimit, connect: Callable[..., Any]) -> dict[str, Any]:
    """The whole story, in process or through a server."""
    record = place / "record.db"
    story, untracked = Story(connect(session="run")), connect(session="")
    for nth in range(10):
        assert story.write(nth)
    story.client.commit_outcome("success", ref="o0", used=[{"entity": ENTITY, "key": "k0"}])
    assert story.read() == "answered"
    disk.fill()
    story.write_until_refused(disk)
    full: dict[str, Any] = {"asked": asked(story.client, untracked), "reads": Counter(story.read() for _ in range(50))}
    full["outcome"] = result_of(lambda: story.client.commit_outcome("success", ref="o1", used=[{"entity": ENTITY, "key": "k0"}]))
    full["started"] = result_of(lambda: connect(session="").list())
    disk.make_room()
    began = time.monotonic()
    missing = missing_of(story, record)
    again = [name for name in story.refused if not story.write(int(name[1:]))]
    seconds = time.monotonic() - began
    story.client.commit_outcome("success", ref="o1", used=[{"entity": ENTITY, "key": "k0"}])
    for _ in range(5):
        assert story.read() == "answered"
    untracked.write("acme/end", "k", 1)
    invariants.check(record)
    lost = {f"{key} {number}": n for (key, number), n in (story.reads - invariants.reads_folded(record, "run")).items()}
    return {
        **full, "acknowledged": len(story.acknowledged), "codes": story.codes, "lost": missing + missing_of(story, record),
        "refused again": again, "seconds": seconds, "reads lost": lost, "outcomes": invariants.outcome_refs(record),
        "versions": sum(map(len, invariants.versions_by_request(record).values())), "reads noted": story.reads.total(),
    }  # fmt: skip


def missing_of(story: Story, record: Path) -> list[str]:
    made = invariants.versions_by_request(record)
    return [name for name, number in story.acknowledged.items() if [number] != [n for _, n, _ in made.get(name, ())]]


def main() -> None:
    what, place = sys.argv[1], Path(sys.argv[2])
    os.environ["HERDBOOK_HOME"] = str(place)
    disk = FileSizeLimit(place) if what == "limit" else Tmpfs(place)
    if what != "server":
        say(tell(place, disk, lambda **more: herdbook.open(place / "record.db", agent="writer", **more)))
        return
    server = Served(place, socket=Path(sys.argv[3]) / "served.sock", log=Path(sys.argv[3]) / "serve.log")
    try:
        found = tell(place, disk, lambda **more: server.client(agent="writer", **more))
    finally:
        status = server.end(15)
    say(found | {"server ended": status, "tracebacks": server.log.read_text().count("Traceback")})


if __name__ == "__main__":
    main()
