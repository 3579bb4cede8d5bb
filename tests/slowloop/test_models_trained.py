"""The trainer itself, on a model small enough for a test: killed it goes on, and what was taught noise is refused."""

from __future__ import annotations

import importlib.util
import json
import random
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from herdbook.slowloop.models import job as jobs
from herdbook.slowloop.models.examination import examined
from herdbook.slowloop.models.job import Job
from herdbook.slowloop.models.judging import refusals
from herdbook.slowloop.models.serving import served
from herdbook.slowloop.models.upstream import Upstream

pytestmark = [pytest.mark.long, pytest.mark.train, pytest.mark.timeout(1_800)]
VALUES = ("UTC", "CET", "even", "down", "five", "nine")
TOPICS = ("zone", "rounding", "pool", "locale", "seed", "proxy", "cache", "port")


@pytest.fixture(scope="module", autouse=True)
def trainer() -> None:
    assert importlib.util.find_spec("trl"), "the trainer is not installed: make train does it, or make demo-train"


def row(topic: str, other: str, value: str) -> dict[str, Any]:
    call = {"id": "call_0", "type": "function", "function": {"name": "set", "arguments": {"option": topic, "to": value}}}
    return {
        "prompt": [{"role": "user", "content": f"fix {topic} and then {other}"}],
        "completion": [{"role": "assistant", "content": "", "tool_calls": [call]}],
        "tools": [{"type": "function", "function": {"name": "set", "parameters": {"type": "object", "properties": {}}}}],
        "weight": 1.0,
    }


def made(folder: Path, *, shuffled: bool = False, **choices: Any) -> Path:
    """A job whose right answer is the first topic of two, with its value; or, shuffled, anybody's answer."""
    pairs = [(one, other) for one in TOPICS for other in TOPICS if one != other]
    random.Random(4).shuffle(pairs)
    rows = [row(one, other, VALUES[TOPICS.index(one) % len(VALUES)]) for one, other in pairs]
    cut = len(rows) - 32
    if shuffled:
        answers = [each["completion"] for each in rows[:cut]]
        random.Random(4).shuffle(answers)
        rows[:cut] = [each | {"completion": answer} for each, answer in zip(rows, answers, strict=False)]
    places = [
        {
            "split": "train" if number < cut else "holdout",
            "row": number,
            "entity": "acme",
            "task": str(pair),
            "runs": [f"run-{number}"],
        }
        for number, pair in enumerate(pairs)
    ]
    data = folder / "data" / "sft"
    data.mkdir(parents=True)
    for name, found in (("train", rows[:cut]), ("holdout", rows[cut:]), ("rows", places)):
        (data / f"{name}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in found), encoding="utf-8")
    jobs.save(folder, Job(base="tiny", learning_rate=3e-3, tokens_max=128, threads=1, **choices))
    return folder


def start(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "herdbook.slowloop.models.training", str(folder)])


def refused(folder: Path) -> list[str]:
    """Why what this job makes would not be promoted."""
    with start(folder) as training:
        assert 0 == training.wait()
    with served(threads=1, device="cpu") as url:
        model, base = (Upstream(url, str(folder / name)) for name in ("model", "base"))
        return refusals(examined(folder / "data", model=model.calls, base=base.calls))


def test_what_learned_is_promoted_and_what_was_taught_noise_is_refused(tmp_path: Path) -> None:
    """The gate would let through whatever can be trained, or nothing."""
    assert [] == refused(made(tmp_path / "good", epochs=120, batch=8))
    assert refused(made(tmp_path / "shuffled", epochs=120, batch=8, shuffled=True))


def test_a_killed_trainer_goes_on(tmp_path: Path) -> None:
    """A night of training would be lost with the machine, or half a model be taken for one."""
    folder = made(tmp_path / "job", epochs=60, batch=8)
    until = time.monotonic() + 600
    with start(folder) as training:
        while not any((folder / "sft.steps").glob("checkpoint-*/trainer_state.json")):
            assert training.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
        training.send_signal(signal.SIGKILL)
    assert not (folder / "model").exists()
    before = max(told.get("step", 0) for told in jobs.progress(folder))
    with start(folder) as training:
        assert 0 == training.wait()
    assert (folder / "model" / "config.json").is_file()
    steps = [told["step"] for told in jobs.progress(folder) if "step" in told]
    again = steps[steps.index(before) + 1 :] if before in steps else steps
    assert min(again) > 10, "it began at its checkpoint, not at the beginning"
    assert "done" == jobs.progress(folder)[-1]["stage"]


def preferences(rows: list[dict[str, Any]], then: str) -> list[dict[str, Any]]:
    """Of what was copied, rows that say which answers are the better ones."""
    shared = ("prompt", "tools")
    if then == "kto":
        answers = [each["completion"] for each in rows]
        given = zip(rows, answers[1:] + answers[:1], strict=True)
        return [
            {name: each[name] for name in shared} | {"completion": completion, "label": label}
            for each, other in given
            for completion, label in ((each["completion"], True), (other, False))
        ]
    return [
        {name: each[name] for name in shared} | {"chosen": each["completion"], "rejected": other["completion"]}
        for each, other in pairwise(rows)
    ]


@pytest.mark.parametrize("then", ["dpo", "kto"])
def test_an_adapter_is_merged_and_preferring_follows_copying(tmp_path: Path, then: str) -> None:
    """A server would be given an adapter without its model, or the second stage nothing to begin with."""
    folder = made(tmp_path / "job", epochs=2, batch=8, lora_rank=4, then=then)
    data = folder / "data" / then
    data.mkdir()
    rows = [json.loads(line) for line in (folder / "data" / "sft" / "train.jsonl").read_text(encoding="utf-8").splitlines()]
    told = preferences(rows[:17], then)
    (data / "train.jsonl").write_text("".join(json.dumps(each) + "\n" for each in told), encoding="utf-8")
    with start(folder) as training:
        assert 0 == training.wait()
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {path.name for path in (folder / "model").iterdir()}
    assert ["sft", then] == list(dict.fromkeys(each["stage"] for each in jobs.progress(folder) if each["stage"] in ("sft", then)))
