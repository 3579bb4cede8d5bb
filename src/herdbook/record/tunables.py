"""What may be tuned per tenant and entity path, with bounds and defaults, and which of several settings holds. Pure: no I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

from herdbook.record import trust

EVERYWHERE: Final = ""  # the path of the tenant itself
MULTIPLIER: Final = "multiplier_"
NO_RANKER: Final = "none"

Value = float | str


@dataclass(frozen=True, slots=True)
class Tuning:
    """What holds at one path. The multipliers are not here: the trigger that moves trust looks them up itself."""

    fusion: str = "relevance"
    evidence_lambda: float = 2.0
    effect_weight: float = 4.0
    keyword_weight: float = 0.5
    precedent_weight: float = 1.0
    freshness_span: float = 0.1
    rrf_k: float = 60.0
    rrf_semantic: float = 0.4
    rrf_keyword: float = 0.2
    rrf_temporal: float = 0.2
    rrf_confidence: float = 0.2
    ranker: str = NO_RANKER
    ranker_weight: float = 0.3
    holdback: float = 0.0
    control: float = 0.0
    credit_used: float = 1.0
    credit_opened: float = 0.5
    credit_shown: float = 0.2
    half_life_days: float = 30.0


DEFAULT: Final = Tuning()


class Tunable(NamedTuple):
    """What one name means and takes."""

    meaning: str
    low: float = 0.0
    high: float = 1.0
    words: tuple[str, ...] = ()  # of a name that is set to one of these


TUNABLES: Final[Mapping[str, Tunable]] = {
    "fusion": Tunable("the ranking rule: relevance first, or the reciprocal ranks of the seeds", words=("relevance", "rrf")),
    "evidence_lambda": Tunable("how strongly evidence moves the order: relevance x exp(lambda x evidence)", high=20.0),
    "effect_weight": Tunable("what helped runs here whatever they were asked, beside the cosine, in the relevance", high=20.0),
    "keyword_weight": Tunable("keyword coverage beside the cosine, in the relevance", high=4.0),
    "precedent_weight": Tunable("what runs with such a task came to use, beside the cosine, in the relevance", high=4.0),
    "freshness_span": Tunable("the part of the relevance that age may take away", high=0.5),
    "rrf_k": Tunable("the constant of reciprocal rank fusion", low=1.0, high=1000.0),
    "rrf_semantic": Tunable("the weight of the semantic leg in rrf"),
    "rrf_keyword": Tunable("the weight of the keyword leg in rrf"),
    "rrf_temporal": Tunable("the weight of the temporal leg in rrf"),
    "rrf_confidence": Tunable("the weight of the confidence leg in rrf"),
    "ranker": Tunable("the id of the promoted ranker, or none"),
    "ranker_weight": Tunable("the part of the score that the ranker has"),
    "holdback": Tunable("the probability that a briefing leaves one entry out, or shows another instead of one", high=0.5),
    "control": Tunable(
        "the probability that a run is told nothing of what is known: its success is what the record is measured by"
    ),
    "credit_used": Tunable("the credit of an entry that was declared used, or that a failed try used"),
    "credit_opened": Tunable("the credit of an entry that was shown and then read by its key, where nothing was declared used"),
    "credit_shown": Tunable("the credit of an entry that was served, where nothing was declared used"),
    "half_life_days": Tunable("the base of how confidence fades", low=0.5, high=3650.0),
} | {f"{MULTIPLIER}{name}": Tunable(f"what one {name} does to confidence", 0.01, 2.0) for name in trust.MULTIPLIERS}
DEFAULTS: Final[Mapping[str, Value]] = {each.name: getattr(DEFAULT, each.name) for each in fields(Tuning)} | {
    f"{MULTIPLIER}{name}": factor for name, factor in trust.MULTIPLIERS.items()
}
assert set(TUNABLES) == set(DEFAULTS), "every name has a meaning and a default"


def in_force(rows: Iterable[Sequence[Any]]) -> Tuning:
    """What holds, of rows of (path, name, value as JSON)."""
    given = {name: value for name, (value, _) in nearest(rows).items() if not name.startswith(MULTIPLIER)}
    return Tuning(**given) if given else DEFAULT


def credit_weights(tuning: Tuning) -> dict[str, float]:
    """The credit of a cause, by how an entry came to be one."""
    used, opened, shown = tuning.credit_used, tuning.credit_opened, tuning.credit_shown
    return {"used": used, "attempt": used, "opened": opened, "served": shown}


def line_of(path: str) -> list[str]:
    """The path and everything above it, down to the tenant itself."""
    parts = path.split("/") if path else []
    return ["/".join(parts[:count]) for count in range(len(parts), -1, -1)]


def nearest(rows: Iterable[Sequence[Any]]) -> dict[str, tuple[Any, str]]:
    """Each name with its value and the path that sets it: the longest one wins, and a null passes on to the next."""
    found: dict[str, tuple[Any, str]] = {}
    for row in sorted(rows, key=lambda row: len(row[0])):
        if row[2] is not None and row[1] in TUNABLES:  # a name of a newer herdbook is not ours to apply
            found[row[1]] = json.loads(row[2]), row[0]
    return found
