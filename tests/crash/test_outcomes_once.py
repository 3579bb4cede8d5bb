"""An outcome counts once, however often and by whomever it is delivered, and confidence is what its moves say."""

from __future__ import annotations

import json
import random
import socket
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import herdbook
from herdbook.client import Client
from tests.crash import invariants
from tests.crash.running import Served, figures, seeded, served

ENTITY = "acme/ci"
THREADS = 8
TYPES = ("success", "minor_failure", "failure", "critical_failure")


def together(work: Any, *, threads: int = THREADS) -> None:
    """Run `work(number)` in so many threads at once; what one raises is raised here."""
    failed: list[BaseException] = []
    gate = threading.Barrier(threads)

    def run(number: int) -> None:
        try:
            gate.wait(60)
            work(number)
        except BaseException as problem:  # because it must reach the test
            failed.append(problem)

    running = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(100)
        assert not thread.is_alive(), "a thread hangs"
    if failed:
        raise failed[0]


@pytest.mark.parametrize("how", ["in process", "served"])
def test_one_ref_from_eight_threads_six_times(home: Path, how: str) -> None:
    """A client's retries would move trust again and again, or get answers that differ."""
    answers: list[str] = []

    def deliver(client: Client) -> None:
        used = [{"entity": ENTITY, "key": "k"}]
        answers.extend(json.dumps(client.commit_outcome("success", ref="the-ref", used=used)) for _ in range(6))

    if how == "served":
        with served(home) as server:
            with server.client() as client:
                client.write(ENTITY, "k", 1, why="w")
            together(lambda _: deliver(server.client(session="run")))
    else:
        client = herdbook.open(home / "record.db", agent="tester", session="run")
        client.write(ENTITY, "k", 1, why="w")
        together(lambda _: deliver(client))
        client.close()
    assert 6 * THREADS == len(answers)
    assert 1 == len(set(answers)), "one ref, two answers"
    invariants.check(home / "record.db")
    with invariants.reading(home / "record.db") as file:
        assert [(1, pytest.approx(0.5 * 1.03))] == file.execute("SELECT moves, confidence FROM claim").fetchall()


def test_one_ref_with_another_body_is_refused(home: Path) -> None:
    """A second run under the first one's ref would be answered with what the first one did."""
    with herdbook.open(home / "record.db", agent="tester", session="run") as client:
        client.write(ENTITY, "k", 1, why="w", request_id="w1")
        client.commit_outcome("success", ref="o1", used=[])
        before = invariants.digest(home / "record.db")
        others = (
            lambda: client.commit_outcome("failure", ref="o1", used=[]),
            lambda: client.commit_outcome("success", ref="o1"),
            lambda: client.write(ENTITY, "k", 2, why="w", request_id="w1"),
            lambda: client.write(ENTITY, "k", 1, why="another", request_id="w1"),
        )
        for other in others:
            with pytest.raises(herdbook.HerdbookError) as refusal:
                other()
            assert ("request_conflict", 409) == (refusal.value.code, refusal.value.status)
        assert before == invariants.digest(home / "record.db")


def plan_of(chance: random.Random, outcomes: int) -> list[dict[str, Any]]:
    """So many outcomes of five causes each, each to be delivered one to three times."""
    plan = []
    for nth in range(outcomes):
        used = [{"entity": ENTITY, "key": f"k{number}"} for number in sorted(chance.sample(range(20), 5))]
        plan.append({"ref": f"o{nth}", "type": chance.choice(TYPES), "used": used, "session": f"run-{nth % THREADS}"})
    return plan


def dropped(server: Served, fields: dict[str, Any]) -> None:
    """Send an outcome whole and go away without waiting for the answer."""
    body = json.dumps(fields).encode()
    head = f"POST /v1/commit_outcome HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(30)
        sock.connect(str(server.socket))
        sock.sendall(head.encode() + body)


@pytest.mark.slow
def test_a_thousand_outcomes_delivered_more_than_once(home: Path) -> None:
    """Confidence would drift with the quality of the network instead of with what worked."""
    chance = seeded()
    plan = plan_of(chance, 1_000)
    deliveries = [fields for fields in plan for _ in range(chance.randint(1, 3))]
    chance.shuffle(deliveries)
    drops = {nth for nth in range(len(deliveries)) if chance.random() < 0.2}
    with served(home) as server:
        with server.client(session="") as client:
            for number in range(20):
                client.write(ENTITY, f"k{number}", number, why="w", confidence=0.9)
        for number in range(THREADS):
            server.client(session=f"run-{number}").start_session()

        def deliver(number: int) -> None:
            client = server.client(session="")
            for nth in range(number, len(deliveries), THREADS):
                if nth in drops:
                    dropped(server, deliveries[nth])
                else:
                    client.call("commit_outcome", dict(deliveries[nth]))

        together(deliver)
        with server.client(session="") as client:  # those whose every delivery was dropped may not have arrived
            for fields in plan:
                client.call("commit_outcome", dict(fields))
    record = home / "record.db"
    invariants.check(record)
    assert Counter({fields["ref"]: 1 for fields in plan}) == invariants.outcome_refs(record)
    expected = Counter(used["key"] for fields in plan for used in fields["used"])
    with invariants.reading(record) as file:
        moves = dict(file.execute("SELECT e.key, c.moves FROM claim c JOIN entry e ON e.id = c.entry").fetchall())
    figures(
        "outcomes",
        {"outcomes": len(plan), "deliveries": len(deliveries) + len(plan), "dropped": len(drops), "moves": expected.total()},
    )
    assert dict(expected) == moves
