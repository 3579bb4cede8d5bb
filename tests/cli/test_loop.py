"""The loop at a terminal, on a real record: in this process and through a server."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from herdbook.__main__ import COMMANDS, STARTERS

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
    assert (0, 1) == (wrote.code, wrote.err.count("herdbook outcome success --session s_")), wrote.err
    assert "this was run" not in wrote.out
    brief = herd("brief", "acme/ci", "--task", "make the tests pass", "--json", "--agent", "runner").json
    assert [("tz", 1, "scout")] == [(each["key"], each["version"], each["author"]) for each in brief["entries"]]
    run = ("--session", brief["session"])
    assert 0 == herd("attempt", "failure", *run, "--used", "tz", "--note", "3 of 4").code
    assert 0 == herd("action", "pytest", *run, "--args", '["-q"]', "--result", '{"passed": 4}', "--ok").code
    told = herd("outcome", "success", *run, "--ref", "ci-1", "--used", "tz", "--task-input", "make the tests pass", "--end")
    assert 0 == told.code, told.err
    assert "0.500 → 0.515 ×1.030 used" in " ".join(told.out.split())
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
    assert "this was run" not in first.out + first.err
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
    place = ("--record", str(tmp_path / "new.db"))
    told = herdbook("write", "acme/ci", "tz", TZ, "--why", "w", *place)
    assert "there was no record at ~/new.db: a new, empty one was started" in told.err
    assert (0, "") == (herdbook("ls", *place).code, herdbook("ls", *place).err)
    assert "a new, empty one was started" in herdbook("brief", "acme/ci").err


ASKS = {
    "brief": "acme/ci", "search": "x", "read": "acme/ci tz", "ls": "", "history": "acme/ci tz", "diff": "acme/ci tz",
    "why": "acme/ci tz", "trace": "r", "status": "", "box": "ls", "action": "t --session s", "attempt": "success --session s",
    "outcome": "success --session s", "attest": "r --exit-code 0", "revise": "r failure --why w",
    "tune": "acme/ci", "embed": "", "prove": "acme/ci",
    "retrain": "acme/ci", "ranker": "ls", "calibrate": "acme/ci", "export": "check", "artefacts": "", "models": "ls", "audit": "",
    "runs": "",
    "note": "acme/ci tz text", "contradictions": "acme/ci",
    "erase": "--ls",
}  # fmt: skip


# doctor looks, db is PostgreSQL's, connections and agents' own files are kept elsewhere, a hook never fails its agent; there is
# nothing to back up where there is no record, and restore makes one.
WITHOUT_A_RECORD = {"bench", "doctor", "db", "gateway", "connect", "hook", "backup", "restore"}


def test_every_command_is_tried_on_a_missing_record() -> None:
    """A new command that asks would go unwatched, and make records."""
    assert {*ASKS} == {*COMMANDS} - STARTERS - WITHOUT_A_RECORD


@pytest.mark.parametrize("name", ASKS)
@pytest.mark.parametrize("by", ["flag", "environment", "file"])
def test_asking_makes_no_record_where_one_was_named(name, by, herdbook, tmp_path) -> None:
    """A mistyped path would become a record in which nothing is known."""
    home = tmp_path / "home"
    home.mkdir()
    env = {"HERDBOOK_HOME": str(home)}
    flags = ["--record", str(tmp_path / "typo.db")] if by == "flag" else []
    if by == "environment":
        env["HERDBOOK_RECORD"] = str(tmp_path / "typo.db")
    if by == "file":
        (home / "settings.toml").write_text(f'record = "{tmp_path / "typo.db"}"\n')
    told = herdbook(name, *ASKS[name].split(), *flags, env=env)
    assert (4, "", 1) == (told.code, told.out, told.err.count("\n"))
    assert "there is no record at ~/typo.db" in told.err
    assert "herdbook init" in told.err
    assert {"home"} == {each.name for each in tmp_path.iterdir()}
    assert [] == [each.name for each in home.iterdir() if each.name != "settings.toml"]
    assert "not_found" == herdbook(name, *ASKS[name].split(), *flags, "--json", env=env).json["error"]["code"]


def test_the_way_out_of_a_missing_record_works(herdbook, tmp_path) -> None:
    """The sentence would name a command that starts another record."""
    told = herdbook("ls", "--record", str(tmp_path / "my record.db"))
    assert 0 == herdbook(*shlex.split(told.err.partition("with: herdbook ")[2])).code
    assert 0 == herdbook("ls", "--record", str(tmp_path / "my record.db")).code


@pytest.mark.parametrize("name", sorted({*ASKS} - {"brief", "search", "read", "embed"}))
def test_asking_where_nothing_was_ever_written_leaves_nothing_behind(name, herdbook, tmp_path) -> None:
    """Looking around would start a record, and the next command would believe that somebody did."""
    told = herdbook(name, *ASKS[name].split())
    assert told.code in (0, 4)
    assert "there is no record yet at ~/.local/share/herdbook/record.db" in told.err
    assert [] == list(tmp_path.iterdir())
    assert f"{tempfile.gettempdir()}{os.sep}herdbook" not in told.out


@pytest.mark.parametrize("argv", [["brief", "acme/ci"], ["read", "acme/ci", "tz"], ["search", "x"]])
def test_reading_outside_of_any_run_leaves_nothing_behind(argv, herdbook, tmp_path) -> None:
    """Looking around would start a record, and the next command would believe that somebody did."""
    assert herdbook(*argv, "--no-session").code in (0, 4)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("argv", [["action", "pytest"], ["attempt", "failure"], ["outcome", "success"]])
def test_a_missing_run_is_told_how_to_start_it(argv, herd) -> None:
    """Whoever tells the first step of a run would be sent to a verb that no command has."""
    herd("write", "a", "k", "1", "--why", "w")
    told = herd(*argv, "--session", "my run")
    assert (4, "") == (told.code, told.out)
    assert "start it with: herdbook brief PATH --session 'my run'\n" in told.err
    assert "start_session" not in told.err
    assert 0 == herd("brief", "acme/ci", "--session", "my run").code
    assert 0 == herd(*argv, "--session", "my run").code


def test_the_task_may_come_with_the_outcome(herd) -> None:
    """A trace would say that no task was given, although the outcome tells it."""
    herd("brief", "acme/ci", "--session", "s")
    herd("outcome", "success", "--session", "s", "--task-input", "make it pass")
    assert "task: make it pass\n" in herd("trace", "s").out
    herd("brief", "acme/ci", "--session", "t")
    assert "task: none was given\n" in herd("trace", "t").out


def test_an_agent_that_is_not_kept_is_said(herdbook) -> None:
    """Whoever writes as an agent but outside of any run would find another author there, without having been told."""
    for command in ("write", "dead-end"):
        told = herdbook(command, "acme/ci", command, "1", "--why", "w", "--agent", "scout", "--no-session")
        assert 0 == told.code
        assert "warning: scout is not kept as the author" in told.err
    assert "warning" not in herdbook("write", "acme/ci", "k", "1", "--why", "w", "--agent", "scout").err
    assert "warning" not in herdbook("write", "acme/ci", "l", "1", "--why", "w", "--no-session").err


def test_a_failed_attempt_is_no_success(herd) -> None:
    """The charge of a failed try would read as a success that moved nothing."""
    herd("write", "acme/ci", "tz", TZ, "--why", "w", "--session", "monday")
    herd("brief", "acme/ci", "--session", "tuesday")
    herd("attempt", "failure", "--session", "tuesday", "--used", "tz")
    outcome = herd("outcome", "success", "--session", "tuesday", "--ref", "r", "--used", "tz")
    for told in (outcome, herd("why", "acme/ci", "tz"), herd("trace", "r")):
        charged = [line for line in told.out.splitlines() if "failed attempt, charged" in line]
        assert 1 == len(charged), told.out
        assert not {"×1.000", "success r", "attempt,  attempt"} & {*charged[0].split("  ")}
        assert "×1.000" not in told.out


def test_a_dead_end_says_its_own_confidence(said) -> None:
    """The help would name two defaults, and nobody could know which holds."""
    told = said("dead-end", "--help").out
    assert ("from 0 to 1 (0.8)", False) == (told[told.find("from 0 to 1") :][:17], "0.5" in told)
    assert "from 0 to 1 (0.5)" in said("write", "--help").out


def test_init_does_not_point_at_a_key_that_is_gone(herdbook, tmp_path) -> None:
    """Whoever lost the key would be told to copy it."""
    herdbook("init")
    (tmp_path / ".local/share/herdbook/seal.key").unlink()
    told = herdbook("init")
    assert 0 == told.code
    assert "Its seal key is at" not in told.out
    assert "Its seal key is missing: put it back at ~/.local/share/herdbook/seal.key" in told.out
    assert herdbook("init", "--json").json["seal_key_missing"] is True


def test_the_next_page_is_the_same_list(herdbook, tmp_path) -> None:
    """The command for the next page would look into another record, or show more at a time."""
    place = ("--record", str(tmp_path / "my record.db"))
    for path in ("a/1", "a/2", "a/3"):
        herdbook("write", path, "k", "1", "--why", "w", "--no-session", *place)
    first = herdbook("ls", "a", "--limit", "1", *place)
    assert "a/1" == first.out.splitlines()[0]
    assert "there is more" not in first.out
    second = herdbook(*shlex.split(first.err.partition("there is more: herdbook ")[2]))
    assert ("a/2", 2) == (second.out.splitlines()[0], len(second.out.splitlines()))
    assert "--limit 1 --after" in second.err


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
