"""`herdbook fanout` as a command, with real boxes: dead ends are shared, and only the winner is believed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from herdbook.boxes.fanout import Attempt, FanOut, Variant
from herdbook.surfaces.cli.commands.fanout import progress, summary
from herdbook.surfaces.demo.stage import OWN

pytestmark = pytest.mark.slow
ENTITY = "acme/checkout"
# What the agents of most tests do: claim something, and pass or fail as their variant says.
AGENT = """
import json, os, sys
from client import Client
book = Client()
book.start_session(entity="acme/checkout", task="t")
n = os.environ["N"]
book.write("acme/checkout", "found", {"env": {"N": n}}, why="tried in a box")
%s
sys.exit(0 if n == "2" else 1)
"""


def herdbook(home: Path, *arguments: str, code: int = 0, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Any:
    clean = {name: text for name, text in os.environ.items() if not name.startswith("HERDBOOK_")}
    command = [sys.executable, "-m", "herdbook", *arguments]
    if "--" in command:
        command.insert(command.index("--"), "--json")
    else:
        command.append("--json")
    told = {**clean, **(env or {}), "HERDBOOK_HOME": str(home)}
    done = subprocess.run(command, env=told, cwd=cwd, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def fan_out(home: Path, files: Path, *arguments: str, code: int = 0) -> Any:
    told = ("fanout", ENTITY, "--provider", "unsafe-process", "--files", str(files), "--at-once", "1", *arguments)
    return herdbook(home, *told, code=code)


def agent(tmp_path: Path, more: str = "") -> Path:
    files = tmp_path / "files"
    files.mkdir()
    (files / "agent.py").write_text(AGENT % more)
    return files


COMMAND = ("--", "python3", "agent.py")


def test_only_the_winners_entries_are_told(tmp_path: Path) -> None:
    """Seven boxes that were wrong would be read by the next one, beside the one that was right."""
    found = fan_out(tmp_path / "h", agent(tmp_path), "--vary", "N=1,2,3", *COMMAND)
    assert ["failed", "won", "not started"] == [each["state"] for each in found["attempts"]]
    history = herdbook(tmp_path / "h", "history", ENTITY, "found")["versions"]
    assert [({"env": {"N": "2"}}, found["attempts"][1]["box"], "observed")] == [
        (each["value"], each["box"], each["standing"]) for each in history
    ], "one version, by the winner, and it stands"
    assert "success" == herdbook(tmp_path / "h", "trace", history[0]["session"])["outcomes"][0]["type"]
    loser = herdbook(tmp_path / "h", "trace", *found["attempts"][0]["sessions"])
    assert [("herdbook.draft", {"N": "1"})] == [(each["tool"], each["args"]["value"]["env"]) for each in loser["actions"]]
    assert ("failure", "process") == (loser["outcomes"][0]["type"], loser["isolation"])


def test_a_box_may_rule_out_more_than_itself(tmp_path: Path) -> None:
    """What one box understands about half of the space would be found out again by the other half."""
    rule = 'book.dead_end("acme/checkout", "one-never-works", {"env": {"N": "1"}}, why="N=1 divides by zero")'
    files = agent(tmp_path, rule)
    found = fan_out(tmp_path / "h", files, "--vary", "N=9,1,2", "--vary", "M=a,b", *COMMAND)
    states = {each["approach"]: each["state"] for each in found["attempts"]}
    assert ("skipped", "skipped") == (states["M=a N=1"], states["M=b N=1"])
    assert "divides by zero" in next(each["why"] for each in found["attempts"] if each["approach"] == "M=a N=1")


def test_a_dead_end_is_seen_by_a_box_that_runs(tmp_path: Path) -> None:
    """A board that others see only afterwards is a report."""
    wait = """
import time
if n == "1":
    while not [e for e in book.brief("acme/checkout")["dead_ends"] if e["value"]["env"]["N"] == "9"]: time.sleep(0.02)
    sys.exit(0)
"""
    found = fan_out(tmp_path / "h", agent(tmp_path, wait), "--at-once", "2", "--wall-seconds", "60", "--vary", "N=1,9", *COMMAND)
    assert ["won", "failed"] == [each["state"] for each in found["attempts"]]
    assert found["seconds"] < 30


def test_the_next_one_starts_narrower_with_a_real_suite(tmp_path: Path) -> None:
    """A search that forgets begins at full width every time it is run."""
    space = ("--vary", "LOAD=1", "--vary", "ROUNDING_MODE=half_up,half_even", "--vary", "RETRY_BUDGET=1,5", "--boxes", "2")
    files = tmp_path / "files"
    (files / "checkout").mkdir(parents=True)
    for path in (OWN / "suite").glob("*.py"):
        (files / "checkout" / path.name).write_bytes(path.read_bytes())
    suite = ("--", "python3", "-m", "unittest", "checkout.test_checkout")
    first = fan_out(tmp_path / "h", files, *space, *suite, code=1)
    second = fan_out(tmp_path / "h", files, *space, *suite)
    assert ["failed", "failed", "not started", "not started"] == [each["state"] for each in first["attempts"]]
    assert ["skipped", "skipped", "failed", "won"] == [each["state"] for each in second["attempts"]]
    entry = herdbook(tmp_path / "h", "read", ENTITY, "fanout-winner")
    assert {"LOAD": "1", "ROUNDING_MODE": "half_even", "RETRY_BUDGET": "5"} == entry["value"]["env"]
    dead_ends = herdbook(tmp_path / "h", "brief", ENTITY)["dead_ends"]
    assert {0.8} == {each["confidence"] for each in dead_ends}
    assert all("exit code 1" in each["why"] and each["value"]["evidence"] for each in dead_ends)
    assert [] == herdbook(tmp_path / "h", "box", "ls", "--live")["boxes"]


def test_less_isolation_than_is_asked_for_is_refused(tmp_path: Path) -> None:
    """An untrusted variant would run as the user."""
    fan_out(tmp_path / "h", agent(tmp_path), "--isolation-min", "container", "--vary", "N=1", *COMMAND, code=1)


@pytest.mark.parametrize(
    "arguments, says",
    [
        (("--files", "nowhere", "--vary", "N=1"), "nowhere is no directory"),
        (("--files", "agent.py", "--vary", "N=1"), "agent.py is no directory"),
        (("--vary", "N"), "--vary N names no values"),
        (("--vary", "N=1", "--vary", "N=2"), "--vary names N twice"),
    ],
)
def test_what_was_mistyped_is_said(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    """Boxes without the files, or with half of the values, would fail, and their failures be believed."""
    (tmp_path / "agent.py").write_text("")
    told = herdbook(tmp_path / "h", "fanout", ENTITY, "--provider", "unsafe-process", *arguments, *COMMAND, code=2, cwd=tmp_path)
    assert says in told["error"]["message"]


@pytest.mark.parametrize("command", [("fanout", ENTITY, "--vary", "N=1", *COMMAND), ("demo",)])
def test_a_servers_address_is_refused(tmp_path: Path, command: tuple[str, ...]) -> None:
    """Dead ends and winners would be told to a record on this machine, and the one that was named would never know."""
    address = {"HERDBOOK_URL": "http://127.0.0.1:9"}
    told = herdbook(tmp_path / "h", *command, code=2, env=address, cwd=tmp_path)
    assert "needs the record itself, not a server" in told["error"]["message"]
    assert [] == list(tmp_path.iterdir())


def test_why_an_attempt_failed_is_shown() -> None:
    """A suite that cannot even be imported would look like a space without a solution."""
    why = "N=1: exit code 1: ImportError: no checkout"
    failed = Attempt(Variant({"N": "1"}), state="failed", seconds=0.5, why=why)
    skipped = Attempt(Variant({"N": "1"}), state="skipped", why=why)
    assert "N=1: failed in 0.5 s, now a dead end: exit code 1: ImportError: no checkout" == progress(failed)
    assert "N=1: skipped, a dead end: exit code 1: ImportError: no checkout" == progress(skipped)
    assert "herdbook brief acme/checkout" in " ".join(summary(FanOut([skipped]), ENTITY))
    assert "herdbook brief" not in " ".join(summary(FanOut([failed, skipped]), ENTITY))
