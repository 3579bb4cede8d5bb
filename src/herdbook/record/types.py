"""What the record hands out: immutable versions, and the heads that carry the live trust of a claim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Version:
    """One immutable version of an entry, its seal already checked."""

    id: int
    entry_id: int
    claim: bytes
    path: str
    key: str
    number: int
    value_text: str  # canonical JSON
    why: str | None
    kind: str
    worked: bool | None
    stated: float  # the confidence its author gave
    applies_when: str | None
    expires_at: int | None
    links_text: str | None  # canonical JSON list
    origin: str
    author: str
    identity: str
    session: str | None
    box: str | None
    at: int
    sealed: bool  # False: the seal key is away, so the text is unverified


class Head(NamedTuple):
    """An entry and the trust of one of its claims: of the current one, unless a caller asked for another version's."""

    path: str
    key: str
    entry_id: int
    version_id: int
    standing_id: int | None  # the last version whose claim stands; may be the same
    claim: bytes
    confidence: float
    moves: int  # outcomes that moved this claim
    recalls: int
    observed: int  # attested successes of sessions that wrote it
    corroborated: int  # attested successes of other boxes that used it
    held: float  # credit of successes
    failed: float  # credit of failures
    failed_since: float  # credit of failures since it last held
    affirmed: int
    affirmed_at: int | None
    last_type: str | None
    last_ref: str | None
    last_at: int | None


# What of a Head decides its place, for every entry of a path at once: a named tuple each would cost more than asking for them.
# In order: version_id, standing_id, confidence, moves, recalls, observed, corroborated, failed_since, affirmed_at, held, failed.
HeadRow = tuple[int, int | None, float, int, int, int, int, float, int | None, float, float]


class Moved(NamedTuple):
    """Which entries of some paths have changed, and where the record stood."""

    stamp: int  # to ask from, the next time
    entries: int  # how many entries these paths have
    heads: dict[int, HeadRow]  # by entry


class Shown(NamedTuple):
    """One version that a session was shown, or that was withheld from it."""

    version_id: int
    rank: int  # 1 is first
    how: str  # briefing, read or search
    served: bool = True
    probability: float = 1.0  # of being served
    features: str | None = None  # a JSON list of numbers, as the ranking saw them


class Served(NamedTuple):
    """What the exposures of one briefing or search have in common."""

    asked: str | None  # the entity path; None for a search of everything
    how: str
    arm: str  # on, holdback or control
    policy: str  # the ranking rule, its ranker and the form of the features
    candidates: int


class Session(NamedTuple):
    """One run of one agent in one box."""

    id: str
    agent: str
    identity: str
    channel: str
    box: str | None
    entity: str | None
    task: str | None
    started_at: int
    ended_at: int | None  # as it was when first read; `trace` asks again
    reach: str | None  # the patterns of the key it was begun with; None: everything


class Stamp(NamedTuple):
    """Who writes, as the credential and the channel say it; never as a body says it."""

    tenant: int
    identity: str
    channel: str
    origin: str  # principal, operator, agent or external
    box: str | None
    attests: bool
    reach: str | None = None  # as Reach.written
