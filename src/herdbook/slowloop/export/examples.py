"""What a draft teaches: decisions to copy, pairs to prefer between, verdicts, rewards and prompts to practise on. Pure.

Each Example names the runs it came from, so that erasing one of them finds its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from herdbook.slowloop.export.drafts import Draft, Message, said

KINDS: Final = ("sft", "dpo", "kto", "reward", "rl")

# What an outcome is worth to a reward model or a policy: only the order and the sign are claimed to mean something.
REWARDS: Final = {"success": 1.0, "minor_failure": -0.25, "failure": -0.5, "critical_failure": -1.0}
# How much a success teaches: what somebody outside the box saw counts in full, a box's own word half.
ATTESTED_WEIGHT: Final = 1.0
CLAIMED_WEIGHT: Final = 0.5


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to learn. `good` follows `prompt`; `bad` is what should not."""

    entity: str
    task: str
    prompt: list[Message]
    good: list[Message]
    bad: list[Message] = []
    label: bool | None = None  # of a whole run: whether it ended well
    weight: float = 1.0
    tools: list[dict[str, Any]] | None = None  # None: the tools seen at this entity path
    sources: tuple[str, ...] = ()  # sessions
    note: str = ""  # how a pair was found


def weight(draft: Draft) -> float:
    return ATTESTED_WEIGHT if draft.attested else CLAIMED_WEIGHT


def decisions(draft: Draft) -> Iterator[Example]:
    """Each message of the agent's in a successful run, with all that came before it; a call that failed is only part of that."""
    for place, step in enumerate(draft.steps):
        if step["role"] == "assistant" and not is_failed(draft, step):
            yield of(draft, prompt=draft.prompt + draft.steps[:place], good=[step])


def is_failed(draft: Draft, step: Message) -> bool:
    return any(call["id"] in draft.failed for call in step.get("tool_calls") or ())


def whole(draft: Draft) -> Example | None:
    """A run in one piece, up to the agent's last message; None where nothing of the agent's is left."""
    steps = list(draft.steps)
    while steps and steps[-1]["role"] != "assistant":
        steps.pop()
    return of(draft, prompt=draft.prompt, good=steps, label=draft.success) if steps else None


def practice(draft: Draft) -> Example:
    """A task to be tried again, with the calls that once solved it."""
    prompt = [*(each for each in draft.prompt if each["role"] == "system"), said("user", draft.task_input)]
    return of(draft, prompt=prompt, good=draft.calls)


def of(draft: Draft, *, prompt: list[Message], good: list[Message], label: bool | None = None) -> Example:
    return Example(
        entity=draft.entity,
        task=draft.task,
        prompt=prompt,
        good=good,
        label=label,
        weight=weight(draft),
        tools=draft.tools,
        sources=(draft.session,),
    )


def pair(won: Draft, lost: Draft) -> Example | None:
    """The first act in which a failed run differs from a successful one, after the successful run's own history.

    An act is a call, or the message a run ended with. None where all acts are the same: then something else made the difference,
    and there is nothing to prefer.
    """
    held = [act for act in acts(won) if not is_failed(won, act[1])]
    for (place, good), (other_place, bad) in zip(held, acts(lost), strict=False):
        if same(good, bad):
            continue
        alike = same_history(won.steps[:place], lost.steps[:other_place]) and won.prompt == lost.prompt
        return Example(
            entity=won.entity,
            task=won.task,
            prompt=won.prompt + won.steps[:place],
            good=[good],
            bad=[renamed(bad, good)],
            weight=weight(won),
            tools=won.tools,
            sources=(won.session, lost.session),
            note="same history" if alike else "the successful run's history",
        )
    return None


def acts(draft: Draft) -> list[tuple[int, Message]]:
    """A run's calls, and the message it ended with if that came after the last of them, each with its place."""
    said_or_called = [(place, step) for place, step in enumerate(draft.steps) if step["role"] == "assistant"]
    last = said_or_called[-1:]
    return [act for act in said_or_called if act[1].get("tool_calls")] + [act for act in last if not act[1].get("tool_calls")]


def same(good: Message, bad: Message) -> bool:
    """Whether two acts come to the same: the same call, or that both ended there, in whatever words."""
    return functions(good) == functions(bad)


def functions(step: Message) -> list[Any]:
    return [call["function"] for call in step.get("tool_calls") or []]


def same_history(one: Sequence[Message], other: Sequence[Message]) -> bool:
    """Whether two histories read the same; the ids of calls are only names."""
    return [bare(step) for step in one] == [bare(step) for step in other]


def bare(step: Message) -> tuple[Any, ...]:
    return step["role"], step["content"], functions(step)


def renamed(bad: Message, good: Message) -> Message:
    """The failed run's act under the ids of the act it stands beside."""
    if not (bad.get("tool_calls") and good.get("tool_calls")):
        return bad
    calls = [{**call, "id": own["id"]} for call, own in zip(bad["tool_calls"], good["tool_calls"], strict=False)]
    return {**bad, "tool_calls": calls}


def first_tool(draft: Draft) -> str:
    """The tool a run opened with."""
    calls = draft.calls
    return str(functions(calls[0])[0]["name"]) if calls else ""
