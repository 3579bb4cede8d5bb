"""The loop at a terminal, on a real record: in this process and through a server."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

KEY = "a-key-for-this-test-only"
TZ = '{"env": {"TZ": "UTC"}}'


@pytest.fixture(params=["local", pytest.param("server", marks=pytest.mark.slow)])
def herd(request: pytest.FixtureRequest, herdbook: Callable, tmp_path: Path) -> Iterator[Callable]:
    """Run a command line on this test's record, directly or through a server in front of it."""
    if request.param == "local":
        yield herdbook
        return
    environment = {**os.environ, "HOME": str(tmp_path), "HERDBOOK_KEY": KEY}
    server = subprocess.Popen(
        [sys.executable, "-m", "herdbook", "serve", "--port", "0"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        url = first_line(server).removeprefix("serving on ")
        yield lambda *argv, env=None, **more: herdbook(
            *argv, env={"HERDBOOK_URL": url, "HERDBOOK_KEY": KEY, **(env or {})}, **more
        )
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=30)


def first_line(server: subprocess.Popen) -> str:
    assert server.stdout is not None
    ready, _, _ = select.select([server.stdout], [], [], 30)
    assert ready, "the server did not say that it takes requests"
    return server.stdout.readline().decode().strip()


def test_the_loop(herd) -> None:
    """What a run learned would not reach the next one, or nobody could see why it is trusted."""
    wrote = herd("write", "acme/ci", "tz", TZ, "--why", "the date tests compare against UTC midnight", "--agent", "scout")
    assert (0, 1) == (wrote.code, wrote.out.count("herdbook outcome success --session s_")), wrote.err
    brief = herd("brief", "acme/ci", "--task", "make the tests pass", "--json", "--agent", "runner").json
    assert [("tz", 1, "scout")] == [(each["key"], each["version"], each["author"]) for each in brief["entries"]]
    run = ("--session", brief["session"])
    assert 0 == herd("attempt", "failure", *run, "--used", "tz", "--note", "3 of 4").code
    assert 0 == herd("action", "pytest", *run, "--args", '["-q"]', "--result", '{"passed": 4}', "--ok").code
    told = herd("outcome", "success", *run, "--ref", "ci-1", "--used", "tz", "--task-input", "make the tests pass", "--end")
    assert 0 == told.code, told.err
    assert "0.500 → 0.515  ×1.030  used" in told.out
    assert "trainable: yes" in told.out
    assert 0 == herd("attest", "ci-1", "--exit-code", "0").code
    assert "success → failure (revision 1)" in herd("revise", "ci-1", "failure", "--why", "rolled back").out
    trace = herd("trace", "ci-1").out
    marks = [
        "task: make the tests pass",
        "read    1 entry",
        "tried   failure",
        "did     pytest",
        "ended   success",
        "vouched",
        "revised",
    ]
    assert sorted(marks, key=trace.find) == marks
    assert -1 not in map(trace.find, marks)
    why = herd("why", "acme/ci", "tz").out
    assert "0.500 → 0.515  ×1.030" in why
    assert "by runner" in why
    assert "v1 used, read 2" in why
    assert "revision: rolled back" in why


def test_looking_back(herd) -> None:
    """A superseded version would be lost to whoever asks what was known before."""
    herd("write", "acme/ci", "retries", "3", "--why", "enough at rest")
    herd("write", "acme/ci", "retries", "5", "--why", "four are shed under load", "--if-version", "1")
    history = herd("history", "acme/ci", "retries").out
    assert "2 versions, oldest first" in history
    assert history.find("enough at rest") < history.find("four are shed under load")
    diff = herd("diff", "acme/ci", "retries").out
    assert "\n-3\n" in diff
    assert "\n+5\n" in diff
    assert "\x1b" not in diff
    assert ["acme/ci", "  retries  v2  0.50  unproven"] == herd("ls").out.splitlines()
    assert "v2" in herd("search", "load").out
    assert "superseded: the current version is 2" in herd("read", "acme/ci", "retries", "--version", "1").out
    conflict = herd("write", "acme/ci", "retries", "7", "--if-version", "1", "--json")
    assert (1, "version_conflict") == (conflict.code, conflict.json["error"]["code"])


def test_a_missing_entry_names_the_nearest(herd) -> None:
    """A mistyped key would look like something nobody knows."""
    herd("write", "acme/ci", "retry-budget", "3", "--why", "w")
    told = herd("read", "acme/ci", "retry-bugdet")
    assert 4 == told.code
    assert "retry-budget" in told.err
    assert "not_found" == herd("read", "acme/ci", "retry-bugdet", "--json").json["error"]["code"]


def test_an_unknown_path_is_not_an_error(herd) -> None:
    """A first run on a new path would fail, or take silence for knowledge."""
    herd("write", "acme/ci", "tz", TZ, "--why", "w")
    told = herd("brief", "acme/cd")
    assert (0, "Nothing is known here yet: acme/cd") == (told.code, told.out.splitlines()[0])
    assert "acme/ci" in told.out
    answer = herd("brief", "acme/cd", "--json")
    assert (0, [], ["acme/ci"]) == (answer.code, answer.json["entries"], answer.json["similar"])


def test_fifty_identical_writes_are_one_version(herdbook) -> None:
    """A loop that repeats itself would bury the history."""
    for _ in range(5):
        herdbook("write", "acme/ci", "tz", TZ, "--why", "w")
    answer = herdbook("history", "acme/ci", "tz", "--json").json
    assert [(1, 4)] == [(each["version"], each["affirmed"]) for each in answer["versions"]]
    assert "was there already" in herdbook("write", "acme/ci", "tz", TZ, "--why", "w").out


def test_a_named_run_has_no_footer_and_stays_one_run(herd) -> None:
    """Every command of a run would start another one, and its outcome would move nothing."""
    herd("write", "acme/ci", "tz", TZ, "--why", "w")
    first = herd("brief", "acme/ci", "--session", "run-17", "--agent", "runner")
    assert "the run run-17 starts here" in first.err
    assert "this was run" not in first.out
    again = herd("read", "acme/ci", "tz", env={"HERDBOOK_SESSION": "run-17"})
    assert (0, "") == (again.code, again.err)
    assert 2 == len(herd("trace", "run-17", "--json").json["reads"])
    other = herd("read", "acme/ci", "tz", "--session", "run-17", "--agent", "somebody-else")
    assert 1 == other.code


def test_no_session_means_none(herdbook) -> None:
    """Looking around would count as reading, and be credited with what others do."""
    herdbook("write", "acme/ci", "tz", TZ, "--why", "w", "--no-session")
    answer = herdbook("read", "acme/ci", "tz", "--no-session", "--json", env={"HERDBOOK_SESSION": "run-17"}).json
    assert answer["tracked"] is False
    assert 0 == herdbook("status", "--json").json["counts"]["sessions"]


def test_a_dead_end_is_told_as_one(herd) -> None:
    """The next run would walk into what was seen to fail."""
    wrote = herd(
        "dead-end", "acme/ci", "async-client", "swap in the async client", "--text", "--why", "it deadlocks", "--json"
    ).json
    assert 0.8 == wrote["confidence"]
    assert ["async-client"] == [each["key"] for each in herd("brief", "acme/ci", "--json").json["dead_ends"]]


def test_a_server_that_is_away_is_said(herdbook) -> None:
    """An outage would look like an empty record."""
    told = herdbook("brief", "acme/ci", "--url", "http://127.0.0.1:9", "--json")
    assert (3, "unreachable") == (told.code, told.json["error"]["code"])


def test_a_new_record_is_said(herdbook, tmp_path) -> None:
    """A mistyped path would look like a record in which nothing is known."""
    told = herdbook("ls", "--record", str(tmp_path / "typo.db"))
    assert (0, "Nothing is known yet.\n") == (told.code, told.out)
    assert "there was no record at ~/typo.db: a new, empty one was started" in told.err
    assert "" == herdbook("ls", "--record", str(tmp_path / "typo.db")).err


def test_init_can_be_repeated(herdbook, tmp_path) -> None:
    """A second init would replace the record or its key."""
    first = herdbook("init")
    assert (0, "") == (first.code, first.err)
    assert "A new record is at ~/.local/share/herdbook/record.db" in first.out
    home = tmp_path / ".local" / "share" / "herdbook"
    key = (home / "seal.key").read_bytes()
    assert (0o600, 0o600) == tuple((home / name).stat().st_mode & 0o777 for name in ("seal.key", "record.db"))
    herdbook("write", "acme/ci", "tz", TZ, "--why", "w")
    assert herdbook("init", "--json").json["created"] is False
    assert key == (home / "seal.key").read_bytes()
    assert 0 == herdbook("read", "acme/ci", "tz").code
