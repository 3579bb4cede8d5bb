"""Pairs differ in one act, and copies are of what the agent did."""

from __future__ import annotations

from typing import Any

from herdbook.slowloop.export import examples
from herdbook.slowloop.export.drafts import Draft, called, said


def drafted(session: str, *acts: Any, success: bool = True) -> Draft:
    """A run of calls (tool, args) and of texts that the agent said."""
    steps = []
    for number, act in enumerate(acts):
        if isinstance(act, str):
            steps.append(said("assistant", act))
        else:
            steps += called({"tool": act[0], "args": act[1], "result": "ok"}, number=number)
    return Draft(
        session=session,
        ref=session,
        entity="acme",
        task="0",
        task_input="do it",
        at="2026-01-01T00:00:00Z",
        type="success" if success else "failure",
        success=success,
        attested=success,
        prompt=[said("user", "do it")],
        steps=steps,
        tools=None,
    )


NONE: dict[str, int] = {}
LOOK, RIGHT, WRONG = ("look", NONE), ("set", {"v": 1}), ("set", {"v": 2})


def acts_of(messages: list[dict[str, Any]]) -> list[Any]:
    return [examples.functions(each) or each["content"] for each in messages]


def test_a_pair_is_the_first_act_that_differs() -> None:
    """The preference would be between acts that answer different situations."""
    pair = examples.pair(drafted("won", LOOK, RIGHT), drafted("lost", LOOK, WRONG, success=False))
    assert pair is not None
    assert ("won", "lost") == pair.sources
    assert [[{"name": "set", "arguments": {"v": 1}}]] == acts_of(pair.good)
    assert [[{"name": "set", "arguments": {"v": 2}}]] == acts_of(pair.bad)
    assert pair.good[0]["tool_calls"][0]["id"] == pair.bad[0]["tool_calls"][0]["id"]
    assert "same history" == pair.note
    assert 3 == len(pair.prompt)


def test_giving_up_early_is_a_difference() -> None:
    """A run that stopped where another went on would teach nothing."""
    pair = examples.pair(drafted("won", LOOK, RIGHT, "done"), drafted("lost", LOOK, "I cannot", success=False))
    assert pair is not None
    assert ["I cannot"] == acts_of(pair.bad)


def test_runs_that_did_the_same_are_no_pair() -> None:
    """Luck would be taught as a choice."""
    assert examples.pair(drafted("won", LOOK, "done"), drafted("lost", LOOK, "sorry", success=False)) is None


def test_each_decision_follows_what_came_before_it() -> None:
    """The model would be shown what a tool answered before it called it."""
    rows = list(examples.decisions(drafted("won", LOOK, RIGHT)))
    assert [1, 3] == [len(row.prompt) for row in rows]
    assert [["look"], ["set"]] == [[call["name"] for call in acts_of(row.good)[0]] for row in rows]


def test_a_copy_ends_with_the_agent() -> None:
    """Loss would be taken on a tool's answer that nobody is to learn."""
    whole = examples.whole(drafted("won", LOOK, RIGHT))
    assert whole is not None
    assert ("assistant", 3) == (whole.good[-1]["role"], len(whole.good))


def test_a_claim_weighs_less_than_what_was_seen() -> None:
    """A box could raise its own work by praising it."""
    assert examples.weight(drafted("won", LOOK)) > examples.weight(drafted("lost", LOOK, success=False))
