"""From a job to the record, in a real box: what a watch reads, in which order, what it leaves, and what moves."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from herdbook import __main__ as command
from herdbook.base.errors import NotFound
from herdbook.watch import human
from herdbook.watch.queue import Job, RecordQueue
from tests.watch.hooking import sha_of
from tests.watch.staging import ENTITY, LEAST, PROBE, Stage, staging

pytestmark = [pytest.mark.isolation, pytest.mark.slow]
DEPLOYED = {"repositories": {"acme/app": {"before": sha_of(0), "after": sha_of(1)}, "acme/lib": {"after": sha_of(3)}}}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staging(tmp_path) as found:
        yield found


def name_august(stage: Stage) -> None:
    human.name_class(
        stage.sit, ENTITY, "incident-2026-08-14-api-startup-probe-timeout",
        label="cold_image", patterns=["startup probe failed"], why="a slow image pull", fix=None, of=None,
    )  # fmt: skip


def test_a_quiet_watch_is_a_success_of_what_it_was_briefed_with(stage: Stage) -> None:
    """Releases that go well would teach nothing."""
    name_august(stage)
    before = stage.entry("incident-2026-08-14-api-startup-probe-timeout")["confidence"]
    stage.logged("served /search", level="INFO")
    key = stage.deploy(1)
    result = stage.watched(key)
    assert result["quiet"]
    deploy = stage.entry(key)["value"]
    assert ("quiet", {"api": "noise"}) == (deploy["outcome"], deploy["services"])
    assert "unavailable" == deploy["repositories"]["acme/app"]["compare"]
    after = stage.entry("incident-2026-08-14-api-startup-probe-timeout")
    assert before < after["confidence"]
    trace = stage.book().trace(result["session"])
    assert (True, []) == (trace["trainable"], trace["missing"])
    assert trace["outcomes"][0]["attested"]
    assert "observed" == stage.entry(key)["standing"]
    assert [] == stage.boxes_left()


def test_a_known_cold_image_settles_at_once_and_is_linked_to_its_class(stage: Stage) -> None:
    """What was learned in August would have to be found out again."""
    name_august(stage)
    stage.logged(PROBE)
    result = stage.watched(stage.deploy(1))
    [verdict] = result["verdicts"]
    assert ("cold_image", False, "incident-2026-08-14-api-startup-probe-timeout") == (
        verdict["label"],
        verdict["allowed"],
        verdict["class"],
    )
    incident = stage.entry(verdict["incident"])
    assert "incident-2026-08-14-api-startup-probe-timeout" in {link["key"] for link in incident["links"]}
    assert "cold_image" == stage.entry("diagnosis-api")["value"]["label"]
    assert [] == stage.book().trace(result["session"])["outcomes"]


def test_it_is_briefed_before_a_log_is_opened_and_the_verdict_is_in_the_trace(stage: Stage) -> None:
    """Nobody could tell what it knew before it did that."""
    stage.logged(LEAST)
    result = stage.watched(stage.deploy(1))
    trace = stage.book().trace(result["session"])
    tools = [action["tool"] for action in trace["actions"]]
    assert ["compare", "watch", "should_draft_pr", "notify"] == tools
    verdict = next(action for action in trace["actions"] if action["tool"] == "should_draft_pr")
    assert "first sighting" in verdict["result"]["reason"]
    found = human.why_of(stage.book(), result)
    assert result["session"] == found["session"]


def test_a_first_sighting_proposes_a_class_that_the_next_one_matches(stage: Stage) -> None:
    """A second sighting would be a first one for ever."""
    stage.logged(LEAST)
    first = stage.watched(stage.deploy(1))
    assert first["verdicts"][0]["incident"].startswith("regression-")
    second = stage.watched(stage.deploy(2))
    assert first["verdicts"][0]["incident"] == second["verdicts"][0]["class"]
    assert not second["verdicts"][0]["allowed"]


def test_a_dispute_takes_confidence_from_what_was_read(stage: Stage) -> None:
    """A misclassification would cost what stood behind it nothing."""
    name_august(stage)
    stage.logged(PROBE)
    key = stage.deploy(1)
    stage.watched(key)
    before = stage.entry("incident-2026-08-14-api-startup-probe-timeout")["confidence"]
    found = human.watch_of(RecordQueue(stage.book()).jobs(), key)
    told = human.dispute(stage.sit, found, why="the database was down")
    assert "incident-2026-08-14-api-startup-probe-timeout" in {moved["key"] for moved in told["moved"]}
    assert before > stage.entry("incident-2026-08-14-api-startup-probe-timeout")["confidence"]


def test_a_person_disputes_from_the_command_line(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A person who has the whole sha of their deploy, and a terminal, could not disagree."""
    monkeypatch.setenv("HERDBOOK_HOME", str(stage.home / "herdbook"))
    name_august(stage)
    stage.logged(PROBE)
    stage.watched(stage.deploy(1))
    named = "incident-2026-08-14-api-startup-probe-timeout"
    before = stage.entry(named)["confidence"]
    assert 0 == command.main(["watch", "why", sha_of(1)])
    assert named in capsys.readouterr().out
    assert 0 == command.main(["watch", "dispute", sha_of(1), "--why", "the database was down"])
    said = capsys.readouterr().out
    after = stage.entry(named)["confidence"]
    assert before > after
    assert (True, True) == (f"{before:.3f}" in said, f"{after:.3f}" in said), said


@pytest.mark.parametrize("name", [sha_of(1), sha_of(1)[:12], sha_of(1)[:7], f"deploy-{sha_of(1)[:12]}", "job_1"])
def test_a_watch_is_found_by_whatever_a_person_has_of_its_name(name: str) -> None:
    """What GitHub shows is the whole sha, and what the status shows is the key."""
    job = {"key": f"deploy-{sha_of(1)[:12]}", "job": "job_1", "body": DEPLOYED, "result": {"session": "s_1"}}
    assert {"session": "s_1"} == human.watch_of([job], name)


@pytest.mark.parametrize("name", [sha_of(2), sha_of(3), sha_of(0), sha_of(1)[:12] + sha_of(2), "", "deploy-"])
def test_a_watch_is_not_found_by_another_name(name: str) -> None:
    """A dispute would take confidence from what another deploy was told."""
    job = {"key": f"deploy-{sha_of(1)[:12]}", "job": "job_1", "body": DEPLOYED, "result": {"session": "s_1"}}
    with pytest.raises(NotFound):
        human.watch_of([job], name)


def test_a_worker_refuses_a_servers_address(tmp_path: Path) -> None:
    """It would work off the jobs of a record on this machine, and leave those of the one that was named."""
    words = [sys.executable, "-m", "herdbook", "watch", "work", "--once"]
    env = {**os.environ, "HERDBOOK_HOME": str(tmp_path), "HERDBOOK_URL": "http://127.0.0.1:9"}
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60, cwd=tmp_path, env=env)
    assert (2, "") == (done.returncode, done.stdout)
    assert "needs the record itself, not a server" in done.stderr
    assert [] == list(tmp_path.iterdir())


def test_a_worker_says_that_it_is_there(tmp_path: Path) -> None:
    """A person who starts it would see an empty screen, whether it works or hangs."""
    words = [sys.executable, "-m", "herdbook", "watch"]
    where: dict[str, Any] = {"cwd": tmp_path, "env": {**os.environ, "HERDBOOK_HOME": str(tmp_path)}, "text": True}
    subprocess.run([*words, "init"], check=True, capture_output=True, timeout=60, **where)
    once = subprocess.run([*words, "work", "--once"], check=True, capture_output=True, timeout=60, **where)
    assert "no job waits\n" == once.stdout
    with subprocess.Popen([*words, "work"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **where) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline().startswith("waiting for jobs; boxes by ")
        finally:
            running.terminate()
            running.communicate(timeout=30)
    assert 0 == running.returncode


def test_a_noisy_watch_stays_open_until_a_later_one_settles_it(stage: Stage) -> None:
    """What was seen would never be known to have been right."""
    name_august(stage)
    stage.logged(PROBE)
    first = stage.watched(stage.deploy(1))
    stage.log.unlink()
    stage.logged("served /search", level="INFO")
    stage.watched(stage.deploy(2))
    [outcome] = stage.book().trace(first["session"])["outcomes"]
    assert ("success", True) == (outcome["effective_type"], outcome["attested"])
    assert "recovered" in outcome["artifacts"]["why"]


@pytest.mark.parametrize("services", [["api", "nowhere"], ["nowhere"]])
def test_a_service_that_nobody_set_up_is_said_to_be_unwatched(stage: Stage, services: list[str]) -> None:
    """A slip in a workflow would make every release quiet, or a watch of nothing at all without a word."""
    stage.logged("served /search", level="INFO")
    body = {"kind": "deploy", "repositories": {"acme/app": {"before": sha_of(0), "after": sha_of(1)}}, "services": services}
    RecordQueue(stage.book()).put(Job(key="deploy-nowhere", body=body))
    result = stage.watched("deploy-nowhere")
    assert (False, ["nowhere"]) == (result["quiet"], list(result["unreadable"]))
    assert "unwatched" == stage.entry("deploy-nowhere")["value"]["services"]["nowhere"]
    assert [] == stage.book().trace(result["session"])["outcomes"]


def test_a_log_that_cannot_be_read_is_never_quiet(stage: Stage) -> None:
    """A watch that saw nothing would be a success."""
    stage.log.mkdir()
    result = stage.watched(stage.deploy(1))
    assert not result["quiet"]
    assert [] == stage.book().trace(result["session"])["outcomes"]
