"""What a person does by the command line: they name, note, disagree and say how it ended, and a slip is told at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from herdbook import __main__ as command
from herdbook.watch import principal
from herdbook.watch.queue import Job, RecordQueue
from tests.watch.hooking import sha_of
from tests.watch.staging import ENTITY, LEAST, PROBE, Stage, staging

pytestmark = [pytest.mark.isolation, pytest.mark.slow]
Told = Callable[..., tuple[int, str, str]]
AUGUST = "incident-2026-08-14-api-startup-probe-timeout"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staging(tmp_path) as found:
        yield found


@pytest.fixture
def told(stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Told:
    """One command, as it is typed: exit code, output, errors."""
    monkeypatch.setenv("HERDBOOK_HOME", str(stage.home / "herdbook"))
    monkeypatch.chdir(stage.home)
    principal.init(Path("oncall"))

    def typed(*words: str) -> tuple[int, str, str]:
        code = command.main(list(words))
        said = capsys.readouterr()
        return code, said.out, said.err

    return typed


def name_august(told: Told) -> None:
    words = ["--pattern", "startup probe failed", "--why", "a slow image"]
    assert 0 == told("watch", "class", AUGUST, "--label", "cold_image", *words)[0]


def test_a_class_of_a_label_that_nothing_is_given_is_refused(told: Told) -> None:
    """It would match nothing for ever, and say that the next briefing carries it."""
    code, _, said = told("watch", "class", "x", "--label", "slow_image", "--pattern", "probe failed", "--why", "y")
    assert (1, True) == (code, "cold_image" in said)


def test_a_note_on_what_is_not_there_says_so(told: Told) -> None:
    """A slip in a key would leave the note where nobody looks."""
    code, _, said = told("note", ENTITY, "nothing-there", "the mirror is far away")
    assert (0, True) == (code, "there is no entry nothing-there" in said)


def test_a_person_ends_an_open_watch_once(stage: Stage, told: Told) -> None:
    """What was seen would never be known to have been right, or its class would be credited twice."""
    name_august(told)
    stage.logged(PROBE)
    result = stage.watched(stage.deploy(1))
    assert "outcome: open; herdbook watch resolve" in told("watch", "why", sha_of(1))[1]
    before = stage.entry(AUGUST)["confidence"]
    code, said, _ = told("watch", "resolve", sha_of(1)[:9], "success", "--why", "it pulled, and served", "--json")
    assert 0 == code, said
    assert (0, result["key"], result["ref"]) == (code, json.loads(said)["watch"], json.loads(said)["ref"])
    assert before < stage.entry(AUGUST)["confidence"]
    [outcome] = stage.book().trace(result["session"])["outcomes"]
    assert ("success", True, "a person") == (
        outcome["effective_type"],
        outcome["attested"],
        outcome["artifacts"]["resolved_by"],
    )
    assert "outcome: success (attested)" in told("watch", "why", sha_of(1))[1]
    code, _, said = told("watch", "resolve", sha_of(1)[:9], "success", "--why", "again")
    assert (4, True) == (code, "there is no entry" in said)


def test_a_watch_is_disputed_once(stage: Stage, told: Told) -> None:
    """Whoever types it twice would be answered in words about requests and bodies."""
    name_august(told)
    stage.logged(PROBE)
    stage.watched(stage.deploy(1))
    assert 0 == told("watch", "dispute", sha_of(1), "--why", "the database was down")[0]
    code, _, said = told("watch", "dispute", sha_of(1), "--why", "I said so")
    assert (1, True) == (code, "was disputed already" in said)


def test_status_says_why_it_is_not_done(stage: Stage, told: Told) -> None:
    """People would see `running` for an hour, and then that it was given up."""
    stage.logged(LEAST)
    key = stage.deploy(1)
    worker = stage.worker()

    def broken(*asked: object) -> None:
        raise KeyError("nobody foresaw this")

    worker.gate = broken  # type: ignore[assignment]
    assert worker.once()
    [job] = RecordQueue(stage.book()).jobs(key=key)
    assert "finding" in job["progress"]  # what was watched is not watched again
    assert "the last one failed: 'nobody foresaw this'" in told("watch", "status")[1]


def test_a_watch_is_found_by_its_key_behind_any_number_of_others(stage: Stage, told: Told) -> None:
    """Last month's deploy could be neither opened nor disputed."""
    stage.logged("served", level="INFO")
    stage.watched(stage.deploy(1))
    queue = RecordQueue(stage.book())
    for number in range(1001):
        queue.put(Job(key=f"later-{number}", body={}))
    assert 0 == told("watch", "why", sha_of(1))[0]


def test_what_init_wrote_is_followed_by_what_to_type(told: Told) -> None:
    """A newcomer would have three files and no idea."""
    _, said, _ = told("watch", "init", "elsewhere")
    assert "herdbook watch serve --config elsewhere/watch.toml" in said
