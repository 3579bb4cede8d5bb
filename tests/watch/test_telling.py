"""What leaves the house, and what cannot: messages that come later, an agent that writes, a box without tools that act."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from examples.watch_demo.play import Play
from examples.watch_demo.stage import ENTITY, Stage, open_stage
from herdbook.boxes.providers import choose
from herdbook.watch.boxes import ACTOR, NEVER_INSIDE, Boxes
from herdbook.watch.queue import Job, RecordQueue

pytestmark = [pytest.mark.isolation, pytest.mark.slow]
AGENT = """
import json, pathlib
found = json.loads(pathlib.Path("finding.json").read_text())
pathlib.Path("diagnosis.md").write_text("It sorts by day: " + found["label"])
pathlib.Path("proposed/toy").mkdir(parents=True)
pathlib.Path("proposed/toy/search.py").write_text("NOTES = []")
"""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    found = open_stage(tmp_path, watch_seconds=0.5)
    yield found
    found.close()


def test_a_message_that_fails_is_recorded_and_told_later(stage: Stage) -> None:
    """A chat that is away would fail the watch, or nobody would ever hear of it."""
    play = Play(stage, lambda line: None)
    stage.chat.failing = 3  # as often as an errand tries
    result = play.release("broken", play.commit('    return sorted(NOTES, key=lambda note: -note["day"])\n', "Sort by recency"))
    assert "500" in result["told"]["why"]
    notified = [each for each in stage.book().trace(result["session"])["actions"] if each["tool"] == "notify"]
    assert [False] == [each["ok"] for each in notified]
    assert 1 == len(stage.chat.texts)
    states = {job["key"].partition("-")[0]: job["state"] for job in RecordQueue(stage.book()).jobs()}
    assert {"deploy": "done", "notify": "done"} == states


def test_an_agent_writes_the_diagnosis_and_code_keeps_the_label(stage: Stage) -> None:
    """The one thing an agent is good at would be lost, or it would decide."""
    stage.config = replace(stage.config, agent=("python3", "-c", AGENT))
    play = Play(stage, lambda line: None)
    result = play.release("broken", play.commit('    return sorted(NOTES, key=lambda note: -note["day"])\n', "Sort by recency"))
    diagnosis = stage.book().read(ENTITY, "diagnosis-api")["value"]
    assert ("It sorts by day: product_regression", "exit code 0") == (diagnosis["diagnosis"], diagnosis["agent"])
    assert ["toy/search.py"] == diagnosis["proposed"]
    assert not result["verdicts"][0]["allowed"]


def test_an_alert_always_yields_a_diagnosis(stage: Stage) -> None:
    """An alert whose logs say nothing would be argued with."""
    play = Play(stage, lambda line: None)
    body = {"kind": "alert", "component": "api", "title": "too slow", "source": "grafana"}
    for component in ("api", "elsewhere"):
        RecordQueue(stage.book()).put(Job(key=f"diagnosis-{component}", body={**body, "component": component}))
    while play.worker.once():
        pass
    for component in ("api", "elsewhere"):
        value = stage.book().read(ENTITY, f"diagnosis-{component}")["value"]
        assert "unexplained" == value["label"]
        assert "alerted by grafana: too slow" in value["signals"]["states"]


def test_a_job_that_fails_is_left_to_a_later_attempt(stage: Stage) -> None:
    """A worker would try the same job in a circle, or drop it."""
    worker = stage.worker()

    def broken(*asked: object) -> None:
        raise OSError("the gates cannot be read")

    worker.gate = broken  # type: ignore[assignment]
    body = {"kind": "alert", "component": "api", "title": "down", "source": "generic"}
    RecordQueue(stage.book()).put(Job(key="diagnosis-api", body=body))
    assert worker.once()
    assert not worker.once()
    [job] = RecordQueue(stage.book()).jobs()
    assert ("running", True) == (job["state"], "finding" in job["progress"])


def test_a_worker_that_lost_its_job_stops_watching(stage: Stage) -> None:
    """Two boxes would watch one deploy: the slow worker's, and its heir's."""
    stage.config = replace(stage.config, deploy=replace(stage.config.deploy, watch_seconds=30))
    queue = RecordQueue(stage.book())

    def lose(step: str) -> None:
        if step == "in box":
            [job] = queue.jobs()
            queue.done(job, ok=False, result={"why": "somebody else has it"})

    stage.on_step = lose
    worker = stage.worker()
    worker.lease_seconds = 1
    body = {"kind": "alert", "component": "api", "title": "down", "source": "generic"}
    queue.put(Job(key="diagnosis-api", body=body))
    began = time.monotonic()
    assert worker.once()
    assert 20 > time.monotonic() - began
    assert [] == stage.boxes_left()
    assert ["failed"] == [job["state"] for job in queue.jobs()]


def test_no_box_has_a_tool_that_moves_traffic(stage: Stage) -> None:
    """An actor that wants to help could roll back a healthy revision."""
    provider = choose(state_dir=stage.wiring.boxes_dir)
    boxes = Boxes(stage.book(), provider, stage.wiring.open_socket)
    host = boxes.hosts[ACTOR]
    box = host.open("watch-actor-tools", without=NEVER_INSIDE)
    said = bytearray()
    code = f"import shutil, os, json; print(json.dumps([[n for n in {NEVER_INSIDE!r} if shutil.which(n)], sorted(os.environ)]))"
    host.run(box, [box.python, "-c", code], on_output=lambda chunk: said.extend(chunk[1]))
    boxes.close()
    tools, names = json.loads(said)
    assert [] == tools
    assert {"HERDBOOK_URL", "HOME", "LANG", "PATH"} >= set(names) - {"LC_CTYPE", "PWD"}
