"""Messages, as the `anthropic` library sends and returns them. Tool schemas are kept in the form that training sets use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from herdbook.surfaces.adapters.wire import Answer, Call, Turn, parsed, plain, text_of

WAYS: Final = ("create", "parse", "stream")


def fits(client: Any) -> bool:
    return hasattr(client, "messages") and not hasattr(client, "chat")


def resource(client: Any) -> Any:
    return client.messages


def request(fields: Mapping[str, Any]) -> tuple[list[Turn], list[Mapping[str, Any]]]:
    """The conversation and the tools of a request."""
    system = [Turn("system", text_of(fields["system"]))] if fields.get("system") else []
    turns = [turn for message in fields.get("messages") or () for turn in turns_of(plain(message))]
    return [*system, *turns], [schema(plain(tool)) for tool in fields.get("tools") or ()]


def turns_of(message: Mapping[str, Any]) -> Iterator[Turn]:
    """A message's words, and each result it brings."""
    content = message["content"]
    blocks = [] if isinstance(content, str) else [plain(block) for block in content]
    for block in blocks:
        if block["type"] == "tool_result":
            yield Turn("tool", text_of(block.get("content")), block["tool_use_id"])
    words = content if isinstance(content, str) else text_of([block for block in blocks if not is_tool(block)])
    if words:
        yield Turn(message["role"], words)


def is_tool(block: Mapping[str, Any]) -> bool:
    return block["type"] in ("tool_result", "tool_use")


def schema(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool of the client's own in OpenAI's form; one that the provider runs has a name and no schema."""
    function = {"name": tool["name"], "description": tool.get("description", ""), "parameters": tool.get("input_schema", {})}
    return {"type": "function", "function": function}


def answer(message: Any) -> Answer:
    """Its words and calls."""
    text = "\n".join(block.text for block in message.content if block.type == "text")
    return Answer(text, tuple(Call(block.id, block.name, block.input) for block in message.content if block.type == "tool_use"))


def so_far(stream: Any) -> Answer | None:
    """What has come of a stream with the library's helpers; None before anything has."""
    try:
        return answer(stream.current_message_snapshot)
    except AssertionError:  # how the library says that nothing has
        return None


class Collector:
    """A streamed answer, put together."""

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}
        self.calls: dict[int, tuple[str, str]] = {}
        self.arguments: dict[int, str] = {}

    def add(self, event: Any) -> None:
        if event.type == "content_block_start" and event.content_block.type == "tool_use":
            self.calls[event.index] = (event.content_block.id, event.content_block.name)
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            self.texts[event.index] = self.texts.get(event.index, "") + event.delta.text
        elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            self.arguments[event.index] = self.arguments.get(event.index, "") + event.delta.partial_json

    def answer(self) -> Answer:
        calls = [Call(*call, parsed(self.arguments.get(index, ""))) for index, call in sorted(self.calls.items())]
        return Answer("\n".join(text for _, text in sorted(self.texts.items())), tuple(calls))
