"""Rows in the form each trainer reads. One function a target and kind; what a target cannot hold is refused by name. Pure.

Arguments of a call are an object for TRL and a JSON text for the OpenAI family: in the other's form they are encoded twice or
refused, so there are two writers and never one. Formats as of TRL 1.16, LLaMA-Factory and Axolotl of 2026.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from herdbook.base.errors import InvalidRequest
from herdbook.slowloop.export.drafts import Message
from herdbook.slowloop.export.examples import Example

Row = dict[str, Any]
Tools = list[dict[str, Any]]
Writer = Callable[[Example, Tools], Row]

PER_DECISION: Final = ("trl", "parquet")  # their loss is on the completion: one row for each of the agent's decisions


def trl_sft(example: Example, tools: Tools) -> Row:
    return {"prompt": example.prompt, "completion": example.good, "tools": tools, "weight": example.weight}


def trl_dpo(example: Example, tools: Tools) -> Row:
    return {"prompt": example.prompt, "chosen": example.good, "rejected": example.bad, "tools": tools}


def trl_kto(example: Example, tools: Tools) -> Row:
    return {"prompt": example.prompt, "completion": example.good, "label": example.label, "tools": tools}


def trl_reward(example: Example, tools: Tools) -> Row:
    """Pairs without a prompt of their own: no trainer of TRL's takes a number."""
    return {"chosen": example.prompt + example.good, "rejected": example.prompt + example.bad, "tools": tools}


def trl_rl(example: Example, tools: Tools) -> Row:
    return {"prompt": example.prompt, "entity_path": example.entity, "accepted": accepted(example), "tools": tools}


def accepted(example: Example) -> list[Row]:
    """The calls that solved the task, for a reward function to compare with; arguments as text, since their shapes differ."""
    functions = [call["function"] for step in example.good for call in step["tool_calls"]]
    return [{"name": each["name"], "arguments": compact(each["arguments"])} for each in functions]


def openai_sft(example: Example, tools: Tools) -> Row:
    return {"messages": as_text(example.prompt + example.good), "tools": tools, "parallel_tool_calls": False}


def openai_dpo(example: Example, tools: Tools) -> Row:
    given = {"messages": as_text(example.prompt), "tools": tools, "parallel_tool_calls": False}
    return {"input": given, "preferred_output": as_text(example.good), "non_preferred_output": as_text(example.bad)}


def openai_rl(example: Example, tools: Tools) -> Row:
    return {"messages": as_text(example.prompt), "tools": tools, "entity_path": example.entity, "accepted": accepted(example)}


def as_text(messages: Sequence[Message]) -> list[Message]:
    """The OpenAI family's form: arguments are a JSON text."""
    return [textual(message) for message in messages]


def textual(message: Message) -> Message:
    if not message.get("tool_calls"):
        return message
    calls = [
        {**call, "function": {**call["function"], "arguments": compact(call["function"]["arguments"])}}
        for call in message["tool_calls"]
    ]
    return {**message, "tool_calls": calls}


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def axolotl_sft(example: Example, tools: Tools) -> Row:
    return {"messages": as_text(example.prompt + example.good), "tools": tools}


def axolotl_dpo(example: Example, tools: Tools) -> Row:
    """Its chat template copies role and content of the two answers and nothing else, so a call is written into the content."""
    return {
        "messages": as_text(example.prompt),
        "chosen": {"role": "assistant", "content": rendered(example.good[0])},
        "rejected": {"role": "assistant", "content": rendered(example.bad[0])},
        "tools": tools,
    }


def axolotl_kto(example: Example, tools: Tools) -> Row:
    return {"prompt": transcript(example.prompt), "completion": transcript(example.good), "label": example.label}


def axolotl_reward(example: Example, tools: Tools) -> Row:
    system = "\n\n".join(each["content"] for each in example.prompt if each["role"] == "system")
    given = transcript([each for each in example.prompt if each["role"] != "system"])
    return {"system": system, "input": given, "chosen": rendered(example.good[0]), "rejected": rendered(example.bad[0])}


def rendered(message: Message) -> str:
    """A message as one text; calls in the tags that most templates of open models use."""
    calls = [f"<tool_call>\n{compact(call['function'])}\n</tool_call>" for call in message.get("tool_calls") or []]
    return "\n".join([*([message["content"]] if message["content"] else []), *calls])


def transcript(messages: Sequence[Message]) -> str:
    return "\n\n".join(f"{message['role']}: {rendered(message)}" for message in messages)


def llamafactory_sft(example: Example, tools: Tools) -> Row:
    return {**turns(example.prompt + example.good), "tools": compact(tools)}


def llamafactory_dpo(example: Example, tools: Tools) -> Row:
    given = turns(example.prompt)
    return {**given, "chosen": turn(example.good[0]), "rejected": turn(example.bad[0]), "tools": compact(tools)}


def llamafactory_kto(example: Example, tools: Tools) -> Row:
    return {**turns(example.prompt + example.good), "kto_tag": example.label, "tools": compact(tools)}


def turns(messages: Sequence[Message]) -> Row:
    """Its own names for the roles; the system message stands beside the conversation."""
    system = "\n\n".join(each["content"] for each in messages if each["role"] == "system")
    return {"system": system, "conversations": [turn(each) for each in messages if each["role"] != "system"]}


def turn(message: Message) -> Row:
    """A turn is a text or a call, not both: of both, the call is what the run was about."""
    if message.get("tool_calls"):
        return {"from": "function_call", "value": compact(message["tool_calls"][0]["function"])}
    return {"from": {"user": "human", "tool": "observation", "assistant": "gpt"}[message["role"]], "value": message["content"]}


WRITERS: Final[dict[str, dict[str, Writer]]] = {
    "trl": {"sft": trl_sft, "dpo": trl_dpo, "kto": trl_kto, "reward": trl_reward, "rl": trl_rl},
    "openai": {"sft": openai_sft, "dpo": openai_dpo, "rl": openai_rl},
    "llamafactory": {"sft": llamafactory_sft, "dpo": llamafactory_dpo, "kto": llamafactory_kto, "reward": llamafactory_dpo},
    "axolotl": {"sft": axolotl_sft, "dpo": axolotl_dpo, "kto": axolotl_kto, "reward": axolotl_reward},
}
WRITERS["parquet"] = WRITERS["trl"]
TARGETS: Final = tuple(WRITERS)


def writer(target: str, kind: str) -> Writer:
    """The function that makes this target's rows of this kind; InvalidRequest where it has no such rows."""
    found = WRITERS[target].get(kind)
    if found is None:
        raise InvalidRequest(f"{target} has no rows of the kind {kind}: it takes {', '.join(WRITERS[target])}")
    return found
