"""What the verbs answer that look back over many runs."""

from __future__ import annotations

from typing import Any, TypedDict


class Uplift(TypedDict):
    """Told minus control, with its 95 % interval; nulls where nothing can be compared."""

    estimate: float | None
    low: float | None
    high: float | None
    verdict: str  # helps, harms, or "not enough data"


class EntryEffect(TypedDict):
    entity: str
    key: str
    version: int
    effect: float  # on success, shrunk
    low: float
    high: float
    raw: float
    served: int
    withheld: int
    verdict: str


class Proof(TypedDict):
    entity: str | None
    runs: int
    told: int
    control: int
    uplift: dict[str, Uplift]  # success, attempts, seconds
    checks: dict[str, dict[str, Any]]  # overlap, time, placebo
    tokens: dict[str, float | None]  # what being told costs a run, about
    entries: list[EntryEffect]
    by_entity: list[dict[str, Any]]
    says: list[str]
