"""`herdbook demo` as a person or a script meets it: the real command, as a process."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from herdbook.surfaces.demo.events import Stopped
from herdbook.surfaces.demo.narration import Narration
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
