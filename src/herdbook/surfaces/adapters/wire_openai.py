"""Chat completions, as the `openai` library sends and returns them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from herdbook.surfaces.adapters.wire import Answer, Call, Turn, parsed, plain, text_of

WAYS: Final = ("create", "parse")  # `stream` asks through `create`


def fits(client: Any) -> bool:
    return hasattr(client, "chat") and hasattr(client.chat, "completions")


def resource(client: Any) -> Any:
    return client.chat.completions


def request(fields: Mapping[str, Any]) -> tuple[list[Turn], list[Mapping[str, Any]]]:
    """The conversation and the tools of a request."""
    messages = [plain(message) for message in fields.get("messages") or ()]
    turns = [Turn(role(message), text_of(message.get("content")), message.get("tool_call_id")) for message in messages]
    return turns, [plain(tool) for tool in fields.get("tools") or ()]


def role(message: Mapping[str, Any]) -> str:
    return "system" if message["role"] == "developer" else str(message["role"])


def answer(completion: Any) -> Answer:
    """The first choice: it is what a conversation goes on with."""
    message = completion.choices[0].message
    calls = [Call(call.id, call.function.name, parsed(call.function.arguments)) for call in message.tool_calls or ()]
    return Answer(message.content or "", tuple(calls))


class Collector:
    """A streamed answer, put together."""

    def __init__(self) -> None:
        self.text = ""
        self.calls: dict[int, dict[str, str]] = {}

    def add(self, chunk: Any) -> None:
        for choice in chunk.choices[:1]:
            self.text += choice.delta.content or ""
            for part in choice.delta.tool_calls or ():
                call = self.calls.setdefault(part.index, {"id": "", "name": "", "arguments": ""})
                call["id"] += part.id or ""
                call["name"] += part.function.name or ""
                call["arguments"] += part.function.arguments or ""

    def answer(self) -> Answer:
        calls = [Call(call["id"], call["name"], parsed(call["arguments"])) for _, call in sorted(self.calls.items())]
        return Answer(self.text, tuple(calls))
