"""A scenario: one small declarative file that says what world a fleet lives in. Unknown fields are refused by name."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

HERE = Path(__file__).parent
SCENARIOS = HERE / "scenarios"
Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0, le=1000)]


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file; every field has a default that means "none of this"."""


class Quirks(Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Things that have to be set right, which only trying reveals. A failed attempt names one that was wrong."""

    count: Count = 0  # an entity has so many
    needed: Count = 0  # a run touches so many of them
    choices: Annotated[int, Meta(ge=2, le=12)] = 4
    shared: Share = 0  # of the quirks: the same for all entities, and known at their common parent path
    dead_ends: bool = False  # what did not work is written down too


class Advice(Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Notes that change how likely an attempt is to succeed; no single run shows which of them it was."""

    base: Share = 1  # an attempt's chance without any advice, all quirks right
    spread: Share = 0  # entities differ by this much around it
    helpful: Count = 0
    neutral: Count = 0
    harmful: Count = 0
    effect: Share = 0.12  # what one helpful note adds
    harm: Share = 0.5  # the chance that a harmful one, followed, ends the run badly
    late: Share = 0  # of these notes: they arrive half-way


class Notes(Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Notes about quirks that are there before the first run."""

    right: Share = 0  # of the quirks: somebody has written the truth
    wrong: Share = 0  # of the quirks: somebody has written an error, sure of it


class Planted(Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Notes somebody plants who wants an agent to do harm."""

    first: Count = 0  # before this run of each entity; 0 plants none
    every: Count = 0  # and again after so many runs
    stuffed: bool = False  # with the words of every task in it
    claims: bool = False  # with made-up successes, unattested


class Change(Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From this run of each entity on, some quirks' right choice is another."""

    at: Count = 0
    share: Share = 0


class Agents(Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the fleet's agents behave, whichever policy briefs them."""

    follow: Share = 0.6  # of the advice an agent looks at, it follows so much
    attention: Count = 4  # it looks at so many pieces of advice, from the top
    blame: Share = 0.7  # of failed attempts that a note caused, the agent names the note
    cite: Share = 0.15  # of the neutral notes it looked at, an agent says it used so many
    writes: Share = 0.9  # of what it found out, it writes down so much
    mistakes: Share = 0.03  # of the runs end with a wrong lesson written down
    chatter: Share = 0.5  # of the runs leave a note that is of no use to anybody
    supersedes: Share = 0.6  # of corrections go to the wrong note's own key, the others to a key of the agent's
    names: Annotated[int, Meta(ge=1, le=5)] = 2  # so many keys are in use for one and the same quirk


class Scenario(Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of fleet."""

    name: str
    says: str
    entities: Annotated[int, Meta(ge=1, le=200)] = 4
    runs: Annotated[int, Meta(ge=1, le=2000)] = 100  # of each entity
    tokens: Annotated[int, Meta(ge=64, le=8000)] = 900
    attempts_max: Annotated[int, Meta(ge=1, le=50)] = 8
    minutes: float = 90  # between two runs of the fleet
    rewording: Share = 0  # of the words of a task: left out, another few each run, so that no task comes twice in the same words
    noise: Share = 0.05  # of the runs fail for reasons of their own
    quirks: Quirks = Quirks()
    advice: Advice = Advice()
    notes: Notes = Notes()
    planted: Planted = Planted()
    change: Change = Change()
    agents: Agents = Agents()


def load(path: Path) -> Scenario:
    """One scenario file. Raises ValueError that names the file and what is wrong in it."""
    try:
        found = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Scenario)
    except (msgspec.ValidationError, tomllib.TOMLDecodeError) as problem:
        raise ValueError(f"{path}: {problem}") from problem
    if found.quirks.needed > found.quirks.count:
        raise ValueError(f"{path}: a run cannot need more quirks than there are")
    return found


def shipped() -> dict[str, Path]:
    """The scenario files of this bench, by name."""
    return {path.stem: path for path in sorted(SCENARIOS.glob("*.toml"))}


def chosen(kinds: list[str]) -> list[Scenario]:
    """Scenarios by name or by path; all that ship, if none is named."""
    known = shipped()
    missing = [kind for kind in kinds if kind not in known and not Path(kind).is_file()]
    if missing:
        raise ValueError(f"there is no scenario {missing[0]!r}: name a file, or one of {', '.join(known)}")
    return [load(known[kind] if kind in known else Path(kind)) for kind in kinds or known]


class Topic(msgspec.Struct, frozen=True):
    """Something to stumble over."""

    task: str
    note: str
    choices: list[str]


def topics() -> dict[str, Topic]:
    """The vocabulary worlds are made from."""
    return msgspec.convert(tomllib.loads((HERE / "topics.toml").read_text(encoding="utf-8")), dict[str, Topic])
