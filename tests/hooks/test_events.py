"""Each agent's documented payload is understood, and nothing else is taken for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.surfaces.hooks.events import READERS, Event
from tests.hooks.payloads import DOCUMENTED

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@pytest.mark.parametrize("agent, name, payload, expected", DOCUMENTED)
def test_a_documented_payload_is_the_event_it_is(agent, name, payload, expected) -> None:
    """What an agent did would be lost, or be recorded as something else."""
    event = READERS[agent]({"event": name, **payload})
    assert event is not None
    assert expected == (event.kind, event.session, event.task, event.tool, event.command, event.ok)


@pytest.mark.parametrize("agent", READERS)
def test_what_is_no_event_is_none(agent) -> None:
    """A hook would fail, in front of its user, on an event that an agent adds tomorrow."""
    for payload in ({}, {"hook_event_name": "Tomorrow", "session_id": "s", "conversation_id": "s"}, {"session_id": 7}):
        assert READERS[agent](payload) is None


@given(agent=st.sampled_from(list(READERS)), payload=st.dictionaries(st.sampled_from([
    "hook_event_name", "session_id", "conversation_id", "cwd", "tool_input", "tool_response", "tool_info", "trajectory_id",
    "agent_action_name", "toolArgs", "toolResult", "event", "workspace_roots", "prompt"]), JSON | st.sampled_from(
    ["PostToolUse", "postToolUse", "post_run_command", "AfterTool", "s"])))  # fmt: skip
def test_no_payload_makes_a_reader_fail(agent, payload) -> None:
    """An agent that sends something odd would see our traceback at every call."""
    event = READERS[agent](payload)
    assert event is None or isinstance(event.checks, bool)


@pytest.mark.parametrize(
    "command, ok, checks",
    [
        ("pytest -q", True, True),
        ("cd app && TZ=UTC python -m pytest tests", False, True),
        ("npm run test -- --watch=false", True, True),
        ("make test", True, True),
        ("pytest -q || true", True, False),  # its exit code says nothing
        ("pytest -q | tail -5", True, False),
        ("echo pytest", True, False),
        ("cat test.py", True, False),
        ("pytest -q", None, False),  # the agent does not say how it went
    ],
)
def test_what_counts_as_a_check(command, ok, checks) -> None:
    """A command that only looks like a test run would decide how a whole run ended."""
    assert checks == Event("tool", "s", args={"command": command}, ok=ok).checks
