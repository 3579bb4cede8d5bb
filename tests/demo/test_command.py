"""`herdbook demo` as a person or a script meets it: the real command, as a process."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest

from herdbook.boxes.provider import Box
from herdbook.surfaces.demo import command
from herdbook.surfaces.demo.acts import Played
from herdbook.surfaces.demo.events import Committed, Event, Known, Move, Stopped, Wrote
from herdbook.surfaces.demo.narration import Narration
from herdbook.surfaces.demo.stage import Actor, Turn
from tests.demo.wiring import UNSAFE

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "five-acts" / "run-demo.sh"


def herdbook(
    home: Path, *argv: str, command: tuple[str, ...] = (sys.executable, "-m", "herdbook")
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HERDBOOK_HOME": str(home)}
    return subprocess.run([*command, *argv], env=environment, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.slow
def test_what_it_prints_can_be_typed(tmp_path: Path) -> None:
    """The commands at the end would not work, or look into another record."""
    told = herdbook(tmp_path / "home", "demo", "--provider", UNSAFE, "--record", str(tmp_path / "my record.db"))
    assert (0, "") == (told.returncode, told.stderr)
    assert "\x1b" not in told.stdout
    lines = told.stdout.partition("Look for yourself:\n")[2].splitlines()
    words = [shlex.split(line)[shlex.split(line).index("herdbook") + 1 :] for line in lines]
    assert ["why", "history", "brief", "trace"] == [each[0] for each in words]
    for each in words:
        answer = herdbook(tmp_path / "home", *each)
        assert (0, True) == (answer.returncode, "retry-budget" in answer.stdout), answer.stderr
    assert not (tmp_path / "home" / "record.db").exists()


@pytest.mark.slow
@pytest.mark.isolation
def test_the_script_prints_exactly_one_object(tmp_path: Path) -> None:
    """`run-demo.sh --json` would print something that no program can read."""
    told = herdbook(tmp_path, "--json", command=(str(SCRIPT),))
    assert (0, "") == (told.returncode, told.stderr)
    found = json.loads(told.stdout)
    assert [5, 1, None] == [found[name] for name in ("attempts_cold", "attempts_inherited", "failed")]
    promised = {"acts", "attempts_cold", "attempts_inherited", "history", "confidence", "boxes", "seconds"}
    assert promised == promised & set(found)


@pytest.mark.slow
def test_what_a_failed_one_prints_can_be_typed(tmp_path: Path, suite: Callable[..., Path]) -> None:
    """The commands at the end would name entries that were never written."""
    never = suite()
    (never / "test_never.py").write_text("import unittest\n\nclass T(unittest.TestCase):\n    def test_n(self): self.fail()\n")
    told = herdbook(tmp_path / "home", "demo", "--provider", UNSAFE, "--suite", str(never))
    assert (1, "") == (told.returncode, told.stderr)
    assert "Act 2 failed" in told.stdout
    lines = told.stdout.partition("Look for yourself:\n")[2].splitlines()
    words = [shlex.split(line)[shlex.split(line).index("herdbook") + 1 :] for line in lines]
    assert ["trace"] == [each[0] for each in words]
    assert [0] == [herdbook(tmp_path / "home", *each).returncode for each in words]


def played(*events: Event) -> Played:
    """A play in which these things happened."""
    box = Box(id="b", provider=UNSAFE, isolation="process", label="l", home="/", python="python3")
    turn = Turn(2, Actor("agent-a", box, adopted=False), load=False, events=list(events))
    return Played("acme/checkout", turns=[turn])


KNOWN = Known(known=0, session="s_1", entries=[])
TZ = Wrote(key="tz", version=1, supersedes=None, value=1, why="w")
BUDGET = Wrote(key="retry-budget", version=1, supersedes=None, value=1, why="w")
ENDED = Committed(ref="r 1", type="failure", session="s_1", exit_code=1, moved=[], trainable=True)


@pytest.mark.parametrize(
    "events, expected",
    [
        ([], []),
        ([KNOWN], ["trace s_1"]),
        ([KNOWN, ENDED], ["trace 'r 1'"]),
        ([KNOWN, TZ], ["why acme/checkout tz", "history acme/checkout tz", "brief acme/checkout", "trace s_1"]),
        ([BUDGET, TZ], ["why acme/checkout retry-budget", "history acme/checkout retry-budget", "brief acme/checkout"]),
    ],
)
def test_only_what_is_there_is_worth_a_look(events: list[Event], expected: list[str]) -> None:
    """Whoever wants to know why it failed would be sent to what does not exist."""
    assert expected == command.worth_a_look(played(*events))


def test_numbers_have_as_many_digits_as_mean_something() -> None:
    """A confidence would be printed with sixteen digits of noise."""
    given = {"before": 0.1 + 0.2, "moves": [{"after": 0.5627544050000001}, (1 / 3,)], "n": 3, "passed": True, "none": None}
    expected = {"before": 0.3, "moves": [{"after": 0.562754}, [0.333333]], "n": 3, "passed": True, "none": None}
    assert expected == command.rounded(given)


def test_a_charged_attempt_is_told_as_one() -> None:
    """A failed try would read as a success that moved nothing, or as a run that failed."""
    out = StringIO()
    told = Narration(out)
    move = Move(key="tz", version=1, before=0.5, after=0.5, how="attempt")
    told.event(Committed(ref="r", type="success", session="s", exit_code=0, moved=[move], trainable=True))
    assert "tz v1: failed attempt, charged\n" in out.getvalue()
    claim = {"entry": "tz", "versions": [1], "standing": "observed", "before": 0.5, "after": 0.5, "held": 1.0, "failed": 1.0}
    told.curtain(Played("acme", confidence=[{**claim, "moves": [{"how": "attempt"}, {"how": "used"}]}], seconds=1.5))
    assert "held 1, failed 1 (a failed attempt, charged)\n" in out.getvalue()
    assert " 1.50 seconds.\n" in out.getvalue()


def test_a_mistake_is_one_sentence(tmp_path: Path) -> None:
    """Somebody who names a directory without tests would get a traceback, or a record and boxes for nothing."""
    told = herdbook(tmp_path, "demo", "--suite", str(tmp_path))
    assert (1, "", 1) == (told.returncode, told.stdout, told.stderr.count("\n"))
    assert [] == list(tmp_path.iterdir())


class Screen(StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_is_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log file would be full of escapes, or NO_COLOR not be heeded."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def told(out: StringIO) -> str:
        Narration(out).event(Stopped(message="no"))
        return out.getvalue()

    assert "\x1b[31m" in told(Screen())
    assert "\x1b" not in told(StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in told(Screen())
