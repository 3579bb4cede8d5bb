"""What a briefing may choose from: the entries of a path and its ancestors, judged, each with its place in the order.

Order: dead ends, contested entries, then the rest; within each by score, which is relevance times what age and evidence make of
it. What is expired, faded, shadowed or not about the task is set aside and counted; a version whose seal is broken is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log1p
from operator import itemgetter
from typing import Any, Final, NamedTuple

from herdbook.base.errors import Erased, HerdbookError
from herdbook.fastloop.decay import FLOOR, OUTCOME_FACTOR, half_lives
from herdbook.fastloop.sources import Record
from herdbook.record.trust import EVIDENCE_SHRINK, acts, standing, standing_of
from herdbook.record.tunables import DEFAULT, Tuning
from herdbook.record.types import Head, HeadRow, Version

DEAD_ENDS, CONTESTED, ENTRIES, ANYWAY = range(4)  # the blocks of a briefing, in order; the last: what stands off the task
BLOCKS: Final = 4
UNITS: Final = 1e9  # scores are ordered as whole numbers of so many parts
GRAIN: Final = 1000  # of which age and evidence count so many at once: what differs by less is equal, and confidence decides

COARSE: Final = UNITS / GRAIN

Versions = dict[int, Version | HerdbookError]
Newer = dict[int, int | None]  # by the standing version: the number of the one it is served beside


# A candidate before anything asks for it by name: a thousand plain tuples are what a briefing has time for. See Candidate.
Row = tuple[int, int, float, int, int, str, Version, HeadRow, int | None, float]
# places in a Row
BLOCK: Final = 0
ORDER: Final = 1
FADING: Final = 2
STALENESS: Final = 3
VERSION_ID: Final = 4
NAME: Final = 5
VERSION: Final = 6
HEAD: Final = 7
FRESH: Final = 9  # what age makes of a relevance of one; evidence makes the order of it


class Candidate(NamedTuple):
    """One version that may be shown. The leading fields are its place in the order, smallest first."""

    block: int
    order: int  # minus the score, in UNITS
    fading: float  # minus the effective confidence
    staleness: int  # minus the time it was written or last affirmed
    version_id: int  # unique, so that a comparison never gets beyond it
    standing: str
    version: Version
    head: Head
    instead_of: int | None  # number of the newer version that does not stand


class Scale(NamedTuple):
    """What scores are measured by, at one path."""

    bases: Mapping[str, float]  # how often each entity's runs succeed at all
    evidence_lambda: float
    freshness_span: float
    half_lives: Mapping[str, float]  # by kind, in microseconds


def scale_of(record: Record, tenant: int, paths: Sequence[str], tuning: Tuning) -> Scale:
    bases = record.base_rates(tenant, paths)
    return Scale(bases, tuning.evidence_lambda, tuning.freshness_span, half_lives(tuning.half_life_days))


PLAIN: Final = Scale({}, DEFAULT.evidence_lambda, DEFAULT.freshness_span, half_lives(DEFAULT.half_life_days))


def candidate(row: Row, head: Head) -> Candidate:
    """The row with all that is known of its claim. What it was judged by stays, should the claim have moved meanwhile."""
    block, order, fading, staleness, version_id, name, version, judged, instead_of, _ = row
    if judged != head_row(head):
        was: dict[str, Any] = dict(zip(JUDGED_BY, judged[2:], strict=True))
        head = head._replace(**was)
    return Candidate(block, order, fading, staleness, version_id, name, version, head, instead_of)


JUDGED_BY: Final = (
    "confidence",
    "moves",
    "recalls",
    "observed",
    "corroborated",
    "failed_since",
    "affirmed_at",
    "held",
    "failed",
)


def head_row(head: Head) -> HeadRow:
    """What of a head decides its place."""
    return (
        head.version_id,
        head.standing_id,
        head.confidence,
        head.moves,
        head.recalls,
        head.observed,
        head.corroborated,
        head.failed_since,
        head.affirmed_at,
        head.held,
        head.failed,
    )


@dataclass(slots=True)
class Gathered:
    """Everything that was seen on the way to a briefing: nothing is dropped silently."""

    known: int = 0
    rows: list[Row] = field(default_factory=list)
    faded: list[Version] = field(default_factory=list)
    expired: list[Version] = field(default_factory=list)
    shadowed: list[Version] = field(default_factory=list)
    off_task: list[Version] = field(default_factory=list)
    refused: list[HerdbookError] = field(default_factory=list)
    task_matched: bool = True  # False: nothing names the task, so nothing was narrowed
    behind: int = 0  # candidates that come after those in `rows`, where no budget gets
    passed_over: int = 0  # entries not about the task, beside those in `off_task`

    def refusals(self) -> list[dict[str, Any]]:
        """Each entry that is not served because what is stored is not what was written."""
        return [
            {
                "entity": problem.details.get("entity"),
                "key": problem.details.get("key"),
                "version": problem.details.get("version"),
                "code": problem.code,
                "message": problem.message,
            }
            for problem in self.refused
        ]


def judge(
    heads: Iterable[HeadRow],
    versions: Versions,
    gathered: Gathered,
    *,
    now: int,
    floor: float,
    scale: Scale = PLAIN,
    newer: Newer | None = None,
) -> None:
    """Give each head's version its place. This runs for every entry of a path, so it does as little as it can for each.

    The score is what age and evidence make of a relevance of one; `weigh` puts another relevance in.
    """
    keep, (bases, strength, span, half_lives) = gathered.rows.append, scale
    for row in heads:
        version_id, standing_id, confidence, moves, recalls, observed, corroborated, failed_since, affirmed_at, held, failed = row
        version = versions[version_id]
        if isinstance(version, HerdbookError):
            if not isinstance(version, Erased):  # which is told to nobody, also not that it was
                gathered.refused.append(version)
            continue
        expires_at, at, kind = version.expires_at, version.at, version.kind
        if expires_at is not None and expires_at <= now:
            gathered.expired.append(version)
            continue
        if affirmed_at is not None and affirmed_at > at:
            at = affirmed_at
        effective, fresh = confidence, 1.0
        if at < now:  # as `effective_now` says it, without the call
            half_life = half_lives[kind] * OUTCOME_FACTOR if moves else half_lives[kind]
            age = (now - at) / half_life
            effective *= 0.5 ** (age / (1.0 + log1p(recalls)))
            fresh -= span * (1.0 - 0.5**age)  # reads keep what is shown alive, but popularity never ranks
        name = standing_of(observed, corroborated, failed_since) if observed or corroborated or failed_since else "unproven"
        if (name == "observed" or name == "corroborated") and (standing_id is None or version_id > standing_id):
            name = "unproven"  # as `trust.earned` says it, without the call
        if effective < floor and name == "unproven":
            gathered.faded.append(version)
            continue
        score = fresh
        if held or failed:  # as `trust.evidence` says it, without the call
            base = bases.get(version.path, 0.5)
            score *= exp(strength * (held * (1.0 - base) - failed * base) / (held + failed + EVIDENCE_SHRINK))
        block = ENTRIES
        if kind == "experience" and version.worked is False:
            block = DEAD_ENDS
        elif name == "contested":
            block = CONTESTED
        instead_of = None if newer is None else newer[version_id]
        keep((block, -int(score * COARSE + 0.5) * GRAIN, -effective, -at, version_id, name, version, row, instead_of, fresh))


def rebased(row: Row, scale: Scale) -> Row:
    """The row as `judge` gives it at another base rate of its entity, which is all that may have changed."""
    held, failed = row[HEAD][9:11]
    if not held and not failed:
        return row
    base = scale.bases.get(row[VERSION].path, 0.5)
    score = row[FRESH] * exp(scale.evidence_lambda * (held * (1.0 - base) - failed * base) / (held + failed + EVIDENCE_SHRINK))
    return reordered(row, -int(score * COARSE + 0.5) * GRAIN)


def reordered(row: Row, order: int) -> Row:
    block, _, fading, staleness, version_id, name, version, head, instead_of, fresh = row
    return (block, order, fading, staleness, version_id, name, version, head, instead_of, fresh)


def add_standing(
    trusts: dict[int, Head], older: dict[int, int], versions: Versions, gathered: Gathered, *, now: int, scale: Scale
) -> None:
    """Superseding never empties what is known: until the newer claim stands, the last one that does is served as well."""
    newer: Newer = {}
    for version_id, current_id in older.items():
        current = versions[current_id]
        newer[version_id] = None if isinstance(current, HerdbookError) else current.number
    standing_still = [head_row(trust) for trust in trusts.values() if acts(standing(trust))]
    judge(standing_still, versions, gathered, now=now, floor=FLOOR, scale=scale, newer=newer)


def before_those(record: Record, tenant: int, trusts: dict[int, Head], older: dict[int, int]) -> dict[int, int]:
    """Where what stood last has failed since: what stood before it and still does, for the same current versions."""
    fallen = [version_id for version_id, trust in trusts.items() if not acts(standing(trust))]
    found = record.stood_before(tenant, fallen) if fallen else {}
    return {before: older[version_id] for version_id, before in found.items()}


def losers(rivals: Sequence[Row]) -> list[Row]:
    """Of candidates with one key, those that a deeper path hides; of paths on one line, the longer is the deeper."""
    deepest = max(len(row[VERSION].path) for row in rivals)
    deepest_acting = max((len(row[VERSION].path) for row in rivals if acts(row[NAME])), default=0)
    return [row for row in rivals if len(row[VERSION].path) < (deepest_acting if acts(row[NAME]) else deepest)]


def best_first(rows: Sequence[Row], count: int) -> list[Row]:
    """The first so many rows of each block, in order; no budget gets to the others."""
    blocks: list[list[Row]] = [[] for _ in range(BLOCKS)]
    for row in rows:
        blocks[row[0]].append(row)
    return [row for block in blocks for row in best_of_block(block, count)]


def best_of_block(block: list[Row], wanted: int) -> list[Row]:
    """The first `wanted` in order: sorting numbers costs a fraction of sorting rows."""
    if wanted >= len(block):
        return sorted(block)
    orders = list(map(itemgetter(ORDER), block))
    bound = sorted(orders)[wanted - 1]
    return sorted(row for row, order in zip(block, orders, strict=True) if order <= bound)[:wanted]
