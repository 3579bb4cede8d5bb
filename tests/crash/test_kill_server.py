"""kill -9 of `herdbook serve` under clients that keep their ids: what was acknowledged stays, what was not happens once."""

from __future__ import annotations

import json
import random
import signal
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import herdbook
from herdbook.client import HerdbookError
from tests.crash import invariants
from tests.crash.running import Served, figures, seeded, served, until

pytestmark = pytest.mark.usefixtures("home")
CLIENTS = 8
ENTITY = "acme/ci"


class Writing(threading.Thread):
    """One agent: writes to a key of its own and to a shared one, reads, commits; retries with the same id until told."""

    def __init__(self, server: Served, number: int) -> None:
        super().__init__(daemon=True)
        self.client = server.client(session=f"run-{number}", agent=f"agent-{number}", timeout_seconds=5.0)
        self.number, self.enough = number, threading.Event()
        self.acknowledged: dict[str, dict[str, Any]] = {}
        self.reads: Counter[tuple[str, int]] = Counter()
        self.doubtful_reads = 0
        self.again = 0
        self.refusals: list[str] = []

    def run(self) -> None:
        nth = 0
        while not self.enough.is_set():
            name = f"{self.number}.{nth}"
            key = "shared" if nth % 3 == 0 else f"own-{self.number}"
            self.perform(
                name, "write", {"entity": ENTITY, "key": key, "value": {"op": name}, "why": "w", "request_id": f"r{name}"}
            )
            if nth % 4 == 1:
                self.perform(name, "read", {"entity": ENTITY, "key": key})
            if nth % 5 == 2:
                self.perform(
                    name, "commit_outcome", {"type": "success", "ref": f"o{name}", "used": [{"entity": ENTITY, "key": "shared"}]}
                )
            nth += 1

    def perform(self, name: str, verb: str, fields: dict[str, Any]) -> None:
        """The client itself tries six times; beyond that it is this agent's patience."""
        deadline = time.monotonic() + 60
        while True:
            try:
                answer = self.client.call(verb, dict(fields))
            except HerdbookError as error:
                if not error.away or time.monotonic() > deadline:
                    self.refusals.append(f"{verb} {name}: {error.code} {error}")
                    return
                self.again += 1
                self.doubtful_reads += verb == "read"
                continue
            if verb == "read":
                self.reads[answer["key"], answer["version"]] += 1
            else:
                self.acknowledged[fields.get("request_id") or fields["ref"]] = answer
            return


def finish(agents: list[Writing]) -> None:
    for agent in agents:
        agent.enough.set()
    for agent in agents:
        agent.join(90)
        assert not agent.is_alive(), "an agent hangs"
        agent.client.close()


def check_all(record: Path, agents: list[Writing]) -> int:
    """Nothing acknowledged is lost or doubled, nobody was refused; how many were acknowledged."""
    assert [] == [refusal for agent in agents for refusal in agent.refusals]
    with herdbook.open(record) as client:
        client.write("acme/end", "k", "brings the last reads into the record", request_id="end")
    invariants.check(record)
    made, refs = invariants.versions_by_request(record), invariants.outcome_refs(record)
    del made["end"]
    acknowledged = {name: answer for agent in agents for name, answer in agent.acknowledged.items()}
    for name, answer in acknowledged.items():
        if name.startswith("r"):
            assert [(answer["key"], answer["version"], {"op": name[1:]})] == made[name], name
        else:
            assert 1 == refs[name], name
            assert [1] == [1 for _ in answer["moved"]], answer
    assert set(acknowledged) == set(made) | set(refs), "more was written than anybody asked for"
    for agent in agents:
        folded = invariants.reads_folded(record, f"run-{agent.number}")
        assert not agent.reads - folded, "an answered read is lost"
    return len(acknowledged)


def acknowledged_at_least(agents: list[Writing], wanted: int) -> bool:
    return sum(len(agent.acknowledged) for agent in agents) >= wanted


def under_load(server: Served, chance: random.Random, *, kills: int, number: int) -> list[Writing]:
    """Kill and start again while the agents write; each time after a few more acknowledgements, and a moment."""
    agents = [Writing(server, nth) for nth in range(CLIENTS)]
    for agent in agents:
        agent.start()
    for _ in range(kills):
        wanted = sum(len(agent.acknowledged) for agent in agents) + chance.randint(20, 150)
        until(partial(acknowledged_at_least, agents, wanted), what="more acknowledged writes")
        deadline = time.monotonic() + chance.uniform(0, 0.01)
        while time.monotonic() < deadline:  # less than a scheduler's sleep, so as to end anywhere within a commit
            pass
        server.end(number)
        server.start()
    done = {agent.number: len(agent.acknowledged) for agent in agents}
    until(lambda: all(len(agent.acknowledged) > done[agent.number] for agent in agents), what="everybody writes again")
    finish(agents)
    return agents


@pytest.mark.parametrize(
    "kills", [pytest.param(10, marks=pytest.mark.slow), pytest.param(100, marks=[pytest.mark.long, pytest.mark.timeout(600)])]
)
def test_a_killed_server_loses_nothing(tmp_path: Path, kills: int) -> None:
    """A crash of the server would take back what eight agents were told, or make their retries count twice."""
    chance = seeded()
    with served(tmp_path) as server:
        agents = under_load(server, chance, kills=kills, number=signal.SIGKILL)
    count = check_all(tmp_path / "record.db", agents)
    again = sum(agent.again for agent in agents)
    figures(
        "killed server", {"kills": kills, "acknowledged": count, "lost": 0, "calls made again beyond the client's own": again}
    )
    assert "Traceback" not in server.log.read_text()


@pytest.mark.slow
def test_a_server_stopped_under_load_answers_or_leaves_it_to_a_retry(tmp_path: Path) -> None:
    """A deployment would lose writes, or reads that an outcome will rest on, or end with an error."""
    chance = seeded()
    with served(tmp_path) as server:
        agents = under_load(server, chance, kills=3, number=signal.SIGTERM)
        assert 0 == server.end(signal.SIGTERM)
    check_all(tmp_path / "record.db", agents)
    assert "Traceback" not in server.log.read_text()
    assert "unhandled" not in server.log.read_text().lower()


@pytest.mark.slow
def test_two_servers_on_one_file_count_an_outcome_once(tmp_path: Path) -> None:
    """Whoever runs a second server for safety would double the trust that outcomes move."""
    other = tmp_path / "other.sock"
    with served(tmp_path) as one, served(tmp_path, socket=other, log=tmp_path / "other.log") as two:
        with one.client() as client:
            client.write(ENTITY, "k", 1, why="w", confidence=0.5)
        answers: list[str] = []
        gate = threading.Barrier(CLIENTS)

        def deliver(server: Served) -> None:
            with server.client(session="run") as client:
                for nth in range(6):
                    gate.wait(30)
                    answer = client.commit_outcome("success", ref=f"ref-{nth}", used=[{"entity": ENTITY, "key": "k"}])
                    answers.append(f"{nth} {json.dumps(answer, sort_keys=True)}")

        threads = [threading.Thread(target=deliver, args=((one, two)[nth % 2],)) for nth in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert 6 * CLIENTS == len(answers)
    assert 6 == len(set(answers)), "one ref, two answers"
    record = tmp_path / "record.db"
    invariants.check(record)
    assert Counter({f"ref-{nth}": 1 for nth in range(6)}) == invariants.outcome_refs(record)
    with invariants.reading(record) as file:
        ((confidence, moves),) = file.execute("SELECT confidence, moves FROM claim").fetchall()
    assert (6, pytest.approx(0.5 * 1.03**6, abs=1e-12)) == (moves, confidence)
