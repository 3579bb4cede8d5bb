"""A run becomes a conversation, or is left out under the one reason that names what it lacks."""

from __future__ import annotations

from typing import Any

import pytest

from herdbook.service.spans.otlp import called
from herdbook.slowloop.export.drafts import Draft, draft, fingerprint

BEGUN = "2026-01-01T00:00:0"


def at(second: int) -> str:
    return f"{BEGUN}{second}Z"


def outcome(kind: str = "success", *, was: str | None = None, attested: str | None = None, task: str | None = "make it pass"):
    return {
        "ref": "ref",
        "type": was or kind,
        "effective_type": kind,
        "attested": attested,
        "task_input": task,
        "at": at(9),
    }


def action(tool: str = "pytest", args: Any = None, result: Any = "1 passed", *, second: int = 5) -> dict[str, Any]:
    return {"tool": tool, "args": args, "result": result, "ok": None, "at": at(second)}


def context(name: str, text: str, *, second: int) -> dict[str, Any]:
    return {"name": name, "text": text, "at": at(second)}


def run(**more: Any) -> dict[str, Any]:
    told = {"session": "run", "entity": "acme/ci", "reads": [], "contexts": [], "broken": False, "erased": False}
    return {**told, "actions": [action()], "outcomes": [outcome()], **more}


def drafted(**more: Any) -> Draft:
    found = draft(run(**more), attested_only=False)
    assert isinstance(found, Draft), found
    return found


@pytest.mark.parametrize(
    "reason,more",
    [
        ("seal_broken", {"broken": True}),
        ("unresolved", {"outcomes": []}),
        ("contradictory", {"outcomes": [outcome(), outcome("failure")]}),
        ("revised", {"outcomes": [outcome("failure", was="success")]}),
        ("revised", {"outcomes": [outcome("success", was="failure")]}),
        ("unattested", {}),
        ("no_task_input", {"outcomes": [outcome(task=None, attested="success")]}),
        ("no_actions", {"actions": [], "outcomes": [outcome(attested="success")]}),
    ],
)
def test_what_cannot_teach_is_named(reason: str, more: dict[str, Any]) -> None:
    """An empty export would be a riddle."""
    assert reason == draft(run(**more), attested_only=True)


def test_a_harsher_failure_is_no_reversal() -> None:
    """A revision from one kind of failure to another would lose a run that teaches what it always taught."""
    assert "critical_failure" == drafted(outcomes=[outcome("critical_failure", was="failure")]).type


def test_a_run_is_told_in_the_order_it_happened() -> None:
    """The model would learn to answer before it is asked."""
    found = drafted(
        contexts=[
            context("system", "be brief", second=1),
            context("user", "what is wrong?", second=2),
            context("assistant", "let me look", second=4),
            context("user", "thanks", second=7),
        ],
        actions=[action("look at", {"path": "x"}, {"lines": 2}, second=5)],
    )
    assert [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "what is wrong?"},
    ] == found.prompt
    call = {"id": "call_3", "type": "function", "function": {"name": "look_at", "arguments": {"path": "x"}}}
    assert [
        {"role": "assistant", "content": "let me look", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_3", "name": "look_at", "content": '{"lines": 2}'},
        {"role": "user", "content": "thanks"},
    ] == found.steps


def test_what_was_known_stands_in_the_prompt_and_what_came_later_does_not() -> None:
    """The model would be taught to know what the run was told only afterwards."""
    known = {"entity": "acme/ci", "key": "tz", "version": 1, "value": "UTC", "why": "dates", "worked": None, "at": at(4)}
    later = {**known, "key": "late", "at": at(6)}
    dead_end = {**known, "key": "retry", "value": 3, "why": None, "worked": False, "at": at(4)}
    found = drafted(reads=[known, dead_end, later])
    system = 'What is known:\n- acme/ci tz: "UTC" (dates)\n- acme/ci retry: tried, does not work: 3'
    assert [{"role": "system", "content": system}, {"role": "user", "content": "make it pass"}] == found.prompt


@pytest.mark.parametrize("args,right", [(None, {}), ({"a": 1}, {"a": 1}), ([1], {"value": [1]}), ("x", {"value": "x"})])
def test_arguments_are_an_object(args: Any, right: dict[str, Any]) -> None:
    """A trainer would refuse the row, or a template render it twice."""
    [call] = drafted(actions=[action(args=args)]).calls
    assert right == call["tool_calls"][0]["function"]["arguments"]


@pytest.mark.parametrize(
    "text,right",
    [
        ('[{"type": "function", "function": {"name": "x"}}]', [{"type": "function", "function": {"name": "x"}}]),
        ("not JSON", None),
        ('{"function": {}}', None),
        ("[1]", None),
    ],
)
def test_recorded_tools_are_used_if_they_are_tools(text: str, right: Any) -> None:
    """Rows would carry something that no trainer can read."""
    assert right == drafted(contexts=[context("tools", text, second=1)]).tools


def test_builds_of_one_task_are_one_task() -> None:
    """A model would be examined on the task it was trained on, only with another build number."""
    assert fingerprint("Fix build 4711\n") == fingerprint("fix  build 4712")
    assert fingerprint("fix the build") != fingerprint("fix the test")


def spanned(failed: bool = False, **said: Any) -> dict[str, Any]:
    """What a span of a model's call becomes."""
    about = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.provider.name": "p"}
    tool, args, result = called(about | said, failed=failed, said="overloaded")
    return action(tool, args, result, second=3)


def test_asking_a_model_is_no_tool_call() -> None:
    """Whoever sends the spans of an agent would train a model to call a tool named `chat`."""
    answered: dict[str, Any] = {
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.response.model": "m-1",
        "gen_ai.response.finish_reasons": ["stop"],
    }
    asked = [spanned(), spanned(**answered), spanned(failed=True)]
    assert drafted(actions=[action()]).steps == drafted(actions=[*asked, action()]).steps
    assert "no_actions" == draft(run(actions=asked), attested_only=False)
    own = action("chat", {"to": "ann"}, "sent", second=3)
    assert ["chat", "pytest"] == names(drafted(actions=[own, action()])), "a tool may have that name"


def names(found: Draft) -> list[str]:
    return [call["function"]["name"] for step in found.calls for call in step["tool_calls"]]
