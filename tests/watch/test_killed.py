"""A worker killed at each step: nothing is lost, nothing is watched twice at once, and no box is left."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from herdbook.watch.queue import RecordQueue
from tests import postgres_server
from tests.tidy import tree
from tests.watch.staging import LEAST, Stage, staging

pytestmark = [pytest.mark.isolation]
FEW = ["in box", "after finding", "kept verdicts"]
STEPS = [
    "taken",
    "before finding",
    "before box",
    "kept finding",
    "after attested",
    "before verdicts",
    "after verdicts",
    "after drafts",
    "after told",
    "after resolved",
    "done",
]


def killed_at(home: Path, step: str, record: str = "") -> None:
    command = [sys.executable, "-m", "tests.watch.worker_process", str(home), step, *([record] if record else [])]
    done = subprocess.run(command, cwd=tree.ROOT, capture_output=True, text=True, timeout=60)
    assert -9 == done.returncode, f"it was not killed at {step}: {done.stdout}{done.stderr}"


def finished(stage: Stage, key: str) -> dict[str, Any]:
    """Another worker takes over as soon as the lease is over."""
    worker = stage.worker("heir", lease_seconds=20)
    worker.boxes.reap()
    until = time.monotonic() + 30
    while True:
        worker.once()
        [job] = RecordQueue(stage.book()).jobs(key=key)
        if job["state"] == "done":
            return job
        assert time.monotonic() < until, job
        time.sleep(0.05)


def check(home: Path, step: str, *, quiet: bool, record: str = "") -> None:
    with staging(home, record=record) as stage:
        stage.logged("served /search" if quiet else LEAST, level="INFO" if quiet else "ERROR")
        key = stage.deploy(1)
    killed_at(home, step, record)
    with staging(home, record=record) as stage:
        job = finished(stage, key)
        assert [] == stage.boxes_left()
        result, book = job["result"], stage.book()
        assert quiet == result["quiet"]
        outcomes = book.trace(result["session"])["outcomes"]
        assert (1 if quiet else 0) == len(outcomes)
        if not quiet:
            gates = [each for each in book.trace(result["session"])["actions"] if each["tool"] == "should_draft_pr"]
            assert 1 == len(gates)
        assert 1 <= job["attempt"] <= 2
        assert ("quiet" if quiet else "noisy") == stage.entry(key)["value"]["outcome"]


@pytest.mark.slow
@pytest.mark.parametrize("step", FEW)
def test_a_worker_killed_at_a_step_is_taken_over(tmp_path: Path, step: str) -> None:
    """A deploy would be lost with the process that watched it, or a box would stay."""
    check(tmp_path, step, quiet=False)


@pytest.mark.long
@pytest.mark.parametrize("step", STEPS)
def test_a_worker_killed_at_any_step_is_taken_over(tmp_path: Path, step: str) -> None:
    """Some moment between two steps would lose a deploy, or watch it twice."""
    check(tmp_path, step, quiet=False)


@pytest.mark.long
@pytest.mark.parametrize("step", [*STEPS, *FEW])
def test_a_quiet_watch_killed_at_any_step_counts_once(tmp_path: Path, step: str) -> None:
    """A release that went well would count twice, or not at all."""
    check(tmp_path, step, quiet=True)


@pytest.mark.long
@pytest.mark.parametrize("quiet", [False, True], ids=["noisy", "quiet"])
@pytest.mark.parametrize("step", [*STEPS, *FEW])
def test_a_worker_killed_at_any_step_is_taken_over_on_postgres(tmp_path: Path, step: str, quiet: bool) -> None:
    """What holds for one file would not hold for the record that a company has."""
    server = postgres_server.server()
    check(tmp_path, step, quiet=quiet, record=server.url(server.database(), login=postgres_server.LOGIN))
