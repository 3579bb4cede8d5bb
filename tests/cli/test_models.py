"""herdbook models: a model is examined, promoted only for its examination, compared, and taken back, as a person does it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from herdbook.testing.records import person
from tests.record.files import sqlite_book
from tests.slowloop.conftest import Fleet
from tests.slowloop.model_server import model_server

pytestmark = pytest.mark.slow

TASKS = 45


def spelled(number: int) -> dict[str, Any]:
    """The call that solves a task, which is spelled in its words: whoever can read gets it right, whoever remembers does not."""
    letters = chr(97 + number // 26) + chr(97 + number % 26)
    return {"name": "set", "arguments": {"to": letters}}


@pytest.fixture
def job(tmp_path: Path, herdbook) -> Path:
    """A record with runs of many tasks, each done once well and once badly, and a job's data out of it."""
    home = tmp_path / ".local" / "share" / "herdbook"
    home.mkdir(parents=True)
    book = sqlite_book(home / "record.db")
    fleet = Fleet(person(book.open()), book)
    for number in range(TASKS):
        call = spelled(number)
        fleet.run(f"won-{number}", (call["name"], call["arguments"]), task=json.dumps(call))
        fleet.run(f"lost-{number}", ("set", {"to": "nothing"}), task=json.dumps(call), kind="failure")
    book.close()
    for kind in ("sft", "dpo"):
        made = herdbook("export", "training", str(tmp_path / "job" / "data" / kind), "--kind", kind, "--holdout", "0.7")
        assert 0 == made.code, made.err
    return tmp_path / "job"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with model_server(tmp_path) as found:
        yield found


def test_a_better_model_is_promoted_and_taken_back(job: Path, url: str, herdbook) -> None:
    """The way from an examination to an answer, and back, would be broken somewhere."""
    words = ("models", "evaluate", str(job), "mine", "--model", f"{url}#echo", "--base", f"{url}#mute")
    model = herdbook(*words, "--json").json
    report = model["metrics"]["evaluation"]
    assert (1.0, 0.0, 0.0) == tuple(report["scores"][who]["exact_call"]["mean"] for who in ("model", "base", "replay"))
    assert 30 <= report["tasks"]
    assert 0 < report["bad_acts"]
    assert model["artefact"] == herdbook(*words, "--json").json["artefact"]
    assert 0 == herdbook("models", "route", "fixer", "laptop", "mute").code
    assert (
        0 == herdbook("models", "promote", model["artefact"], "fixer", "laptop", "echo", "--percent", "10", "--why", "try").code
    )
    listed = herdbook("models", "ls").out
    assert "fixer: " + model["artefact"] + " as echo of laptop, for 10 % of the runs" in listed
    assert "the others: mute of laptop" in listed
    assert "may be promoted" in herdbook("models", "show", model["artefact"]).out
    assert "nothing can be compared yet" in herdbook("models", "compare", "fixer").out
    assert 0 == herdbook("models", "rollback", "fixer").code
    assert "fixer: mute of laptop" in herdbook("models", "ls").out
    holding = herdbook("artefacts", "--run", "won-44", "--json").json["artefacts"]
    assert ["dataset", "dataset", "model"] == sorted(each["kind"] for each in holding), "each once; and the model is found, too"


def test_a_model_that_learned_nothing_is_refused_in_a_sentence(job: Path, url: str, herdbook) -> None:
    """Somebody would look for a switch to force it, or for a bug."""
    words = ("models", "evaluate", str(job), "mine", "--model", f"{url}#mute", "--base", f"{url}#mute")
    model = herdbook(*words, "--json").json
    herdbook("models", "route", "fixer", "laptop", "mute")
    refused = herdbook("models", "promote", model["artefact"], "fixer", "laptop", "mute")
    assert 0 != refused.code
    assert "it is not shown to be better than the base model at the calls of successful runs" in refused.err
    assert "fixer: mute of laptop" in herdbook("models", "ls").out


def test_an_examination_without_a_server_says_so(job: Path, herdbook) -> None:
    """A traceback would be all there is to go by."""
    told = herdbook(
        "models", "evaluate", str(job), "mine", "--model", "http://127.0.0.1:9/v1#a", "--base", "http://127.0.0.1:9/v1#b"
    )
    assert "http://127.0.0.1:9/v1 did not answer as a model server does" in told.err
    assert 1 == told.err.count("\n")
    assert "holds no job: herdbook models train makes one" in herdbook("models", "evaluate", str(job), "mine").err
    assert 2 == herdbook("models", "promote", "only-one-word").code


BASE = ("--base", "tiny", "--epochs", "2")


def held_out(job: Path, kind: str) -> set[str]:
    lines = (job / "data" / kind / "rows.jsonl").read_text(encoding="utf-8").splitlines()
    return {place["task"] for place in map(json.loads, lines) if place["split"] == "holdout"}


def test_an_estimate_binds_nobody(job: Path, herdbook) -> None:
    """Whoever asked what it would take had to go on with the choices of the question, in a new folder otherwise."""
    new = job.parent / "new"
    few = herdbook("models", "train", str(new), *BASE, "--estimate", "--json").json["estimate"]
    many = herdbook("models", "train", str(new), *BASE, "--estimate", "--holdout", "0.6", "--then", "kto", "--json").json[
        "estimate"
    ]
    assert few["rows"] > many["rows"], "another share is held out"
    assert "kto" == json.loads((new / "job.json").read_text(encoding="utf-8"))["then"]
    (new / "sft.steps").mkdir()
    refused = herdbook("models", "train", str(new), *BASE, "--estimate", "--holdout", "0.3")
    assert "began with other choices" in refused.err
    assert 0 != refused.code


def test_all_of_a_jobs_datasets_hold_out_the_same_tasks(job: Path, herdbook) -> None:
    """A model would be examined on tasks that its second stage was taught."""
    new = job.parent / "new"
    assert 0 == herdbook("models", "train", str(new), *BASE, "--estimate").code
    book = sqlite_book(job.parent / ".local" / "share" / "herdbook" / "record.db")
    fleet = Fleet(person(book.open()), book)
    for number in range(20):
        fleet.run(f"later-{number}", ("set", {"to": f"x{chr(97 + number)}"}), task=f"later {chr(97 + number)}")
    book.close()
    assert 0 == herdbook("models", "train", str(new), *BASE, "--estimate", "--then", "kto").code
    assert held_out(new, "sft") == held_out(new, "kto") != set()


def test_a_second_stage_without_rows_is_said_before_the_first(job: Path, herdbook) -> None:
    """Hours of copying would end in a traceback about a file that is not there."""
    refused = herdbook("models", "train", str(job.parent / "new"), *BASE, "--then", "dpo", "--entity", "none/such", "--estimate")
    assert "no run teaches anything yet" in refused.err
    book = sqlite_book(job.parent / ".local" / "share" / "herdbook" / "record.db")
    Fleet(person(book.open()), book).run("alone", ("set", {"to": "x"}), task="alone", entity="acme/alone")
    book.close()
    alone = ("models", "train", str(job.parent / "other"), *BASE, "--estimate", "--entity", "acme/alone")
    assert "herdbook export training" in (told := herdbook(*alone, "--then", "dpo")).err
    assert 0 != told.code
    assert 0 == herdbook(*alone).code
    assert 2 == herdbook(*alone, "--entity", "acme/two").code, "the second path would have been left out without a word"


def test_rows_that_will_be_cut_are_said(job: Path, herdbook) -> None:
    """A trainer cuts a long row at its end, where the answer is: nobody would know that half the runs taught nothing."""
    words = ("models", "train", str(job.parent / "new"), *BASE, "--estimate")
    assert "are cut there" not in herdbook(*words).err
    told = herdbook(*words, "--length", "16")
    assert f"about {herdbook(*words, '--json').json['estimate']['rows']} rows are longer than 16 tokens" in told.err
