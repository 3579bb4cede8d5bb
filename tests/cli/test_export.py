"""herdbook export: what a person sees of a training set, and of the lack of one."""

from __future__ import annotations

import json
from pathlib import Path


def filled(herdbook) -> None:
    herdbook("init")
    for number, kind in enumerate(("success", "failure")):
        session = f"run-{number}"
        herdbook("brief", "acme/ci", "--session", session)
        herdbook("action", "pytest", "--args", json.dumps({"n": number}), "--session", session)
        herdbook("outcome", kind, "--session", session, "--task-input", "make it pass", "--ref", session)


def test_a_dataset_is_made_and_said(herdbook, tmp_path: Path) -> None:
    """Nobody would know where it is, or what is in it."""
    filled(herdbook)
    said = herdbook("export", "training", str(tmp_path / "out"), "--kind", "kto", "--holdout", "0")
    assert (0, "") == (said.code, said.err)
    assert "2 rows in train.jsonl" in said.out
    assert (tmp_path / "out" / "manifest.json").exists()
    told = herdbook("export", "training", str(tmp_path / "again"), "--kind", "kto", "--json").json
    assert str(tmp_path / "again") == told["folder"]


def test_nothing_coming_out_is_a_failure_that_says_why(herdbook, tmp_path: Path) -> None:
    """A pipeline would go on to train on nothing."""
    herdbook("init")
    herdbook("brief", "acme/ci", "--session", "run")
    herdbook("outcome", "success", "--session", "run")
    said = herdbook("export", "training", str(tmp_path / "out"))
    assert 1 == said.code
    assert "Nothing came out" in said.out
    assert "pass `task_input`" in said.out
    assert not (tmp_path / "out").exists()


def test_a_look_writes_nothing(herdbook, tmp_path: Path) -> None:
    """Looking would cost a folder to clean up."""
    filled(herdbook)
    before = set(tmp_path.iterdir())
    said = herdbook("export", "check")
    assert "2 of 2 runs can teach: 1 successes, 1 failures" in said.out
    assert before == set(tmp_path.iterdir())


def test_what_makes_no_sense_is_said(herdbook) -> None:
    """A folder would be ignored, or a share of nothing held out."""
    assert 2 == herdbook("export", "training").code
    assert 2 == herdbook("export", "check", "out").code
    assert 2 == herdbook("export", "training", "out", "--holdout", "1").code
