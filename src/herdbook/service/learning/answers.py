"""What the verbs of learning answer."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class Tuned(TypedDict):
    name: str
    value: float | str
    set_at: str | None  # the path that sets it, "everywhere", or null where the default holds
    default: float | str
    meaning: str


class TuningAnswer(TypedDict):
    entity: str | None
    tuning: list[Tuned]
    history: NotRequired[list[dict[str, Any]]]


class TuningSet(TuningAnswer):
    set: dict[str, float | str | None]
    at: str
    request_id: str


class ExposedRun(TypedDict):
    """One run with its last outcome."""

    session: str
    agent: str
    identity: str
    box: str | None
    entity: str | None
    task: str | None
    started_at: str
    ended_at: str | None
    outcome: dict[str, Any]
    servings: list[dict[str, Any]]  # its briefings and searches: asked, how, arm, policy, candidates
    attempts: list[dict[str, Any]]
    reads: list[dict[str, Any]]  # each version with rank, served, probability, features, used and credit


class ExposuresAnswer(TypedDict):
    forms: dict[str, list[str]]  # the names of the features, by the form at the end of a policy
    runs: list[ExposedRun]
    next: str | None


class Embedded(TypedDict):
    space: str | None  # model, dimensions and recipe: vectors of two spaces are never compared
    entries: int
    embedded: int
    waiting: int
    missing: str | None  # why there is no embedder
