"""`herdbook hook`: the whole loop by an agent's own events, and its deadline, with real processes."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from rs_bpe import openai

from herdbook import open  # noqa: A004
from herdbook.base import current_run
from herdbook.base.repository import entity_of
from herdbook.fastloop.tokens import estimate_tokens
from tests.hooks.payloads import CLAUDE

pytestmark = pytest.mark.slow
# Patient, where it is not the deadline that is looked at: on a busy machine starting up takes longer than two seconds.
HOOK = ("hook", "claude-code", "--entity", "acme/ci", "--deadline", "40")


@pytest.fixture
def fire(process, tmp_path):
    """Send one event of Claude Code's, as a process of its own."""

    def send(name: str, *more: str, env: dict[str, str] | None = None, **payload: Any):
        event = {**CLAUDE, "cwd": str(tmp_path), "hook_event_name": name, **payload}
        told = process(*HOOK, *more, stdin=json.dumps(event).encode(), env=env)
        assert 0 == told.code, told.err
        return told

    return send


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    with open(tracked=False) as book:
        yield book


def context(told: Any) -> str:
    return str(json.loads(told.out)["hookSpecificOutput"]["additionalContext"])


def bash(command: str) -> dict[str, Any]:
    return {"tool_name": "Bash", "tool_input": {"command": command}}


def test_the_loop_closes_without_the_agent_knowing(fire, book) -> None:
    """A run would end with no outcome, or with the one the agent gives itself."""
    book.write("acme/ci", "tz", {"env": {"TZ": "UTC"}}, why="dates")
    assert "`tz = " in context(fire("SessionStart", source="startup"))
    fire("UserPromptSubmit", prompt="make the tests pass")
    fire("PostToolUseFailure", **bash("pytest -q"), error="exit code 1: token ghp_" + "a1B2" * 9)
    fire("PostToolUse", **bash("TZ=UTC pytest -q"), tool_response={"stdout": "4 passed", "interrupted": False})
    assert "" == fire("SessionEnd", reason="exit").out
    trace = book.trace("claude-code-abc123")
    [outcome] = trace["outcomes"]
    assert ("success", "make the tests pass", False) == (outcome["type"], outcome["task_input"], outcome["attested"])
    assert "claude-code: TZ=UTC pytest -q" == outcome["verified_by"]
    assert [("Bash", False), ("Bash", True)] == [(action["tool"], action["ok"]) for action in trace["actions"]]
    assert "[redacted]" in json.dumps(trace["actions"])
    assert ["tz"] == [read["key"] for read in trace["reads"]]
    assert (True, True) == (trace["trainable"], trace["ended_at"] is not None)


def test_a_run_without_a_check_has_no_outcome(fire, book) -> None:
    """A chat in which nothing was tried would count as a success, or a failure."""
    fire("SessionStart", source="startup")
    fire("PostToolUse", **bash("ls"), tool_response="a b")
    fire("SessionEnd", reason="exit")
    assert [] == book.trace("claude-code-abc123")["outcomes"]


def test_a_later_check_revises_the_outcome(fire, book) -> None:
    """An agent without an end of its sessions would be judged by its first turn for ever."""
    fire("SessionStart")
    for name, expected in (("PostToolUseFailure", "failure"), ("PostToolUse", "success"), ("PostToolUse", "success")):
        fire(name, **bash("pytest"))
        fire("Stop")
        assert [expected] == [each["effective_type"] for each in book.trace("claude-code-abc123")["outcomes"]]


def test_a_server_that_hangs_costs_the_deadline_and_no_more(fire, tmp_path) -> None:
    """An agent would not start while the record hangs, or take silence for nothing being known."""
    with socket.create_server(("127.0.0.1", 0)) as hole:
        env = {"HERDBOOK_URL": f"http://127.0.0.1:{hole.getsockname()[1]}"}
        began = time.monotonic()
        told = fire("SessionStart", "--deadline", "2", env=env)
        assert 20 > time.monotonic() - began, "two seconds, and what it takes to start; without a deadline it would be for ever"
        assert "unavailable" in context(told)
        assert "does not mean that nothing is known" in context(told)
        fire("PostToolUse", "--deadline", "2", **bash("pytest"), env=env)
    assert list(tmp_path.glob(".local/share/herdbook/spool-*.jsonl"))


def test_the_last_good_briefing_is_given_and_said_to_be_old(fire, book) -> None:
    """An outage would take away even what was known this morning; or old news would pass for new."""
    book.write("acme/ci", "tz", "UTC", why="dates")
    fire("SessionStart")
    away = context(fire("SessionStart", env={"HERDBOOK_URL": "http://127.0.0.1:9"}))
    assert "unavailable" in away
    assert "The last briefing, 0.0 hours old, so it may be out of date" in away
    assert "`tz = " in away


@pytest.mark.parametrize("data", [b"", b"no json", b"[]", b"\xff\xfe", b'{"hook_event_name": "Tomorrow", "session_id": "s"}'])
def test_no_input_makes_a_hook_fail(process, data) -> None:
    """An agent would show our failure to its user, or stop."""
    told = process(*HOOK, stdin=data)
    assert (0, "") == (told.code, told.out)
    assert "Traceback" not in told.err


def test_a_briefing_of_ten_thousand_entries_keeps_its_budget(fire, book) -> None:
    """One session's start would fill the agent's window. Counted by a tokenizer of a model, not only by our own estimate."""
    service, caller = book.transport.service, book.transport.caller

    def written(each: int) -> dict[str, Any]:
        said = f"the service {each} wants TZ=UTC and RETRY={each}"
        return {"entity": "acme/ci", "key": f"quirk-{each}", "value": said, "why": f"test_{each} fails otherwise"}

    for first in range(0, 10_000, 1_000):  # many in one transaction: it is not writing that is looked at
        told = service.commit([service.plan(caller, "write", written(each)) for each in range(first, first + 1_000)])
        assert {1} == {each["version"] for each in told}
    text = context(fire("SessionStart", "--tokens", "800"))
    assert "quirk-" in text
    assert 800 >= estimate_tokens(text) >= 400
    assert 800 >= max(openai.cl100k_base().count(text), openai.o200k_base().count(text))


def test_tools_belong_to_the_run_the_hook_has_begun(fire, tmp_path) -> None:
    """What an agent reads through its tools would belong to one run, and its outcome to another."""
    from tests.mcp.clients import over_stdio, run

    fire("SessionStart")

    async def work() -> None:
        async with over_stdio(tmp_path / ".local/share/herdbook", cwd=tmp_path) as agent:
            assert "claude-code-abc123" == (await agent.call("brief", entity="acme/ci")).data["session"]

    run(work)


def test_a_commit_is_told_to_the_run_in_its_folder(process, fire, book) -> None:
    """What a run came to would not be in its trace."""
    assert "" == process("hook", "git", "abc", "--entity", "acme/ci").out
    fire("SessionStart")
    process("hook", "git", "0123abcd", "--entity", "acme/ci", "--deadline", "40")
    assert [{"commit": "0123abcd"}] == [action["args"] for action in book.trace("claude-code-abc123")["actions"]]


def test_an_old_run_is_not_joined(tmp_path, monkeypatch) -> None:
    """Tools started today would go on in last week's run."""
    current_run.remember(tmp_path, "/p", {"session": "s"})
    assert "s" == current_run.current(tmp_path, "/p")["session"]
    monkeypatch.setattr("time.time", lambda: 4e9)
    assert {} == current_run.current(tmp_path, "/p")


@pytest.mark.parametrize(
    "remote, expected",
    [
        ("git@github.com:Acme/Checkout.git", "acme/checkout"),
        ("https://github.com/acme/checkout", "acme/checkout"),
        ("ssh://git@host:22/acme/checkout.git/", "acme/checkout"),
        (None, "repo"),
    ],
)
def test_the_entity_is_the_repositorys(tmp_path, remote, expected) -> None:
    """Every agent would have to be told which path it works on, or two clones of one repository would share nothing."""
    folder = tmp_path / "repo"
    (folder / ".git").mkdir(parents=True)
    (folder / "deep").mkdir()
    (folder / ".git" / "config").write_text(
        "" if remote is None else f'[core]\n[remote "origin"]\n\tfetch = x\n\turl = {remote}\n'
    )
    assert expected == entity_of(str(folder / "deep"))
