"""A process that is stopped, not dead, while it has its turn to write: asking goes on, writers wait, nothing is lost."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import herdbook
from herdbook.client import HerdbookError
from tests.crash import invariants
from tests.crash.running import Program, served, until

ENTITY = "acme/ci"
ASKED_SECONDS_MAX = 5.0  # of a loaded machine; it is milliseconds


@contextmanager
def stopped_holder(home: Path) -> Iterator[Program]:
    with Program("holder", str(home / "record.db"), home=home) as holder:
        assert holder.must_say() == {"holding": True}
        os.kill(holder.process.pid, signal.SIGSTOP)
        yield holder


def ways_of_asking(client: herdbook.Client) -> dict[str, Any]:
    return {
        "read": lambda: client.read(ENTITY, "k"),
        "brief": lambda: client.brief(ENTITY),
        "history": lambda: client.history(ENTITY, "k"),
        "list": client.list,
        "search": lambda: client.search("w", entity="acme"),
        "status": client.status,
    }


class Waiting(threading.Thread):
    """A write that has not come back yet."""

    def __init__(self, client: herdbook.Client, name: str) -> None:
        super().__init__(daemon=True)
        self.client, self.request_id = client, name
        self.answer: dict[str, Any] | None = None
        self.problem: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self.answer = self.client.write(ENTITY, "k", self.request_id, why="w", request_id=self.request_id)
        except Exception as problem:  # because the test looks at whatever it is
            self.problem = problem


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGCONT, signal.SIGKILL], ids=["goes on", "is killed"])
def test_a_stopped_writer_holds_up_writers_only(home: Path, end: int) -> None:
    """One paused container would stop every agent on the machine from asking what is known."""
    record = home / "record.db"
    with herdbook.open(record, agent="tester", session="run") as client:
        client.write(ENTITY, "k", 0, why="w", request_id="before")
        with stopped_holder(home) as holder:
            waiting = [Waiting(client, f"w{nth}") for nth in range(3)]
            for name, ask in ways_of_asking(client).items():
                began = time.monotonic()
                ask()
                assert time.monotonic() - began < ASKED_SECONDS_MAX, name
            assert all(each.is_alive() for each in waiting), "a writer did not wait its turn"
            os.kill(holder.process.pid, end)
            if end == signal.SIGCONT:
                holder.tell("go on")
                assert holder.must_say() == {"done": True}
            until(lambda: not any(each.is_alive() for each in waiting), what="the writers had their turns", seconds=20)
        assert [None] * 3 == [each.problem for each in waiting]
        assert {2, 3, 4} == {each.answer["version"] for each in waiting if each.answer}
        client.write(ENTITY, "end", 1)
    invariants.check(record)
    with invariants.reading(record) as file:
        assert ([("1",)] if end == signal.SIGCONT else []) == file.execute(
            "SELECT value FROM meta WHERE name = 'held'"
        ).fetchall()


@pytest.mark.slow
def test_a_server_behind_a_stopped_writer_still_answers(home: Path) -> None:
    """A server would hang with the first writer that waits, and a client could not tell what became of its write."""
    with served(home) as server, server.client(session="") as asker:
        asker.write(ENTITY, "k", 0, why="w", request_id="before")
        with stopped_holder(home) as holder:
            hasty = server.client(session="", timeout_seconds=0.5)
            with pytest.raises(HerdbookError) as refusal:
                hasty.write(ENTITY, "k", 1, why="w", request_id="w1")
            assert refusal.value.away, "a client with a spool would throw the write away"
            for name, ask in ways_of_asking(asker).items():
                began = time.monotonic()
                ask()
                assert time.monotonic() - began < ASKED_SECONDS_MAX, name
            os.kill(holder.process.pid, signal.SIGCONT)
            holder.tell("go on")
            assert holder.must_say() == {"done": True}
        assert 2 == asker.write(ENTITY, "k", 1, why="w", request_id="w1")["version"], "the retry was not recognised"
    invariants.check(home / "record.db")
    assert {"before", "w1"} == set(invariants.versions_by_request(home / "record.db"))


@pytest.mark.slow
def test_a_shell_that_holds_the_file_is_waited_for(home: Path) -> None:
    """Somebody who looks with the sqlite3 shell, and begins a transaction there, would make agents fail."""
    import sqlite3

    record = home / "record.db"
    with herdbook.open(record, agent="tester", session="") as client:
        client.write(ENTITY, "k", 0, why="w")
        shell = sqlite3.connect(record, isolation_level=None)
        shell.execute("BEGIN IMMEDIATE")
        waiting = Waiting(client, "w1")
        assert 0 == client.read(ENTITY, "k")["value"]
        assert waiting.is_alive()
        shell.execute("ROLLBACK")
        shell.close()
        waiting.join(20)
        assert (None, 2) == (waiting.problem, waiting.answer and waiting.answer["version"])
