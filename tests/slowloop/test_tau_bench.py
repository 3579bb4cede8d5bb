"""Real agents' runs, recorded elsewhere, become training sets in every format, and none of them goes missing without a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from herdbook.slowloop.export import schemas, targets
from herdbook.slowloop.export.dataset import Choices, Exported, export
from herdbook.testing.records import Book, Desk
from tests.slowloop import tau_bench_runs

REASONS = {"no_actions", "duplicate", "not_a_success", "no_counterpart", "pair_did_the_same", "no_agent_message"}
EVERY = [(target, kind) for target, kinds in targets.WRITERS.items() for kind in kinds]


def ask(desk: Desk) -> Any:
    return lambda fields: desk.do("runs", **fields)


@pytest.fixture
def airline(ann: Desk, book: Book) -> Desk:
    for run in tau_bench_runs.loaded():
        tau_bench_runs.tell(ann, book, run)
    return ann


def checked(exported: Exported, target: str, kind: str) -> int:
    """Every row against its schema; how many there were."""
    count = 0
    for split in exported.manifest["splits"].values():
        path = exported.folder / split["file"]
        if target == "parquet":
            import pyarrow.parquet

            count += pyarrow.parquet.read_table(path).num_rows
            continue
        check = jsonschema.Draft202012Validator(schemas.schema(target, kind))
        for line in path.read_text(encoding="utf-8").splitlines():
            check.validate(json.loads(line))
            count += 1
    return count


@pytest.mark.slow
def test_every_format_of_real_runs_is_as_its_schema_says(airline: Desk, tmp_path: Path) -> None:
    """What a made-up run never does, a real one does: a trainer would refuse it after the export was believed."""
    for target, kind in EVERY:
        exported = export(ask(airline), tmp_path / f"{target}-{kind}", Choices(kind=kind, target=target))
        assert 0 < exported.rows == checked(exported, target, kind), (target, kind)


@pytest.mark.slow
def test_pairs_of_real_runs_are_counted_by_how_they_were_found(airline: Desk, tmp_path: Path) -> None:
    """Nobody could say what a preference rests on."""
    exported = export(ask(airline), tmp_path / "out", Choices(kind="dpo", holdout=0.0))
    assert (8, 8) == (exported.manifest["runs"], exported.manifest["used_runs"])
    same_task = sum(count for note, count in exported.manifest["pairs"].items() if note.startswith("same task"))
    left_out = exported.manifest["left_out"].get("pair_did_the_same", {"runs": 0})["runs"]
    assert 4 == same_task + left_out


@pytest.mark.long
@pytest.mark.timeout(900)
def test_all_two_hundred(ann: Desk, book: Book, tmp_path: Path) -> None:
    """Only the whole file has what eight runs of it lack."""
    runs = tau_bench_runs.whole()
    if runs is None:
        pytest.skip(f"{tau_bench_runs.WHOLE} names no file: the 200 runs are not in this repository")
    for run in runs:
        tau_bench_runs.tell(ann, book, run)
    for target, kind in EVERY:
        exported = export(ask(ann), tmp_path / f"{target}-{kind}", Choices(kind=kind, target=target))
        assert 0 < exported.rows == checked(exported, target, kind), (target, kind)
        assert 200 == exported.manifest["runs"]
        assert {"no_actions", "duplicate", "not_a_success", "no_counterpart", "pair_did_the_same"} >= {
            *exported.manifest["left_out"]
        }
        if kind == "dpo":
            assert 60 < sum(count for note, count in exported.manifest["pairs"].items() if note.startswith("same task"))
        print(target, kind, exported.rows, exported.manifest["pairs"])
