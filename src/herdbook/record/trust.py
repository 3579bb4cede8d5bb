"""The arithmetic of trust. Pure: no I/O, no clock.

Confidence is what people see: multiplied by each outcome and clamped. Evidence is what ranks: additive, centred on zero, so that
an entry which only stood beside others in an entity where most runs succeed gains nothing from them. Standing is what gates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NewType, Protocol

from herdbook.base.errors import InvalidValue

Confidence = NewType("Confidence", float)

MULTIPLIERS: Final = {"success": 1.03, "minor_failure": 0.92, "failure": 0.90, "critical_failure": 0.85}
OUTCOME_TYPES: Final = tuple(MULTIPLIERS)
FRESH_CONFIDENCE: Final = 0.5
DEAD_END_CONFIDENCE: Final = 0.8
EVIDENCE_SHRINK: Final = 16.0  # pseudo-observations at the base rate: measured in docs/decisions/0026-effect-is-relevance.md
CONTESTED_FAILURES: Final = 2.0  # credit of failures in a row after which a claim is contested, whatever it earned before
STANDINGS: Final = ("unproven", "observed", "corroborated", "contested", "retired")


class Trusted(Protocol):
    """The counters standing is read from."""

    @property
    def observed(self) -> int: ...
    @property
    def corroborated(self) -> int: ...
    @property
    def held(self) -> float: ...
    @property
    def failed(self) -> float: ...
    @property
    def failed_since(self) -> float: ...


def confidence(x: object) -> Confidence:
    """The only door into the type. NaN fails every comparison, so it is refused here and never reaches a clamp."""
    if isinstance(x, bool) or not isinstance(x, int | float) or not 0.0 <= x <= 1.0:
        raise InvalidValue(f"confidence must be a number within [0, 1], got {x!r}")
    return Confidence(x + 0.0)  # -0.0 becomes 0.0: a store would give it back without its sign, and the seal would not hold


def moved(before: float, factor: float) -> float:
    """One outcome's move, clamped: successes saturate at certainty, failures floor at nothing."""
    return max(0.0, min(1.0, before * factor))


def fold(initial: float, factors: Iterable[float]) -> float:
    """Confidence after these outcomes in order of arrival. Clamping makes the order matter and forbids taking a move back."""
    x = initial
    for factor in factors:
        x = moved(x, factor)
    return x


def standing(trust: Trusted, *, expired: bool = False) -> str:
    """How far a claim may be relied on: see STANDINGS; failures in a row outweigh whatever it earned before."""
    if expired:
        return "retired"
    return standing_of(trust.observed, trust.corroborated, trust.failed_since)


def standing_of(observed: int, corroborated: int, failed_since: float) -> str:
    """The standing these counters give a claim that has not expired."""
    if failed_since >= CONTESTED_FAILURES:
        return "contested"
    if corroborated > 0:
        return "corroborated"
    return "observed" if observed > 0 else "unproven"


def earned(name: str, version: int, standing_version: int | None) -> str:
    """A version's own standing: a newer version that says the same for another reason has still to earn what its claim did.

    Otherwise a box could put words of its own, or an expiry, under a trust that others earned.
    """
    return "unproven" if acts(name) and (standing_version is None or version > standing_version) else name


def acts(standing_name: str) -> bool:
    """Whether a claim belongs to the acting set: observed or better."""
    return standing_name in ("observed", "corroborated")


def evidence(held: float, failed: float, base: float) -> float:
    """Credited outcomes minus what the entity's base rate would have given, shrunk: sum(credit x (success - base)) / (n + 16)."""
    assert 0.0 <= base <= 1.0 and held >= 0 and failed >= 0
    surplus = held * (1.0 - base) - failed * base
    return surplus / (held + failed + EVIDENCE_SHRINK) if math.isfinite(surplus) else 0.0


def base_rate(outcomes: int, successes: int) -> float:
    """How often tries at an entity succeed: its runs, and tries that failed within them.

    Shrunk towards a half by two imagined outcomes, so that the first one does not decide it.
    """
    return (successes + 1.0) / (outcomes + 2.0)
