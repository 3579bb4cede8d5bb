"""Many at once, through one file and through one server: no gap, no duplicate, no error reaches anybody, nobody starves."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.crash import invariants
from tests.crash.histories import impossible
from tests.crash.running import Program, figures, seeded, served, until

ENTITY = "acme/ci"
# A bench measures the share under load of nobody else's. Here other tests may run on the same processors, and a process that is
# not scheduled cannot write: the bound is loose, and the best of three counts. Starvation, as by a busy timeout, stays below it.
SHARE_MIN, TRIES = 0.3, 3


def crowd(home: Path, *, kill: float | None = None, **plan: Any) -> list[dict[str, Any]]:
    """What everybody in a crowd saw. `kill`: one writer is killed after this part of what the others will write."""
    with Program("crowd", str(home), json.dumps(plan), home=home) as program:
        children = program.must_say()["children"]
        program.tell("go")
        if kill is not None:
            until(lambda: len(log_of(home, 0)) > 20, what="the first writer writes")
            os.kill(children[0], signal.SIGKILL)
        ended = program.must_say()["ended"]
    assert ended == [0 if kill is None else -signal.SIGKILL] + [0] * (len(children) - 1)
    return [operation for number in range(len(children)) for operation in log_of(home, number)]


def log_of(home: Path, number: int) -> list[dict[str, Any]]:
    path = home / f"log-{number}.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def check(home: Path, history: list[dict[str, Any]], *, unknown: int = 0) -> None:
    """Everybody was answered, every version is somebody's, and all agrees with time."""
    errors = Counter(operation["error"] for operation in history if "error" in operation)
    assert not errors - Counter(not_found=errors["not_found"]), errors
    assert not [operation for operation in history if operation["role"] == "write" and "error" in operation]
    invariants.check(home / "record.db")
    made = invariants.versions_by_request(home / "record.db")
    acknowledged = {operation["name"]: operation for operation in history if operation["role"] == "write"}
    for name, operation in acknowledged.items():
        assert [(operation["key"], operation["version"], name)] == made[name]
    assert len(made.keys() - acknowledged.keys()) <= unknown
    assert [] == impossible(history)


@pytest.mark.parametrize(
    "seconds", [pytest.param(2.0, marks=pytest.mark.slow), pytest.param(10.0, marks=[pytest.mark.long, pytest.mark.timeout(300)])]
)
@pytest.mark.parametrize("keys", [1, 64])
def test_eight_processes_write_through_one_file(home: Path, keys: int, seconds: float) -> None:
    """A fleet on one machine would see errors, lose versions, or have one member wait while the others go on."""
    shares = []
    for nth in range(TRIES):
        place = home / f"try-{nth}"
        place.mkdir()
        history = crowd(place, writers=8, readers=0, keys=keys, seconds=seconds)
        check(place, history)
        counts = Counter(operation["name"].split("-")[0] for operation in history)
        shares.append(min(counts[str(number)] for number in range(8)) * 8 / len(history))
        figures(f"8 processes, {keys} keys", {"seconds": seconds, "writes": len(history), "least share": round(shares[-1], 2)})
        if shares[-1] >= SHARE_MIN:
            return
    pytest.fail(f"the slowest writer had {max(shares):.2f} of its fair share, three times")


@pytest.mark.slow
def test_a_read_never_goes_back(home: Path) -> None:
    """An agent would see a version, look again, and see the one before: from its own process or another."""
    history = crowd(home, writers=2, readers=2, keys=2, seconds=1.5, kill=0.2)
    check(home, history, unknown=1)
    reads = [operation for operation in history if operation["role"] == "read" and operation["version"]]
    figures("histories", {"writes": len(history) - len(reads), "reads": len(reads)})
    assert len(reads) > 100
    for number in (2, 3):
        for key in ("k0", "k1"):
            seen = [read["version"] for read in log_of(home, number) if read["key"] == key and read["version"]]
            assert seen == sorted(seen), "one reader went back"


@pytest.mark.parametrize(
    "change",
    [{"version": 1}, {"begun": 500, "ended": 501}, {"saw": "somebody else's"}],
    ids=["went back", "before it was", "another's"],
)
def test_the_checker_of_histories_sees_what_cannot_be(change: dict[str, Any]) -> None:
    """A checker that accepts everything would prove nothing."""
    writes = [
        {"role": "write", "key": "k", "name": f"w{nth}", "version": nth, "begun": nth * 1000, "ended": nth * 1000 + 10}
        for nth in (1, 2, 3)
    ]
    read = {"role": "read", "key": "k", "name": "r", "version": 2, "saw": "w2", "begun": 2500, "ended": 2510}
    assert [] == impossible([*writes, read])
    assert [] != impossible([*writes, read | change])
    assert [] != impossible([*writes, {**writes[0], "name": "w4", "begun": 9000, "ended": 9001}]), "a write that went back"


@pytest.mark.slow
def test_thirty_two_clients_through_one_server(home: Path) -> None:
    """A server under a fleet would answer some of it with errors, or give two of them one version."""
    chance = seeded()
    clients, each = 32, 25
    history: list[tuple[str, dict[str, Any]]] = []
    failed: list[str] = []
    gate = threading.Barrier(clients)

    def work(number: int) -> None:
        gate.wait(60)
        with server.client(session=f"run-{number}", agent=f"a{number}") as client:
            for nth in range(each):
                for key in ("shared", f"own-{number}"):
                    name = f"{number}-{nth}-{key}"
                    try:
                        answer = client.write(ENTITY, key, name, why="w", request_id=name)
                        client.read(ENTITY, key)
                    except Exception as problem:  # because whatever reaches a caller is the finding
                        failed.append(f"{name}: {problem!r}")
                    else:
                        history.append((name, answer))

    with served(home) as server:
        threads = [
            threading.Thread(target=work, args=(number,), daemon=True) for number in chance.sample(range(clients), clients)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(90)
        assert not [thread for thread in threads if thread.is_alive()]
    assert [] == failed
    invariants.check(home / "record.db")
    made = invariants.versions_by_request(home / "record.db")
    assert {name: [(answer["key"], answer["version"], name)] for name, answer in history} == made
    assert clients * each * 2 == len(made)
