"""What an agent tells its host, one JSON object a line: parsed here, so that a box cannot hand on what nobody expects."""

from __future__ import annotations

from typing import Any, Final

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    """A line of an agent's output."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry as the agent was served it."""

    key: str
    version: int
    value: Any
    why: str | None
    author: str
    box: str | None
    standing: str
    acting: bool
    confidence: float
    evidence: float


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """What an outcome did to one entry's confidence."""

    key: str
    version: int
    before: float
    after: float
    how: str = "served"


class Known(Event, frozen=True, kw_only=True, tag="known"):
    """A briefing."""

    known: int
    session: str
    entries: list[Entry]


class Ran(Event, frozen=True, kw_only=True, tag="run"):
    """One run of the suite."""

    number: int
    settings: dict[str, str]
    load: bool
    passed: bool
    exit_code: int
    failing: list[str]
    tests: int
    seconds: float


class Wrote(Event, frozen=True, kw_only=True, tag="wrote"):
    """A version of an entry."""

    key: str
    version: int
    supersedes: int | None
    value: Any
    why: str


class Looked(Event, frozen=True, kw_only=True, tag="history"):
    """Every version of an entry, oldest first."""

    key: str
    versions: list[Entry]


class Committed(Event, frozen=True, kw_only=True, tag="outcome"):
    """What the agent says it came to."""

    ref: str
    type: str
    session: str
    exit_code: int
    moved: list[Move]
    trainable: bool


class Stopped(Event, frozen=True, kw_only=True, tag="stopped"):
    """Why the agent could not go on."""

    message: str


DECODER: Final = msgspec.json.Decoder(Known | Ran | Wrote | Looked | Committed | Stopped)


def parsed(line: bytes) -> Event | None:
    """The event on this line, or None if it is none."""
    try:
        event: Event = DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return event


def as_json(event: msgspec.Struct) -> dict[str, Any]:
    """The event without its name, for whoever knows what it is."""
    told: dict[str, Any] = msgspec.to_builtins(event)
    told.pop("event", None)
    return told
