"""`herdbook run`: any command inside the loop, and never in its way. Real processes, real records, real servers."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from herdbook import Client, open  # noqa: A004
from herdbook.surfaces.cli.commands.run import merged

pytestmark = pytest.mark.slow
SUITE = """
[ "$TZ" = UTC ] || echo "FAILED test_midnight - 1 != 2" >&2
[ "$SEED" = 1 ] || echo "ERROR: table price has no rows" >&2
[ "$TZ" = UTC ] && [ "$SEED" = 1 ]
"""
RUN = ("run", "--entity", "acme/ci")


@pytest.fixture
def suite(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "suite.sh").write_text(SUITE)
    return ("--", "sh", "suite.sh")


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """The record that the processes of this test use."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    with open(tracked=False) as book:
        yield book


@pytest.fixture
def server(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A server for this machine without a key: nobody may attest there."""
    with served(tmp_path / "server") as url:
        yield {"HERDBOOK_URL": url}


class served:  # noqa: N801
    def __init__(self, home: Path) -> None:
        command = [sys.executable, "-m", "herdbook", "serve", "--port", "0", "--json"]
        self.process = subprocess.Popen(command, env={**os.environ, "HERDBOOK_HOME": str(home)}, stdout=subprocess.PIPE)

    def __enter__(self) -> str:
        assert self.process.stdout
        url: str = json.loads(self.process.stdout.readline())["url"]
        return url

    def __exit__(self, *problem: object) -> None:
        self.process.terminate()
        self.process.communicate()


def entries_of(book: Client) -> dict[str, dict[str, Any]]:
    return {entry["key"]: entry for entry in book.brief("acme/ci")["entries"]}


def test_what_the_first_run_finds_out_the_next_box_has(process, suite, book) -> None:
    """Each build would pay again for what an earlier one has found out."""
    assert 1 == process(*RUN, "--learn", *suite).code
    assert 1 == process(*RUN, "--learn", *suite, env={"TZ": "UTC"}).code
    learned = process(*RUN, "--learn", *suite, env={"TZ": "UTC", "SEED": "1"})
    assert 0 == learned.code, learned.err
    assert "learned env.TZ" in learned.err
    fresh = process(*RUN, *suite)
    assert (0, "") == (fresh.code, fresh.out), fresh.err
    assert "set TZ=UTC" in fresh.err.split("exit 0")[0]
    found = entries_of(book)
    assert {"env.TZ": {"env": {"TZ": "UTC"}}, "env.SEED": {"env": {"SEED": "1"}}} == {key: e["value"] for key, e in found.items()}
    assert {"observed"} == {entry["standing"] for entry in found.values()}
    assert "FAILED test_midnight" == found["env.TZ"]["applies_when"]
    assert [0.515] == [round(move["after"], 6) for move in book.why("acme/ci", "env.TZ")["claims"][0]["moves"]]


def test_what_a_command_prints_and_how_it_ends_is_untouched(process) -> None:
    """A script that reads its output, or looks at its exit code, would see something else than without us."""
    told = process(*RUN, "--", "sh", "-c", "printf 'a\\r\\n\\001b'; printf 'err\\n' >&2; exit 3", "--json")
    assert (3, "a\r\n\x01b") == (told.code, told.out)
    assert "err\n" in told.err
    assert 137 == process(*RUN, "--", "sh", "-c", "kill -9 $$").code
    assert 127 == process(*RUN, "--", "no-such-program").code


def test_a_command_that_never_ran_moves_nothing(process, book) -> None:
    """A mistyped command would count against what the record knows."""
    told = process(*RUN, "--session", "s", "--", "no-such-program")
    assert "no outcome is recorded" in told.err
    assert [] == book.trace("s")["outcomes"]


def test_the_action_is_recorded_without_its_secrets(process, book, tmp_path) -> None:
    """Tokens that a build prints would be kept for ever, and shown to every later agent."""
    token, ours = "ghp_" + "a1B2" * 9, "correct-horse-battery"
    command = f"echo token {token}; echo $DEPLOY_PASSWORD; exit 2"
    told = process(*RUN, "--session", "s", "--", "sh", "-c", command, env={"DEPLOY_PASSWORD": ours})
    assert f"token {token}\n{ours}\n" == told.out
    trace = book.trace("s")
    kept = json.dumps(trace)
    assert ("token [redacted]" in kept, token in kept, ours in kept) == (True, False, False)
    action = trace["actions"][0]
    assert ("run", False, 2) == (action["tool"], action["ok"], action["result"]["exit_code"])
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert (False, False) == (token.encode() in stored, ours.encode() in stored)


def test_without_a_scope_to_attest_it_stays_a_claim(process, suite, server) -> None:
    """Whatever runs in a box could give its own entries standing."""
    process(*RUN, "--learn", *suite, env={**server, "TZ": "UTC"})
    told = process(*RUN, "--learn", *suite, env={**server, "TZ": "UTC", "SEED": "1"})
    assert "claimed, not attested (this credential may not attest)" in told.err
    fresh = process(*RUN, *suite, env=server)
    assert 1 == fresh.code
    assert "left out SEED of env.SEED: unproven" in fresh.err


def test_a_red_run_charges_only_what_has_failed_again(process, book) -> None:
    """Two red builds in a row, whatever the reason, would take what every build needs out of the environment."""
    book.session = "author"
    written = {"env": {"TZ": "UTC"}}
    book.write("acme/ci", "env.TZ", written, why="dates", applies_when="FAILED test_midnight")
    book.attest(book.commit_outcome("success")["ref"], result="success")
    for _ in range(3):
        assert 1 == process(*RUN, "--", "sh", "-c", "echo FAILED test_other; exit 1").code
    assert ("observed", 0) == (entries_of(book)["env.TZ"]["standing"], entries_of(book)["env.TZ"]["moves"])
    for _ in range(2):
        assert 1 == process(*RUN, "--", "sh", "-c", "echo FAILED test_midnight - 3 != 4; exit 1").code
    assert ["env.TZ"] == [entry["key"] for entry in book.brief("acme/ci")["contested"]]


def test_a_server_that_hangs_holds_nothing_up(process, suite, tmp_path) -> None:
    """A build would wait for the record, or go on as if nothing were known; its outcome would be lost."""
    with socket.create_server(("127.0.0.1", 0)) as hole:
        url = f"http://127.0.0.1:{hole.getsockname()[1]}"
        began = time.monotonic()
        told = process(*RUN, "--session", "away", "--", "true", env={"HERDBOOK_URL": url})
        took = time.monotonic() - began
    assert 0 == told.code
    assert 12 > took
    assert "unavailable: " in told.err
    assert "nothing known" not in told.err
    assert "kept in the spool" in told.err
    spools = list(tmp_path.glob(".local/share/herdbook/spool-*.jsonl"))
    assert [0o600] == [path.stat().st_mode & 0o777 for path in spools]
    assert ["start_session", "record_action", "commit_outcome"] == [
        json.loads(line)["verb"] for line in spools[0].read_text().splitlines()
    ][:3]


def test_a_record_that_cannot_be_used_is_said(process, tmp_path) -> None:
    """A broken record would stop every build of everybody."""
    (tmp_path / "broken.db").write_bytes(b"this is no database" * 100)
    told = process(*RUN, "--record", "broken.db", "--", "sh", "-c", "echo hello; exit 4")
    assert (4, "hello\n") == (told.code, told.out)
    assert "running without the record" in told.err


# No shell in a loop: dash 0.5.12 loses a signal that comes while it starts a command.
STOPS_WITH_9 = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
print("up", flush=True)
signal.sigwait([signal.SIGTERM])
print("stopping", flush=True)
sys.exit(9)
"""


def test_somebody_who_stops_it_tells_nothing_about_the_work(process, tmp_path, book) -> None:
    """A cancelled job would count as a failure of all that it had been told, or leave its command running."""
    env = {**os.environ, "HOME": str(tmp_path)}
    argv = [sys.executable, "-m", "herdbook", *RUN, "--session", "s", "--", sys.executable, "-c", STOPS_WITH_9]
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout
        assert b"up\n" == running.stdout.readline()
        running.send_signal(signal.SIGTERM)
        out, err = running.communicate(timeout=30)
    assert (9, b"stopping\n") == (running.returncode, out)
    assert b"stopped by SIGTERM, so no outcome is recorded" in err
    assert [] == book.trace("s")["outcomes"]


def test_a_reader_who_leaves_ends_the_command(tmp_path) -> None:
    """`herdbook run -- yes | head -1` would run for ever."""
    line = f"{sys.executable} -m herdbook {' '.join(RUN)} -- yes 2>/dev/null | head -1"
    answer = subprocess.run(["bash", "-c", line], env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, timeout=30)
    assert b"y\n" == answer.stdout


def entry(key: str, env: dict[str, Any], **more: Any) -> dict[str, Any]:
    shown = {"entity": "acme/ci", "key": key, "version": 1, "value": {"env": env}, "acting": True, "standing": "observed"}
    return {**shown, "worked": None, "why": None, **more}


def test_what_a_person_has_set_is_theirs() -> None:
    """The record would change what somebody has chosen for this run, without being asked to."""
    briefing = {"entries": [entry("tz", {"TZ": "UTC"}), entry("n", {"N": "1"}), entry("path", {"PATH": "/evil"})]}
    own = {"TZ": "CET", "N": "1", "PATH": "/bin"}
    found = merged(briefing, own, override=False, allow=[])
    assert ({}, {"TZ": "UTC"}, ["PATH"], []) == (found.applied, found.kept, [one["name"] for one in found.left_out], found.used)
    found = merged(briefing, own, override=True, allow=["PATH"])
    assert {"TZ": "UTC", "PATH": "/evil"} == found.applied
    assert ["path", "tz"] == sorted(one["key"] for one in found.used)
