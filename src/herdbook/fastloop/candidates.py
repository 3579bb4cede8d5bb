"""What a briefing may choose from: the entries of a path and its ancestors, judged and put in order.

Order: dead ends, contested entries, then the rest by standing, relevance to the task, effective confidence, recency. What is
expired, faded, shadowed or not about the task is set aside and counted; a version whose seal is broken is refused, and said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import log1p
from operator import itemgetter
from typing import Any, Final, NamedTuple

from herdbook.base.errors import HerdbookError
from herdbook.fastloop.decay import BASE_MICROSECONDS, FLOOR, OUTCOME_FACTOR
from herdbook.fastloop.scope import StatsCache
from herdbook.fastloop.sources import Record
from herdbook.record.trust import acts, standing, standing_of
from herdbook.record.types import Head, HeadRow, Version

DEAD_ENDS, CONTESTED, ENTRIES = range(3)  # the blocks of a briefing, in order
BLOCKS: Final = 3
TIERS: Final = {"corroborated": 0, "observed": 1, "unproven": 2, "contested": 3, "retired": 4}
TIER_COUNT: Final = len(TIERS) + 1
OFF_TASK: Final = TIER_COUNT - 1  # the tier behind all: what stands although the task's words do not touch it

Versions = dict[int, Version | HerdbookError]
Newer = dict[int, int | None]  # by the standing version: the number of the one it is served beside


# A candidate before anything asks for it by name: a thousand plain tuples are what a briefing has time for. See Candidate.
Row = tuple[int, int, float, float, int, int, str, Version, HeadRow, int | None]
IRRELEVANCE: Final = 2  # places in a Row
FADING: Final = 3


class Candidate(NamedTuple):
    """One version that may be shown. The leading fields are its place in the order, smallest first."""

    block: int
    tier: int
    irrelevance: float  # minus the relevance to the task; 0.0 when there is none
    fading: float  # minus the effective confidence
    staleness: int  # minus the time it was written or last affirmed
    version_id: int  # unique, so that a comparison never gets beyond it
    standing: str
    version: Version
    head: Head
    instead_of: int | None  # number of the newer version that does not stand


def candidate(row: Row, head: Head) -> Candidate:
    """The row with all that is known of its claim. What it was judged by stays, should the claim have moved meanwhile."""
    _, _, confidence, moves, recalls, observed, corroborated, failed_since, affirmed_at = row[8]
    if row[8] != head_row(head):
        head = head._replace(
            confidence=confidence,
            moves=moves,
            recalls=recalls,
            observed=observed,
            corroborated=corroborated,
            failed_since=failed_since,
            affirmed_at=affirmed_at,
        )
    return Candidate(*row[:8], head, row[9])


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


def gather(record: Record, tenant: int, paths: Sequence[str], *, now: int) -> Gathered:
    """The entries of these paths as they stand now; a standing version is served beside a newer one that does not stand yet."""
    heads = record.heads(tenant, paths)
    gathered = Gathered(known=len(heads))
    older = {row[1]: row[0] for row in heads if row[1] is not None and row[1] != row[0]}
    versions = record.versions(tenant, [row[0] for row in heads] + list(older))
    judge(heads, versions, gathered, now=now, floor=FLOOR)
    if older:
        enough = {row[5] for row in gathered.rows if acts(row[6])}  # current versions that stand need none beside them
        older = {version_id: current_id for version_id, current_id in older.items() if current_id not in enough}
        trusts = record.trust_of(tenant, list(older))
        add_standing(trusts, older, versions, gathered, now=now)
        earlier = before_those(record, tenant, trusts, older)
        if earlier:
            versions |= record.versions(tenant, list(earlier))
            add_standing(record.trust_of(tenant, list(earlier)), earlier, versions, gathered, now=now)
    set_shadowed_aside(gathered, paths[0])
    return gathered


def judge(
    heads: Iterable[HeadRow], versions: Versions, gathered: Gathered, *, now: int, floor: float, newer: Newer | None = None
) -> None:
    """Give each head's version its place. This runs for every entry of a path, so it does as little as it can for each."""
    keep, half_lives, tiers = gathered.rows.append, BASE_MICROSECONDS, TIERS
    for row in heads:
        version_id, standing_id, confidence, moves, recalls, observed, corroborated, failed_since, affirmed_at = row
        version = versions[version_id]
        if isinstance(version, HerdbookError):
            gathered.refused.append(version)
            continue
        expires_at, at, kind = version.expires_at, version.at, version.kind
        if expires_at is not None and expires_at <= now:
            gathered.expired.append(version)
            continue
        if affirmed_at is not None and affirmed_at > at:
            at = affirmed_at
        effective = confidence
        if at < now:  # as `effective_now` says it, without the call
            half_life = half_lives[kind] * (1.0 + log1p(recalls))
            effective *= 0.5 ** ((now - at) / (half_life * OUTCOME_FACTOR if moves else half_life))
        name = standing_of(observed, corroborated, failed_since) if observed or corroborated or failed_since else "unproven"
        if (name == "observed" or name == "corroborated") and (standing_id is None or version_id > standing_id):
            name = "unproven"  # as `trust.earned` says it, without the call
        if effective < floor and name == "unproven":
            gathered.faded.append(version)
            continue
        block = ENTRIES
        if kind == "experience" and version.worked is False:
            block = DEAD_ENDS
        elif name == "contested":
            block = CONTESTED
        instead_of = None if newer is None else newer[version_id]
        keep((block, tiers[name], 0.0, -effective, -at, version_id, name, version, row, instead_of))


def add_standing(trusts: dict[int, Head], older: dict[int, int], versions: Versions, gathered: Gathered, *, now: int) -> None:
    """Superseding never empties what is known: until the newer claim stands, the last one that does is served as well."""
    newer: Newer = {}
    for version_id, current_id in older.items():
        current = versions[current_id]
        newer[version_id] = None if isinstance(current, HerdbookError) else current.number
    standing_still = [head_row(trust) for trust in trusts.values() if acts(standing(trust))]
    judge(standing_still, versions, gathered, now=now, floor=FLOOR, newer=newer)


def before_those(record: Record, tenant: int, trusts: dict[int, Head], older: dict[int, int]) -> dict[int, int]:
    """Where what stood last has failed since: what stood before it and still does, for the same current versions."""
    fallen = [version_id for version_id, trust in trusts.items() if not acts(standing(trust))]
    found = record.stood_before(tenant, fallen) if fallen else {}
    return {before: older[version_id] for version_id, before in found.items()}


def set_shadowed_aside(gathered: Gathered, path: str) -> None:
    """The more specific path wins, except that nothing unproven hides an ancestor's entry that stands: both are shown then."""
    keys = {row[7].key for row in gathered.rows if row[7].path != path}
    if not keys:
        return
    rivals: dict[str, list[Row]] = {}
    for row in [row for row in gathered.rows if row[7].key in keys]:
        rivals.setdefault(row[7].key, []).append(row)
    shadowed = {loser[5]: loser[7] for same_key in rivals.values() if len(same_key) > 1 for loser in losers(same_key)}
    if shadowed:
        gathered.shadowed = list(shadowed.values())
        gathered.rows = [row for row in gathered.rows if row[5] not in shadowed]


def losers(rivals: Sequence[Row]) -> list[Row]:
    """Of candidates with one key, those that a deeper path hides; of paths on one line, the longer is the deeper."""
    deepest = max(len(row[7].path) for row in rivals)
    deepest_acting = max((len(row[7].path) for row in rivals if acts(row[6])), default=0)
    return [row for row in rivals if len(row[7].path) < (deepest_acting if acts(row[6]) else deepest)]


def narrow(gathered: Gathered, tenant: int, task: str, cache: StatsCache) -> bool:
    """Keep what the task's words touch, the most relevant first within a standing, and behind it whatever stands.

    A setting that every run needs seldom names the task, and an agent acts on it: words alone must not take it away. Where the
    words touch nothing, all is kept, and that is said.
    """
    scores = cache.rank(tenant, task, [row[7] for row in gathered.rows])
    gathered.task_matched = any(scores)
    if gathered.task_matched:
        gathered.off_task = [
            row[7] for row, score in zip(gathered.rows, scores, strict=True) if score == 0.0 and not acts(row[6])
        ]
        gathered.rows = relevant(gathered.rows, scores)
    return gathered.task_matched


def relevant(rows: Sequence[Row], scores: Sequence[float]) -> list[Row]:
    """The rows that matched, with their relevance in its place, and those that stand, behind them."""
    return [
        (block, tier if score > 0.0 else OFF_TASK, -score, fading, staleness, version_id, name, version, head, instead_of)
        for (block, tier, _, fading, staleness, version_id, name, version, head, instead_of), score in zip(
            rows, scores, strict=True
        )
        if score > 0.0 or acts(name)
    ]


def best_first(rows: Sequence[Row], count: int, *, by: int) -> list[Row]:
    """All rows, each block in order as far as `count` of it; those behind come in any order, since no budget gets there.

    `by` is the field that first tells rows of a block and a standing apart.
    """
    tiers: list[list[Row]] = [[] for _ in range(BLOCKS * TIER_COUNT)]
    for row in rows:
        tiers[row[0] * TIER_COUNT + row[1]].append(row)
    ordered: list[Row] = []
    for block in range(BLOCKS):
        wanted = count
        for tier in tiers[block * TIER_COUNT : (block + 1) * TIER_COUNT]:
            ordered += best_of_tier(tier, wanted, by=by)
            wanted -= len(tier)
    return ordered


def best_of_tier(tier: list[Row], wanted: int, *, by: int) -> list[Row]:
    """The first `wanted` in order and the others behind them: sorting numbers costs a fraction of sorting rows."""
    if wanted <= 0:
        return tier
    if wanted >= len(tier):
        return sorted(tier)
    numbers: list[float] = list(map(itemgetter(by), tier))
    bound = sorted(numbers)[wanted - 1]
    first = [row for row, number in zip(tier, numbers, strict=True) if number <= bound]
    return sorted(first) + [row for row, number in zip(tier, numbers, strict=True) if number > bound]
