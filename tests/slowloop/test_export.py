"""A dataset holds what its manifest says, from runs it names, the same each time; what is not in it is counted and named."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from herdbook.base.errors import Conflict, InvalidRequest
from herdbook.slowloop.export import collect, schemas, targets
from herdbook.slowloop.export.dataset import Choices, export
from tests.slowloop.conftest import Fleet

pytestmark = pytest.mark.slow

GOOD, BAD, LOOK = ("set_env", {"TZ": "UTC"}), ("set_env", {"TZ": "CET"}), ("look", {"path": "tests"})
EVERY = [(target, kind) for target, kinds in targets.WRITERS.items() for kind in kinds]


@pytest.fixture
def filled(fleet: Fleet) -> Fleet:
    """Ten tasks with a success and a failure each, and one run for every reason to be left out."""
    for number in range(10):
        fleet.run(f"won-{number}", LOOK, GOOD, task=f"make {chr(97 + number)} pass")
        fleet.run(f"lost-{number}", LOOK, BAD, kind="failure", task=f"make {chr(97 + number)} pass")
    fleet.run("no-task", LOOK, task=None)
    fleet.run("open", LOOK, kind=None)
    fleet.run("idle")
    fleet.run("turned", LOOK)
    fleet.desk.do("revise_outcome", ref="turned.end", type="failure")
    return fleet


def rows(folder: Path, split: str = "train") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()]


def test_what_was_left_out_is_counted_and_named(filled: Fleet, tmp_path: Path) -> None:
    """Months of runs would be missing from a model without anybody having been told."""
    exported = export(filled.ask, tmp_path / "out", Choices())
    named = {reason: told["named"] for reason, told in exported.manifest["left_out"].items() if told["runs"] == 1}
    assert {"no_task_input": ["no-task"], "unresolved": ["open"], "no_actions": ["idle"], "revised": ["turned"]} == named
    assert 10 == exported.manifest["left_out"]["not_a_success"]["runs"]
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert all(f"| {reason} |" in card for reason in exported.manifest["left_out"])


def test_an_empty_export_explains_itself_and_makes_no_folder(fleet: Fleet, tmp_path: Path) -> None:
    """Somebody would train on nothing, or look for a bug where a task_input was missing."""
    fleet.run("no-task", LOOK, task=None)
    exported = export(fleet.ask, tmp_path / "out", Choices())
    assert 0 == exported.rows
    assert {"no_task_input": {"runs": 1, "named": ["no-task"]}} == exported.manifest["left_out"]
    assert [] == [path.name for path in tmp_path.iterdir() if "out" in path.name]


@pytest.mark.parametrize("target,kind", EVERY)
def test_every_row_has_the_form_its_schema_says(filled: Fleet, tmp_path: Path, target: str, kind: str) -> None:
    """A trainer would refuse the file, or worse, read it otherwise."""
    exported = export(filled.ask, tmp_path / "out", Choices(kind=kind, target=target))
    assert 0 < exported.manifest["splits"]["train"]["rows"]
    if target != "parquet":
        check = jsonschema.Draft202012Validator(schemas.schema(target, kind))
        for split in ("train", "holdout"):
            for row in rows(tmp_path / "out", split):
                check.validate(row)


def test_the_schema_refuses_the_other_familys_arguments(filled: Fleet, tmp_path: Path) -> None:
    """The check would pass whatever is written."""
    export(filled.ask, tmp_path / "out", Choices(target="openai"))
    check = jsonschema.Draft202012Validator(schemas.schema("openai", "sft"))
    row = rows(tmp_path / "out")[0]
    call = next(message for message in row["messages"] if message.get("tool_calls"))["tool_calls"][0]
    call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    assert not check.is_valid(row)


def test_the_same_record_gives_the_same_bytes(filled: Fleet, tmp_path: Path) -> None:
    """Two people could not tell whether they trained on the same data."""
    manifests = [export(filled.ask, tmp_path / name, Choices(kind="dpo")).manifest for name in ("one", "two")]
    assert manifests[0]["splits"] == manifests[1]["splits"]
    for name in ("train.jsonl", "holdout.jsonl", "rows.jsonl"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_the_manifest_says_which_runs_each_row_came_from(filled: Fleet, tmp_path: Path) -> None:
    """A subject who is to be erased could not be found in what was exported."""
    exported = export(filled.ask, tmp_path / "out", Choices(kind="dpo"))
    mapping = [json.loads(line) for line in (tmp_path / "out" / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    counts = {split: told["rows"] for split, told in exported.manifest["splits"].items()}
    assert counts == {split: sum(row["split"] == split for row in mapping) for split in counts}
    assert all(len(row["runs"]) == 2 and row["runs"][0].replace("won", "lost") == row["runs"][1] for row in mapping)
    data = (tmp_path / "out" / "train.jsonl").read_bytes()
    assert exported.manifest["splits"]["train"]["sha256"] == sha256(data).hexdigest()


def test_no_task_is_on_both_sides(filled: Fleet, tmp_path: Path) -> None:
    """A model would be praised for what it was told."""
    export(filled.ask, tmp_path / "out", Choices(kind="kto", holdout=0.3))
    sides = [{row["prompt"][-1]["content"] for row in rows(tmp_path / "out", split)} for split in ("train", "holdout")]
    assert sides[0].isdisjoint(sides[1])
    assert {f"make {letter} pass" for letter in "hij"} == sides[1]


def test_only_what_somebody_vouched_for(filled: Fleet, tmp_path: Path) -> None:
    """A box's praise of itself would be taught as fact, though that was not asked for."""
    filled.desk.do("attest", ref="won-3.end", exit_code=0)
    exported = export(filled.ask, tmp_path / "out", Choices(attested_only=True))
    mapping = [json.loads(line) for line in (tmp_path / "out" / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {"won-3"} == {name for row in mapping for name in row["runs"]}
    assert 20 + 3 - 1 - 1 <= exported.manifest["left_out"]["unattested"]["runs"]


def test_a_run_that_held_a_secret_can_be_left_out(fleet: Fleet, tmp_path: Path) -> None:
    """Who wants no blots at all would get them."""
    fleet.run("clean", LOOK)
    fleet.run("leaky", ("login", {"password": "correct-horse-battery"}), task="log in")
    blotted = export(fleet.ask, tmp_path / "blotted", Choices())
    assert {"secret_keyword": 1} == blotted.manifest["scrubbed"]
    assert "correct-horse-battery" not in (tmp_path / "blotted" / "train.jsonl").read_text(encoding="utf-8")
    dropped = export(fleet.ask, tmp_path / "dropped", Choices(drop_secrets=True))
    assert {"secret_found": {"runs": 1, "named": ["leaky"]}} == dropped.manifest["left_out"]


def test_an_erased_subject_is_left_out(filled: Fleet, tmp_path: Path) -> None:
    """Somebody's runs would train another model after they asked for them to be gone."""
    filled.desk.do("erase", kind="session", subject="won-3")
    exported = export(filled.ask, tmp_path / "out", Choices())
    assert {"runs": 1, "named": ["won-3"]} == exported.manifest["left_out"]["erased_subject"]
    assert "won-3" not in (tmp_path / "out" / "rows.jsonl").read_text(encoding="utf-8")


def test_a_row_is_written_once(fleet: Fleet, tmp_path: Path) -> None:
    """What was done a thousand times would be learned a thousand times."""
    for number in range(5):
        fleet.run(f"again-{number}", LOOK)
    exported = export(fleet.ask, tmp_path / "out", Choices())
    assert 1 == exported.rows
    assert 4 == exported.manifest["left_out"]["duplicate"]["runs"]


def test_a_run_with_several_rows_that_are_there_is_left_out_once(fleet: Fleet, tmp_path: Path) -> None:
    """More runs would be missing than there are."""
    for number in range(3):
        fleet.run(f"again-{number}", LOOK, GOOD)
    exported = export(fleet.ask, tmp_path / "out", Choices())
    assert 2 == exported.rows
    assert {"runs": 2, "named": ["again-1", "again-2"]} == exported.manifest["left_out"]["duplicate"]


def test_a_folder_is_never_written_over(filled: Fleet, tmp_path: Path) -> None:
    """A model's lineage would point at data that is no longer there."""
    (tmp_path / "out").mkdir()
    with pytest.raises(Conflict):
        export(filled.ask, tmp_path / "out", Choices())


def test_of_two_exports_into_one_folder_the_second_is_told(filled: Fleet, tmp_path: Path) -> None:
    """It would be told of a folder that it never named."""
    other = tmp_path / "out" / "train.jsonl"

    def meanwhile(*_: Any) -> None:
        other.parent.mkdir()
        other.write_text("another's", encoding="utf-8")

    with pytest.raises(Conflict, match="out is there already"):
        export(filled.ask, tmp_path / "out", Choices(), keep=meanwhile)
    assert "another's" == other.read_text(encoding="utf-8")
    assert ["out"] == [path.name for path in tmp_path.iterdir() if "out" in path.name]


def test_a_dataset_is_on_the_disk_before_the_record_knows_of_it(
    filled: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut a model's lineage would point at half a dataset."""
    synced: set[int] = set()
    sync = os.fsync

    def noted(descriptor: int) -> None:
        sync(descriptor)
        synced.add(os.fstat(descriptor).st_ino)

    known: set[int] = set()
    monkeypatch.setattr(os, "fsync", noted)
    export(filled.ask, tmp_path / "out", Choices(), keep=lambda *_: known.update(synced))
    folder = tmp_path / "out"
    assert {path.stat().st_ino for path in (folder, *folder.iterdir())} <= known
    assert tmp_path.stat().st_ino in synced


def test_a_failing_export_leaves_nothing(filled: Fleet, tmp_path: Path) -> None:
    """Half a dataset would be taken for a whole one."""
    before = set(tmp_path.iterdir())

    def failing(fields: Any) -> Any:
        page = filled.ask({**fields, "limit": 5})
        if "after" in fields:
            raise OSError("the record went away")
        return page

    with pytest.raises(OSError, match="went away"):
        export(failing, tmp_path / "out", Choices())
    assert before == set(tmp_path.iterdir())


def test_a_target_that_has_no_such_rows_says_so(fleet: Fleet, tmp_path: Path) -> None:
    """An empty file would be blamed on the record."""
    with pytest.raises(InvalidRequest, match="openai has no rows of the kind kto"):
        export(fleet.ask, tmp_path / "out", Choices(kind="kto", target="openai"))


def test_a_look_says_what_each_run_lacks(filled: Fleet) -> None:
    """That a task_input is missing would be discovered months later."""
    told = collect.checked(filled.ask, entity=None, attested_only=False)
    assert (24, 20, 10, 10) == (told["runs"], told["usable"], told["successes"], told["failures"])
    assert {"no_task_input", "unresolved", "no_actions", "revised"} == set(told["left_out"])


def test_parquet_columns_are_the_same_for_every_row(filled: Fleet, tmp_path: Path) -> None:
    """A reader would fill arguments of other calls with nulls."""
    import pyarrow.parquet

    export(filled.ask, tmp_path / "out", Choices(target="parquet", kind="kto"))
    table = pyarrow.parquet.read_table(tmp_path / "out" / "train.parquet").to_pylist()
    [call] = table[0]["completion"][0]["tool_calls"]
    assert {"path": "tests"} == json.loads(call["function"]["arguments"])
    assert {"set_env", "look"} == {tool["function"]["name"] for tool in json.loads(table[0]["tools"])}


def test_a_regression_head_gets_numbers(filled: Fleet, tmp_path: Path) -> None:
    """Whoever wants rewards rather than pairs would have to make them up."""
    export(filled.ask, tmp_path / "out", Choices(kind="reward"))
    told = [json.loads(line) for line in (tmp_path / "out" / "rewards.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {("success", 1.0), ("failure", -0.5)} == {(row["type"], row["reward"]) for row in told}
