"""kill -9 of a process that writes through `herdbook.open`, at any moment: opening, writing, reading, committing an outcome."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import herdbook
from tests.crash import invariants
from tests.crash.running import Program, figures, seeded

OPENING_SECONDS = 0.015  # some children die while they open the record, the others after so many acknowledgements and a moment
ANSWERS_MAX, MOMENT_SECONDS = 16, 0.004


class Ledger:
    """What the children said: begun, acknowledged, and what is unknown in between."""

    def __init__(self) -> None:
        self.open: dict[str, dict[str, Any]] = {}
        self.done: dict[str, dict[str, Any]] = {}
        self.operations: dict[str, dict[str, Any]] = {}
        self.unknown: dict[str, int] = {}  # with the time of the kill, in microseconds
        self.read_in_doubt: Counter[str] = Counter()  # by key: a read cut off may or may not have been noted

    def hear(self, said: dict[str, Any]) -> None:
        if "begun" in said:
            operation = said["begun"]
            self.open[operation["id"]] = self.operations[operation["id"]] = operation
        elif "done" in said:
            operation = self.open.pop(said["done"])
            self.done[operation["id"]] = said

    def cut(self) -> list[dict[str, Any]]:
        """The child is dead: what is to be done again with the same ids. A read is not: it has none."""
        again = [operation for operation in self.open.values() if operation["verb"] != "read"]
        self.unknown |= {operation["id"]: time.time_ns() // 1000 for operation in again}
        for operation in self.open.values():
            if operation["verb"] == "read":
                self.read_in_doubt[operation["fields"]["key"]] += 1
        self.open.clear()
        return again

    def acknowledged(self, verb: str) -> list[str]:
        return [name for name in self.done if self.operations[name]["verb"] == verb]


def kill_children(writer: Program, ledger: Ledger, chance: random.Random, *, kills: int) -> None:
    again: list[dict[str, Any]] = []
    for generation in range(kills):
        writer.tell({"generation": generation, "again": again})
        child = writer.must_say()["child"]
        opening = generation % 5 == 0
        enough = len(ledger.done) + (0 if opening else chance.randint(0, ANSWERS_MAX))
        while len(ledger.done) < enough:
            ledger.hear(writer.must_say())
        deadline = time.monotonic() + chance.uniform(0, OPENING_SECONDS if opening else MOMENT_SECONDS)
        while (left := deadline - time.monotonic()) > 0:
            ledger.hear(writer.said(within_seconds=left) or {})
        os.kill(child, signal.SIGKILL)  # ours, and not waited for yet: the number cannot be another's
        while "dead" not in (said := writer.must_say()):
            ledger.hear(said)
        assert said["dead"] == -signal.SIGKILL, "it ended by itself: see its traceback"
        again = ledger.cut()


def settle(record: Path, ledger: Ledger, kills: int) -> None:
    """Do again what the last kill left open, and bring the reads into the record."""
    with herdbook.open(record, agent="writer", session="last") as client:
        for name in sorted(ledger.unknown.keys() - ledger.done.keys()):
            operation = ledger.operations[name]
            client.transport.call("start_session", {"session": operation["fields"]["session"], "agent": "writer"})
            ledger.done[name] = client.transport.call(operation["verb"], operation["fields"])
        client.write("acme/end", "k", kills)


@pytest.mark.parametrize(
    "kills",
    [pytest.param(100, marks=pytest.mark.slow), pytest.param(500, marks=[pytest.mark.long, pytest.mark.timeout(600)])],
)
def test_a_killed_writer_loses_nothing(home: Path, kills: int) -> None:
    """An agent would be told "it is written", and the record would not have it, or have it twice."""
    record, ledger = home / "record.db", Ledger()
    chance = seeded()
    with Program("writer", str(record), home=home) as writer:
        assert writer.must_say() == {"ready": True}
        kill_children(writer, ledger, chance, kills=kills)
    settle(record, ledger, kills)
    writes, outcomes, reads = map(ledger.acknowledged, ("write", "commit_outcome", "read"))
    figures("killed in process", {
        "kills": kills, "acknowledged": len(ledger.done), "writes": len(writes), "outcomes": len(outcomes), "reads": len(reads),
        "unknown": len(ledger.unknown), "of them stored before the kill": stored_before(record, ledger),
    })  # fmt: skip
    assert len(writes) > kills, "the children hardly got to write: this proves nothing"
    invariants.check(record)
    made, refs = invariants.versions_by_request(record), invariants.outcome_refs(record)
    for name in writes:
        assert [(key_of(ledger, name), ledger.done[name]["version"], {"op": name})] == made[f"r{name}"], name
    assert {f"r{name}" for name in writes} == {request for request in made if request.startswith("r") and "." in request}
    assert Counter({f"o{name}": 1 for name in outcomes}) == refs
    check_reads(record, ledger, reads)


def stored_before(record: Path, ledger: Ledger) -> int:
    """How many were committed and never acknowledged: for these it is the retry that is tested."""
    with invariants.reading(record) as file:
        at = dict(file.execute("SELECT request, at FROM version UNION ALL SELECT ref, at FROM outcome").fetchall())
    return sum(
        at[f"{'r' if ledger.operations[name]['verb'] == 'write' else 'o'}{name}"] <= killed
        for name, killed in ledger.unknown.items()
    )


def key_of(ledger: Ledger, name: str) -> str:
    return str(ledger.operations[name]["fields"]["key"])


def check_reads(record: Path, ledger: Ledger, reads: list[str]) -> None:
    """Every read that was answered is in the record, and no more than were begun."""
    expected = Counter((key_of(ledger, name), ledger.done[name]["version"]) for name in reads)
    folded = invariants.reads_folded(record)
    assert not expected - folded, "an answered read is lost"
    beyond: Counter[str] = Counter()
    for (key, _), count in (folded - expected).items():
        beyond[key] += count
    assert not beyond - ledger.read_in_doubt, "a read was counted twice"
