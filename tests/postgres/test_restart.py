"""The database dies under load: nothing acknowledged is lost, nothing counts twice, and servers come back by themselves."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from herdbook.base.clock import SystemClock
from herdbook.base.errors import HerdbookError, Unavailable
from herdbook.base.settings import Database
from herdbook.record.record import Record
from herdbook.service.door import Service
from herdbook.testing.records import Desk, person
from tests.postgres_server import LOGIN, Server

MORE = 20  # writes between two kills
PATIENCE_SECONDS = 120.0
DURABLE = {"fsync": "on", "synchronous_commit": "on", "shared_buffers": "32MB", "max_connections": "50"}


@pytest.fixture
def server() -> Iterator[Server]:
    """One of its own, which may be killed."""
    found = Server(settings=dict(DURABLE)).make_template()
    yield found
    found.remove()


def desk(server: Server, folder: Path, who: str) -> Desk:
    url = Database(server.url("herdbook_template", login=LOGIN))
    return person(Service(Record.open(url, key_file=folder / "seal.key"), SystemClock()), who)


class Load:
    """Writers that send the same request until it is answered, and remember what they were told."""

    def __init__(self, server: Server, folder: Path, writers: int) -> None:
        self.told: list[dict[str, int]] = [{} for _ in range(writers)]  # request: version
        self.moved: list[set[str]] = [set() for _ in range(writers)]
        self.refused: list[str] = []
        self.ending = threading.Event()
        self.desk = desk(server, folder, "ann")
        for n in range(writers):
            self.desk.begin(f"s{n}")
        self.desk.write("shared", "first", session="s0")
        self.threads = [threading.Thread(target=self.work, args=(n,), daemon=True) for n in range(writers)]
        for thread in self.threads:
            thread.start()

    def work(self, n: int) -> None:
        number = 0
        while not self.ending.is_set():
            request = f"w{n}-{number}"
            answer = self.insist("write", entity="acme", key=f"k{number % 3}", value=request, why="x", request_id=request)
            if answer:
                self.told[n][request] = answer["version"]
            used = [{"entity": "acme/checkout", "key": "shared"}]
            if self.insist("commit_outcome", session=f"s{n}", type="failure", used=used, ref=f"o{n}-{number}"):
                self.moved[n].add(f"o{n}-{number}")
            number += 1

    def insist(self, verb: str, **fields: Any) -> dict[str, Any] | None:
        for _ in range(100):
            try:
                return self.desk.do(verb, **fields)
            except Unavailable:
                if self.ending.wait(0.1):
                    return None
            except HerdbookError as problem:
                self.refused.append(f"{verb}: {problem.code}: {problem.message}")
                return None
        return None

    def end(self) -> None:
        self.ending.set()
        for thread in self.threads:
            thread.join(60)

    def carry(self, more: int) -> None:
        """Return once so many more writes were acknowledged, however long that takes here."""
        told = sum(map(len, self.told)) + more
        until = time.monotonic() + PATIENCE_SECONDS
        while sum(map(len, self.told)) < told:
            assert time.monotonic() < until, f"{PATIENCE_SECONDS} s, and not {more} writes more: {self.refused[:3]}"
            self.ending.wait(0.02)


def hold_up(server: Server, load: Load, *, times: int, more: int = MORE) -> None:
    try:
        for n in range(times):
            load.carry(more)  # it is killed under load
            server.stop(3 if n % 2 else 9)
            for left in (server.home / "data").glob("postmaster.pid"):
                left.unlink()
            server.start()
        load.carry(more)
    finally:
        load.end()
        load.desk.service.close()


def nothing_lost(server: Server, load: Load, folder: Path) -> None:
    ann = desk(server, folder, "ann")
    versions: dict[str, list[int]] = {}
    for told in load.told:
        for request, version in told.items():
            versions.setdefault(f"k{int(request.split('-')[1]) % 3}", []).append(version)
    for key, given in versions.items():
        there = [each["version"] for each in ann.history(key, entity="acme")]
        assert list(range(1, len(there) + 1)) == there, f"{key}: a gap or a duplicate"
        assert sorted(given) == sorted(set(given)), f"{key}: a version was given twice"
        assert set(given) <= set(there), f"{key}: acknowledged, and gone"
    claim = ann.claim("shared")
    refs = [move["ref"] for move in claim["moves"]]
    assert sorted(set(refs)) == sorted(refs), "an outcome counted twice"
    assert set().union(*load.moved) <= set(refs), "an acknowledged outcome is gone"
    ann.service.close()


@pytest.mark.slow
def test_a_server_that_is_killed_loses_nothing(server: Server, tmp_path: Path) -> None:
    """An acknowledged write would be gone, or a retried outcome would move trust twice."""
    load = Load(server, tmp_path, writers=4)
    hold_up(server, load, times=3)
    assert [] == load.refused
    nothing_lost(server, load, tmp_path)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_hundred_kills_lose_nothing(server: Server, tmp_path: Path) -> None:
    """What three kills do not show, a hundred do."""
    load = Load(server, tmp_path, writers=8)
    hold_up(server, load, times=100)
    assert [] == load.refused
    nothing_lost(server, load, tmp_path)


@pytest.mark.slow
def test_reads_and_writes_go_on_after_an_orderly_restart(server: Server, tmp_path: Path) -> None:
    """After every update of the database server somebody would have to restart ours."""
    ann = desk(server, tmp_path, "ann")
    ann.write("a", 1)
    ann.read("a")
    server.stop()
    server.start()
    assert 1 == ann.read("a")["value"]
    server.stop()
    server.start()
    assert 2 == ann.write("a", 2)["version"]
    ann.service.close()
