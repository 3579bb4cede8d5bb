"""JSON Schemas of every row we write, draft 2020-12: a copy goes with each dataset, so that it can be checked without us. Pure.

They are strict where trainers are silent: an OpenAI row whose arguments are an object is accepted by the usual typed readers, and
only refused after the upload.
"""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
NAME: Final[Schema] = {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}
TRUTH: Final[Schema] = {"type": "boolean"}
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def closed(**properties: Schema) -> Schema:
    """An object with these properties, all of them, and no others."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def listed(each: Schema, *, least: int = 0) -> Schema:
    return {"type": "array", "items": each, "minItems": least}


def messages(arguments: Schema, *, least: int = 1) -> Schema:
    """A conversation: what each role's message has, and no more."""
    call = closed(id=TEXT, type={"const": "function"}, function=closed(name=NAME, arguments=arguments))
    spoken = closed(role={"enum": ["system", "user", "assistant"]}, content=TEXT)
    calling = closed(role={"const": "assistant"}, content=TEXT, tool_calls=listed(call, least=1))
    answer = closed(role={"const": "tool"}, tool_call_id=TEXT, name=NAME, content=TEXT)
    return listed({"anyOf": [spoken, calling, answer]}, least=least)


OBJECTS: Final = messages({"type": "object"})
TEXTS: Final = messages(TEXT)
TOOL: Final[Schema] = {
    "type": "object",
    "properties": {
        "type": {"const": "function"},
        "function": {"type": "object", "properties": {"name": NAME, "parameters": {"type": "object"}}, "required": ["name"]},
    },
    "required": ["type", "function"],
}
TOOLS: Final = listed(TOOL)
ACCEPTED: Final = listed(closed(name=NAME, arguments=TEXT), least=1)
NO_PARALLEL: Final[Schema] = {"const": False}
SAID: Final = closed(role={"const": "assistant"}, content=TEXT)


def turn(*who: str) -> Schema:
    return closed(**{"from": {"enum": list(who)}, "value": TEXT})


CONVERSATION: Final[dict[str, Schema]] = {
    "system": TEXT,
    "conversations": listed(turn("human", "gpt", "function_call", "observation"), least=1),
}
ANSWER: Final = turn("gpt", "function_call")

ROWS: Final[dict[str, dict[str, Schema]]] = {
    "trl": {
        "sft": closed(
            prompt=OBJECTS, completion=OBJECTS, tools=TOOLS, weight={"type": "number", "exclusiveMinimum": 0, "maximum": 1}
        ),
        "dpo": closed(prompt=OBJECTS, chosen=OBJECTS, rejected=OBJECTS, tools=TOOLS),
        "kto": closed(prompt=OBJECTS, completion=OBJECTS, label=TRUTH, tools=TOOLS),
        "reward": closed(chosen=OBJECTS, rejected=OBJECTS, tools=TOOLS),
        "rl": closed(prompt=OBJECTS, entity_path=TEXT, accepted=ACCEPTED, tools=TOOLS),
    },
    "openai": {
        "sft": closed(messages=TEXTS, tools=TOOLS, parallel_tool_calls=NO_PARALLEL),
        "dpo": closed(
            input=closed(messages=TEXTS, tools=TOOLS, parallel_tool_calls=NO_PARALLEL),
            preferred_output=TEXTS,
            non_preferred_output=TEXTS,
        ),
        "rl": closed(messages=TEXTS, tools=TOOLS, entity_path=TEXT, accepted=ACCEPTED),
    },
    "llamafactory": {
        "sft": closed(**CONVERSATION, tools=TEXT),
        "dpo": closed(**CONVERSATION, chosen=ANSWER, rejected=ANSWER, tools=TEXT),
        "kto": closed(**CONVERSATION, kto_tag=TRUTH, tools=TEXT),
        "reward": closed(**CONVERSATION, chosen=ANSWER, rejected=ANSWER, tools=TEXT),
    },
    "axolotl": {
        "sft": closed(messages=TEXTS, tools=TOOLS),
        "dpo": closed(messages=TEXTS, chosen=SAID, rejected=SAID, tools=TOOLS),
        "kto": closed(prompt=TEXT, completion=TEXT, label=TRUTH),
        "reward": closed(system=TEXT, input=TEXT, chosen=TEXT, rejected=TEXT),
    },
}


def schema(target: str, kind: str) -> Schema:
    """The schema of one row; of Parquet's, before they are laid out in columns."""
    return {"$schema": DIALECT, "title": f"herdbook {kind} for {target}", **ROWS["trl" if target == "parquet" else target][kind]}
