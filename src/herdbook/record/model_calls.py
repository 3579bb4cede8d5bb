"""A call that a model answered, as part of a run: what it was given, what the tools gave back, what it said, and who it was.

A client sends the whole conversation each time; every turn is kept once, at its place. A call of a tool is kept when its result
comes back, since until then nobody knows that it was made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from herdbook.base import limits
from herdbook.base.redaction import keepable
from herdbook.record import sessions
from herdbook.record.record import Record
from herdbook.record.store.protocol import Transaction
from herdbook.record.types import Stamp

MODEL_CONTEXT: Final = "model"  # the context that says which model answered
TOOLS_CONTEXT: Final = "tools"
ROLES: Final = {"developer": "system", "function": "tool"}
TOLD_CHARS_MAX: Final = 16_000  # of a call's arguments or result; longer ones are cut, and say so

Message = Mapping[str, Any]


class Step(NamedTuple):
    """What is to be kept of one turn: a text under a name, or a tool's call with its result."""

    place: str
    name: str
    text: str
    call: Mapping[str, Any] | None = None


def keep(record: Record, tx: Transaction, stamp: Stamp, told: Mapping[str, Any], *, at: int) -> dict[str, Any]:
    """Keep one call in its run, which begins with it if need be. Told again, it is kept once more only in the count of calls."""
    fields = {name: told[name] for name in ("session", "agent", "entity", "task")}
    begun = record.session(stamp.tenant, told["session"], tx) is None
    session = sessions.start(record, tx, stamp, fields, at=at) if begun else owned(record, tx, stamp, told["session"])
    for number, step in enumerate(steps(told, from_start=begun)):
        keep_step(record, tx, stamp, told["session"], step, at=at + number)  # a microsecond apart, so that their order is kept
    row = {name: told[name] for name in ("alias", "model", "session", "n", "prompt_tokens", "answer_tokens", "milliseconds")}
    tx.run("insert_model_call", row | {"tenant": stamp.tenant, "id": tx.next_id(), "at": at})
    return {"session": session["session"], "alias": told["alias"], "model": told["model"]}


def owned(record: Record, tx: Transaction, stamp: Stamp, name: str) -> dict[str, Any]:
    return {"session": sessions.require_session(record, tx, stamp, name).id}


def keep_step(record: Record, tx: Transaction, stamp: Stamp, session: str, step: Step, *, at: int) -> None:
    body = json.dumps([session, step.place, step.name, step.text, step.call], sort_keys=True)
    fields = {"session": session, "request_id": f"m-{blake2b(body.encode(), digest_size=16).hexdigest()}"}
    if step.call is None:
        sessions.record_context(record, tx, stamp, fields | {"name": step.name, "text": fit(step.text)}, at=at)
        return
    args, result = (keepable(value, chars_max=TOLD_CHARS_MAX).value for value in (step.call["arguments"], step.text))
    action = {"tool": step.call["name"], "args": args, "result": result, "ok": None}
    sessions.record_action(record, tx, stamp, fields | action, at=at)


def steps(told: Mapping[str, Any], *, from_start: bool) -> Iterator[Step]:
    """What is new in a call: all of it in a run that begins, else what follows the model's last turn; and the answer."""
    messages: Sequence[Message] = told["messages"]
    spoken = [place for place, message in enumerate(messages) if message.get("role") == "assistant"]
    first = 0 if from_start or not spoken else spoken[-1] + 1
    if told["tools"]:
        yield Step("", TOOLS_CONTEXT, json.dumps(told["tools"], sort_keys=True))
    yield Step("", MODEL_CONTEXT, f"{told['alias']}: {told['model']}")
    for place, message in enumerate(messages[first:], first):
        yield from turn(messages, place, message)
    if told["answer"]:
        yield Step(str(len(messages)), "assistant", told["answer"])


def turn(messages: Sequence[Message], place: int, message: Message) -> Iterator[Step]:
    role = ROLES.get(str(message.get("role")), str(message.get("role")))
    text = text_of(message.get("content"))
    if role == "tool":
        call = call_of(messages[:place], message.get("tool_call_id"))
        yield Step(str(place), "tool", text, call)
    elif text:
        yield Step(str(place), role, text)


def call_of(messages: Sequence[Message], ident: Any) -> dict[str, Any] | None:
    """The call that a result answers, from the conversation itself."""
    for message in reversed(messages):
        for call in objects(message.get("tool_calls")):
            if call.get("id") == ident:
                [function] = objects([call.get("function")]) or [{}]
                return {"name": str(function.get("name")), "arguments": parsed(function.get("arguments"))}
    return None


def objects(value: Any) -> list[dict[str, Any]]:
    """What a client sends as a list of objects, as far as it is one."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def parsed(arguments: Any) -> Any:
    """Arguments as an object; what is no JSON stays a text."""
    try:
        found = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
    except ValueError:
        found = arguments
    return found if isinstance(found, dict) else {"value": found}


def text_of(content: Any) -> str:
    """The words of a message; pictures and files are named by their type only."""
    if isinstance(content, str):
        return content
    return "\n".join(
        str(part["text"]) if "text" in part else f"[{part.get('type')}]"
        for part in objects(content if isinstance(content, list) else [content])
    )


def fit(text: str) -> str:
    """A text as a context or a task may hold it: without secrets and controls, and what is cut says so."""
    found: str = keepable(text, chars_max=limits.TASK_CHARS_MAX - 64).value
    return found
