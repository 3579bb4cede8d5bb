"""What reaches the disk before an answer leaves, seen from the kernel's side; and a death before each call in turn."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.crash import invariants
from tests.crash.running import Program, figures, seeded
from tests.crash.traced import Told, first_write, story

ACKNOWLEDGEMENTS = 200


def traced(home: Path, what: str, count: int, patch: pytest.MonkeyPatch, synchronous: str = "FULL") -> dict[str, Any]:
    patch.setenv("HERDBOOK_SYNCHRONOUS", synchronous)
    with Program("traced", what, str(home), str(count), home=home) as program:
        return skip_if_it_cannot(program.must_say())


def skip_if_it_cannot(said: dict[str, Any]) -> dict[str, Any]:
    if "cannot" in said:
        pytest.skip(f"what reaches the disk cannot be watched here: {said['cannot']}")
    return said


@pytest.mark.slow
def test_a_write_is_on_the_disk_before_it_is_acknowledged(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut would take back what an agent was told is safe."""
    full = traced(home, "acknowledgements", ACKNOWLEDGEMENTS, monkeypatch)
    assert (0, ACKNOWLEDGEMENTS, ACKNOWLEDGEMENTS) == (full["status"], full["acknowledged"], full["synced"] - 1), full
    normal = traced(home, "acknowledgements", ACKNOWLEDGEMENTS, monkeypatch, "NORMAL")
    figures("synced before acknowledged", {"FULL": full, "NORMAL": normal})
    assert ACKNOWLEDGEMENTS == normal["acknowledged"]
    assert normal["synced"] < ACKNOWLEDGEMENTS / 10, "the setting gives up nothing, or this test sees nothing"


@pytest.mark.slow
def test_a_write_is_on_the_disk_before_a_server_answers(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that batches would answer before its batch is safe."""
    full = traced(home, "answers", 60, monkeypatch)
    assert 0 == full["status"]
    assert 60 <= full["synced"] <= full["acknowledged"] <= 62, full  # the session's beginning is one more
    normal = traced(home, "answers", 60, monkeypatch, "NORMAL")
    figures("synced before answered", {"FULL": full, "NORMAL": normal})
    assert normal["synced"] < 10, normal


def lives(home: Path, what: str, step: int) -> list[dict[str, Any]]:
    """All the deaths, and the one that lived."""
    found: list[dict[str, Any]] = []
    first = 1 + seeded().randrange(step)
    with Program("traced", what, str(home), str(first), str(step), home=home) as program:
        while not found or found[-1]["status"] != 0:
            found.append(skip_if_it_cannot(program.must_say()))
    figures(what, {"died": len(found) - 1, "acknowledged": sum(len(life["done"]) for life in found)})
    assert {-signal.SIGKILL} == {life["status"] for life in found[:-1]}
    return found


def steps(normal: int) -> pytest.MarkDecorator:
    """Some deaths, with another beginning each time; every one of them in the long tests."""
    every = pytest.param(1, marks=[pytest.mark.long, pytest.mark.timeout(300)])
    return pytest.mark.parametrize("step", [pytest.param(normal, marks=pytest.mark.slow), every])


@steps(4)
def test_a_death_before_any_call_can_be_retried(home: Path, step: int) -> None:
    """There would be one moment in the life of a write or an outcome at which a crash loses or doubles it."""
    *died, lived = lives(home, "deaths", step)
    assert len(died) * step > 50, "too few calls were seen"
    undisturbed = said_again(lived, story)
    assert "o1" in str(undisturbed["outcomes"])
    for life in died:
        check_what_was_told(life)
        assert undisturbed == said_again(life, story), life


@steps(8)
def test_a_death_at_a_records_birth_can_be_retried(home: Path, step: int) -> None:
    """A machine that went down during `herdbook init` would need a hand to come up again."""
    *died, lived = lives(home, "births", step)
    undisturbed = said_again(lived, first_write)
    for life in died:
        assert undisturbed == said_again(life, first_write), life


def check_what_was_told(life: dict[str, Any]) -> None:
    """As the dead process left it, before anybody opens it for writing."""
    record = Path(life["home"]) / "record.db"
    invariants.check(record)
    made, refs = invariants.versions_by_request(record), invariants.outcome_refs(record)
    assert {name for name in life["done"] if name.startswith("w")} <= set(made), life
    assert ("o1" in life["done"]) <= refs["o1"], life


def said_again(life: dict[str, Any], tell: Callable[[Path, Told], None]) -> dict[str, Any]:
    """The whole story told again with the same ids, and what the record says then: but for reads, which have no id."""
    home = Path(life["home"])
    with open(os.devnull, "wb") as nobody:
        tell(home, Told(nobody.fileno()))
    invariants.check(home / "record.db")
    said = invariants.says(home / "record.db")
    reads = said.pop("reads")
    assert ("read" in life["done"]) <= (("run", "k0", 1, 1, "read", 1) in reads), "a read that was answered is lost"
    said["claims"] = [claim[:6] + claim[7:] for claim in said["claims"]]  # recalls follow the reads
    return said
