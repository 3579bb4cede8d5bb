"""A run as training needs it: who asked for what, each message and tool call in order, and how it ended. Pure.

`draft` gives a Draft, or the one reason why this run cannot teach. Nothing is guessed: a run without a task, a tool call or an
outcome is left out under that name, and so is one whose outcomes contradict each other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

import msgspec

Message = dict[str, Any]  # role, content, and for a call `tool_calls`, whose arguments are objects

ROLES: Final = ("system", "user", "assistant")
TOOLS_CONTEXT: Final = "tools"  # a context of this name holds the tool schemas the agent had, as a JSON list
UNSAID: Final = (TOOLS_CONTEXT, "model")  # contexts that are no part of the conversation; `model` says which one answered
# What spans tell of a model that was asked: steps of a run, and no call of a tool that anybody should learn to make.
MODEL_CALLS: Final = frozenset({"chat", "generate_content", "text_completion"})
MODEL_ASKED: Final = frozenset({"model", "provider"})
MODEL_ANSWERED: Final = frozenset({"model", "finish_reasons", "input_tokens", "output_tokens", "error"})
TOOL_NAME_REFUSED: Final = re.compile(r"[^A-Za-z0-9_-]")
TOOL_NAME_CHARS_MAX: Final = 64  # what OpenAI's and most servers accept
NUMBERS: Final = re.compile(r"\d+")
SPACES: Final = re.compile(r"\s+")


class Draft(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One run: `prompt` is what came before the agent's first act, `steps` all that followed, in order."""

    session: str
    ref: str
    entity: str
    task: str  # the fingerprint that groups runs of the same task
    task_input: str
    at: str
    type: str  # as it counts now, revisions included
    success: bool
    attested: bool
    prompt: list[Message]
    steps: list[Message]
    tools: list[dict[str, Any]] | None  # as the agent had them, where that was recorded
    failed: list[str] = []  # calls that the run itself says went wrong: to be seen, never to be copied

    @property
    def calls(self) -> list[Message]:
        """The messages that call a tool."""
        return [step for step in self.steps if step.get("tool_calls")]


def draft(run: Mapping[str, Any], *, attested_only: bool) -> Draft | str:
    """A page's run as a Draft, or the reason why not."""
    reason = refusal(run, attested_only=attested_only)
    if reason is not None:
        return reason
    last = run["outcomes"][-1]
    task_input = next(outcome["task_input"] for outcome in run["outcomes"] if outcome["task_input"])
    prompt, steps = conversation(run, task_input)
    return Draft(
        session=run["session"],
        ref=last["ref"],
        entity=run["entity"] or "",
        task=fingerprint(task_input),
        task_input=task_input,
        at=last["at"],
        type=last["effective_type"],
        success=last["effective_type"] == "success",
        attested=last["attested"] is not None,
        prompt=prompt,
        steps=steps,
        tools=recorded_tools(run["contexts"]),
        failed=failed_calls(run),
    )


def refusal(run: Mapping[str, Any], *, attested_only: bool) -> str | None:
    """Why a run cannot teach: the first thing it lacks."""
    outcomes = run["outcomes"]
    if run["erased"]:
        return "erased_subject"
    if run["broken"]:
        return "seal_broken"
    if not outcomes:
        return "unresolved"
    if len({outcome["effective_type"] == "success" for outcome in outcomes}) > 1:
        return "contradictory"
    if any(map(is_overturned, outcomes)):
        return "revised"
    if attested_only and not any(outcome["attested"] for outcome in outcomes):
        return "unattested"
    if not any(outcome["task_input"] for outcome in outcomes):
        return "no_task_input"
    return "no_actions" if all(map(is_model_call, run["actions"])) else None


def is_model_call(action: Mapping[str, Any]) -> bool:
    """Whether an action is what a span told of a model's answer; a tool of such a name is asked and answers otherwise."""
    args, result = action["args"], action["result"]
    told = action["tool"] in MODEL_CALLS and isinstance(args, dict) and isinstance(result, dict)
    return told and MODEL_ASKED.issuperset(args) and MODEL_ANSWERED.issuperset(result)


def is_overturned(outcome: Mapping[str, Any]) -> bool:
    """Whether a revision turned success into failure or back: what the run seemed to teach was wrong once already."""
    return bool((outcome["type"] == "success") != (outcome["effective_type"] == "success"))


def fingerprint(task_input: str) -> str:
    """Runs of one task share it: case, spacing and numbers (a build, a date) make no other task."""
    plain = SPACES.sub(" ", NUMBERS.sub("0", task_input.casefold())).strip()
    return blake2b(plain.encode(), digest_size=8).hexdigest()


def conversation(run: Mapping[str, Any], task_input: str) -> tuple[list[Message], list[Message]]:
    """(prompt, steps): one system message at most, in front; then messages and calls in the order they happened."""
    timeline = in_order(run)
    begun = next(at for at, kind, each in timeline if kind == 1 or each["name"] == "assistant")
    system = [each["text"] for at, kind, each in timeline if kind == 0 and each["name"] == "system"]
    system += [known] if (known := what_was_known(run["reads"], before=begun)) else []
    turns: list[Message] = [] if has_user(run["contexts"]) else [said("user", task_input)]
    for number, (_, kind, each) in enumerate(timeline):
        if kind == 1:
            turns += called(each, number=number)
        elif each["name"] != "system":
            turns.append(said(*spoken(each)))
    turns = joined(turns)
    first = next(place for place, turn in enumerate(turns) if turn["role"] == "assistant")
    return ([said("system", "\n\n".join(system))] if system else []) + turns[:first], turns[first:]


def in_order(run: Mapping[str, Any]) -> list[tuple[str, int, Mapping[str, Any]]]:
    """(when, 0 or 1, context or action): all that happened, contexts before the calls of the same moment."""
    return sorted(
        [(context["at"], 0, context) for context in run["contexts"] if context["name"] not in UNSAID]
        + [(action["at"], 1, action) for action in run["actions"] if not is_model_call(action)],
        key=lambda each: each[:2],
    )


def failed_calls(run: Mapping[str, Any]) -> list[str]:
    """The ids, in the conversation, of calls that did not do what they should."""
    if all(action["ok"] is not False for action in run["actions"]):
        return []
    return [ident_of(number) for number, (_, kind, each) in enumerate(in_order(run)) if kind == 1 and each["ok"] is False]


def ident_of(number: int) -> str:
    return f"call_{number}"


def has_user(contexts: Sequence[Mapping[str, Any]]) -> bool:
    return any(context["name"] == "user" for context in contexts)


def said(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def spoken(context: Mapping[str, Any]) -> tuple[str, str]:
    """A recorded context as a message: by its role, or, whatever else the agent was handed, as something the user showed it."""
    if context["name"] in ROLES:
        return context["name"], context["text"]
    return "user", f"{context['name']}:\n{context['text']}"


def called(action: Mapping[str, Any], *, number: int) -> list[Message]:
    """An action as the call and the tool's answer."""
    name, ident = tool_name(action["tool"]), ident_of(number)
    call = {"id": ident, "type": "function", "function": {"name": name, "arguments": arguments(action["args"])}}
    answer = {"role": "tool", "tool_call_id": ident, "name": name, "content": content(action["result"])}
    return [{"role": "assistant", "content": "", "tool_calls": [call]}, answer]


def tool_name(name: str) -> str:
    """A tool's name in the letters that every target accepts."""
    return TOOL_NAME_REFUSED.sub("_", name)[:TOOL_NAME_CHARS_MAX]


def arguments(args: Any) -> dict[str, Any]:
    """Arguments are an object everywhere; another value becomes one."""
    if args is None:
        return {}
    return args if isinstance(args, dict) else {"value": args}


def content(result: Any) -> str:
    """A tool's result as text."""
    if result is None:
        return ""
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, sort_keys=True)


def joined(turns: Sequence[Message]) -> list[Message]:
    """Neighbours of one role as one message, as chat templates want it; a text before a call goes with the call."""
    found: list[Message] = []
    for turn in turns:
        last = found[-1] if found else None
        if last is None or last["role"] != turn["role"] or turn["role"] == "tool" or last.get("tool_calls"):
            found.append(turn)
        else:
            text = "\n\n".join(part for part in (last["content"], turn["content"]) if part)
            found[-1] = {**turn, "content": text}
    return found


def what_was_known(reads: Sequence[Mapping[str, Any]], *, before: str) -> str:
    """The briefing, from the versions as they were served before the agent's first act."""
    shown = [read for read in reads if read["at"] <= before]
    lines = [f"- {read['entity']} {read['key']}: {briefed(read)}" for read in shown]
    return "\n".join(["What is known:", *lines]) if lines else ""


def briefed(read: Mapping[str, Any]) -> str:
    value = json.dumps(read["value"], ensure_ascii=False, sort_keys=True)
    dead_end = "tried, does not work: " if read["worked"] is False else ""
    return f"{dead_end}{value}" + (f" ({read['why']})" if read["why"] else "")


def recorded_tools(contexts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
    """The tool schemas as recorded, in OpenAI's form; None where there are none or they cannot be read."""
    text = next((context["text"] for context in contexts if context["name"] == TOOLS_CONTEXT), None)
    try:
        tools = json.loads(text) if text is not None else None
    except ValueError:
        return None
    fits = isinstance(tools, list) and all(isinstance(tool, dict) and isinstance(tool.get("function"), dict) for tool in tools)
    return tools if fits else None
