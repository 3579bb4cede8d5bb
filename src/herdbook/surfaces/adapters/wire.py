"""What a conversation with a model is made of, whichever library carries it."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Turn(NamedTuple):
    """One message of a request: who said what, or which call it answers."""

    role: str
    text: str
    answers: str | None = None  # the id of a call


class Call(NamedTuple):
    """A tool the model wants to use."""

    ident: str
    name: str
    args: Any


class Answer(NamedTuple):
    """What came back."""

    text: str
    calls: tuple[Call, ...] = ()


def parsed(arguments: str) -> Any:
    """Arguments as the model wrote them; what is not JSON stays a text."""
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments


def plain(part: Any) -> dict[str, Any]:
    """A message or a block as a dict, whether it was written by hand or came from the library."""
    found: dict[str, Any] = part if isinstance(part, dict) else part.model_dump()
    return found


def text_of(content: Any) -> str:
    """The words of a message's content; pictures and files are named by their type only."""
    if content is None or isinstance(content, str):
        return content or ""
    parts = [plain(part) for part in content]
    return "\n".join(part["text"] if part.get("type") in ("text", None) else f"[{part['type']}]" for part in parts)
