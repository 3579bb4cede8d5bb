"""The words of a watch as types: what was seen, what it is called, what happened to its kind before, and what may follow.

Standard library only, Python >= 3.8: these files go into the box beside the actor. Nothing here does anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Line:
    """One thing a service logged; a traceback is one, with its lines inside."""

    text: str
    at: float = 0.0  # seconds since 1970; 0 where the source does not say
    revision: str = ""


@dataclass(frozen=True)
class RevisionState:
    """Which revision serves and how the newest one does. None and "" mean that the source cannot say."""

    serving: str = ""
    newest: str = ""
    newest_ready: bool | None = None  # at the end of what was watched
    old_serves: bool = False  # the one before kept serving while the newest was not ready
    detail: str = ""


@dataclass(frozen=True)
class KnownClass:
    """An entry that holds a label and the patterns of its logs, as the briefing served it."""

    entity: str
    key: str
    version: int
    label: str
    patterns: tuple[str, ...]
    standing: str = "unproven"
    confidence: float = 0.5
    fix: dict[str, Any] | None = None  # {"files": {path: text}}: what mended it before, if that is on record

    @property
    def acting(self) -> bool:
        """Whether it has earned to decide anything: what a box proposed is a hint until then."""
        return self.standing in ("observed", "corroborated")


@dataclass(frozen=True)
class Signals:
    """What a label rests on."""

    lines: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()  # names of the rules that matched, of every label
    seen: tuple[str, ...] = ()  # every label that anything here suggests
    ambiguous_with: tuple[str, ...] = ()


@dataclass(frozen=True)
class Classification:
    """What a window of logs was taken for, and the known class that it belongs to."""

    label: str
    signals: Signals = field(default_factory=Signals)
    matched: KnownClass | None = None


@dataclass(frozen=True)
class Instance:
    """One time that somebody acted on a class, and how that ended."""

    ref: str
    outcome: str  # as it stands after revisions
    version: int  # of the class
    attested: bool  # by somebody outside the box that acted
    at: str = ""

    @property
    def held(self) -> bool:
        return self.outcome == "success"


@dataclass(frozen=True)
class Verdict:
    """Whether a step may be taken, why, and what that rests on."""

    allowed: bool
    reason: str
    entries: tuple[str, ...] = ()  # "entity key version"
    outcomes: tuple[str, ...] = ()  # refs

    def as_dict(self) -> dict[str, Any]:
        return {
            "allowed": self.allowed,
            "reason": self.reason,
            "entries": list(self.entries),
            "outcomes": list(self.outcomes),
        }
