"""What is exported loads in `datasets` and trains in TRL: a real trainer is the only one who knows what it refuses.

It needs the extra `train`, in this Python or in the one that TRAIN_PYTHON names: `make train`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from herdbook.slowloop.export import targets
from herdbook.slowloop.export.dataset import Choices, export
from herdbook.testing.records import Book, Desk
from tests.slowloop import tau_bench_runs, trained

pytestmark = [pytest.mark.long, pytest.mark.train, pytest.mark.timeout(900)]


@pytest.fixture
def python() -> str:
    """A Python that can train."""
    named = os.environ.get("TRAIN_PYTHON")
    if named is None and importlib.util.find_spec("trl") is None:
        pytest.fail("nothing here can train: make train installs herdbook[train], or name one in TRAIN_PYTHON")
    return named or sys.executable


def test_every_format_loads_and_every_kind_trains(python: str, ann: Desk, book: Book, tmp_path: Path) -> None:
    """Somebody would export for hours, and their trainer refuse the file."""
    for run in tau_bench_runs.loaded():
        tau_bench_runs.tell(ann, book, run)
    folders = []
    for target, kinds in targets.WRITERS.items():
        for kind in kinds:
            choices = Choices(kind=kind, target=target, holdout=0.0)
            folders.append(export(lambda fields: ann.do("runs", **fields), tmp_path / f"{target}-{kind}", choices).folder)
    done = subprocess.run([python, trained.__file__, *map(str, folders)], capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr[-4_000:]
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"')]  # a trainer says more
    assert len(folders) == len(told)
    assert all(each["rows"] > 0 for each in told)
    assert set(targets.WRITERS["trl"]) == {each["kind"] for each in told if each["loss"] is not None}
