"""Entries whose text matches, the most relevant first; standing and confidence only decide between equals.

Under an entity the ranking is exact over what is below it and what it inherits. Without one the engine's index picks the matches,
which the same code then ranks. Superseded versions never compete; expired ones are left out and counted.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from herdbook.base import limits
from herdbook.base.errors import HerdbookError, InvalidRequest, TooLarge, Unavailable
from herdbook.base.text import entity_path, whole_characters
from herdbook.fastloop.candidates import (
    HEAD,
    NAME,
    ORDER,
    UNITS,
    VERSION_ID,
    Candidate,
    Gathered,
    Row,
    candidate,
    head_row,
    judge,
    scale_of,
)
from herdbook.fastloop.features import as_text
from herdbook.fastloop.kept import Scene
from herdbook.fastloop.ordering import Ordered, Orderer, explained
from herdbook.fastloop.scope import question_of
from herdbook.fastloop.sources import Record, SearchRequest, reach
from herdbook.fastloop.text import words_of
from herdbook.fastloop.view import entry_view
from herdbook.record.trust import acts
from herdbook.record.tunables import EVERYWHERE, Tuning
from herdbook.record.types import HeadRow, Served, Shown, Version

INDEX_BATCH: Final = 500
INDEX_BATCHES_MAX: Final = 40  # one search indexes at most so much of what others wrote; the answer says when more is waiting
MATCHES_MAX: Final = 400  # of the engine, the best by its own rank; each costs a look at its text and its trust
NEAREST_MAX: Final = 200
MATCH_TOKENS_MAX: Final = 64
SCORE_DIGITS: Final = 6
TIERS: Final = {"corroborated": 0, "observed": 1, "unproven": 2, "contested": 3, "retired": 4}  # between equals
FAILED_MIN: Final = 0.5  # of credit, lately: what never stood and failed comes behind what stands


@dataclass(frozen=True, slots=True)
class Searched:
    """The answer, and what it showed."""

    answer: dict[str, Any]
    exposures: list[Shown]
    serving: Served


@dataclass(frozen=True, slots=True)
class Look:
    """What one search asks, its bounds checked."""

    tenant: int
    query: str
    entity: str | None
    now: int
    tuning: Tuning
    wanted: int | None  # so many of the first are enough
    paths: Sequence[str]


@dataclass(frozen=True, slots=True)
class Found:
    """What came of it, before it is cut to its limit."""

    ordered: Ordered
    gathered: Gathered
    behind: bool = False  # whether the engine's index was still behind the record


@dataclass(slots=True)
class Searcher:
    """Searches one record; share its orderer with the Briefer, so that a version is tokenised and embedded once."""

    record: Record
    orderer: Orderer = field(default_factory=Orderer)
    indexing: threading.Lock = field(default_factory=threading.Lock)

    def search(self, tenant: int, request: SearchRequest, *, now: int) -> Searched:
        """The best `limit` matches under `entity`, or of everything the key reaches."""
        check(request)
        entity = None if request.entity is None else entity_path(request.entity)
        tuning = self.record.tuning(tenant, entity or EVERYWHERE)
        paths = (
            self.record.reached_paths(tenant) if entity is None else self.record.paths_below(tenant, entity) + reach(entity)[1:]
        )
        look = partial(Look, tenant, request.query, entity, now, tuning, None if request.explain else request.limit * 2)
        found = self.matched(look(())) if paths is None else self.inside(look(paths))
        ordered, gathered = found.ordered, found.gathered
        matches = ordered.rows if ordered.matched else []
        shown = self.shown(tenant, best_matches(matches, request.limit))
        answer = {
            "query": request.query,
            "entity": entity,
            "results": self.results(shown, ordered, explain=request.explain),
            "tracked": request.session is not None,
            "searched": gathered.known,
            "left_out": {
                "expired": len(gathered.expired),
                "limit": ordered.behind + len(matches) - len(shown) if matches else 0,
                "unindexed": found.behind,
            },
            "refused": gathered.refusals(),
            "ranking": ordered.said(),
        }
        return Searched(answer, exposed(shown, ordered), Served(entity, "search", "on", ordered.policy, gathered.known))

    def results(self, shown: list[Candidate], ordered: Ordered, *, explain: bool) -> list[dict[str, Any]]:
        why = explained(ordered, [match.version_id for match in shown]) if explain else {}
        found = []
        for rank, match in enumerate(shown, start=1):
            base = ordered.scale.bases.get(match.version.path, 0.5)
            view = entry_view(match.version, match.head, now=ordered.now, base=base, base_days=ordered.tuning.half_life_days)
            view["rank"], view["score"] = rank, round(-match.order / UNITS, SCORE_DIGITS)
            if explain:
                view["explain"] = why.get(match.version_id)
            found.append(view)
        return found

    def inside(self, look: Look) -> Found:
        """What is known at these paths, all of it looked at; what has faded is still found by who looks for it."""
        kept = self.orderer.kept.of(("search", look.tenant, self.record.reach, *look.paths), floor=0.0, place_of=in_tier)
        scale = scale_of(self.record, look.tenant, look.paths, look.tuning)
        with kept.turn:
            kept.follow(self.record, look.tenant, look.paths, now=look.now, scale=scale)
            gathered = Gathered(known=len(kept.heads), expired=list(kept.expired.values()), refused=list(kept.refused.values()))
            ordered = self.orderer.first(
                look.tenant,
                Scene(kept, gathered, [], set()),
                look.query,
                asked=look.entity or "",
                now=look.now,
                scale=scale,
                tuning=look.tuning,
                wanted=look.wanted,
                standing_stays=False,
            )
        self.orderer.kept.tidy()
        return Found(ordered, gathered)

    def matched(self, look: Look) -> Found:
        """What the engine's index finds in the whole record, ranked by the same code."""
        tenant, behind = look.tenant, self.catch_up(look.tenant)
        heads = self.indexed(tenant, look.query, behind=behind)
        gathered = Gathered(known=len(heads))
        versions = self.record.versions(tenant, [row[0] for row in heads])
        paths = sorted({version.path for version in versions.values() if isinstance(version, Version)})
        scale = scale_of(self.record, tenant, paths, look.tuning)
        judge(heads, versions, gathered, now=look.now, floor=0.0, scale=scale)
        ordered = self.orderer.order(
            tenant, gathered.rows, look.query, asked="", now=look.now, scale=scale, tuning=look.tuning, standing_stays=False
        )
        return Found(ordered, gathered, behind)

    def indexed(self, tenant: int, query: str, *, behind: bool) -> list[HeadRow]:
        """The current versions that the engine's index, or the scan of vectors, finds."""
        matches = self.record.text_match(tenant, question_of(query).tokens[:MATCH_TOKENS_MAX], MATCHES_MAX)
        if not isinstance(self.orderer.semantics, str):
            matches = list(dict.fromkeys([*matches, *self.orderer.semantics.nearest(tenant, query, NEAREST_MAX)]))
        trusts = self.record.trust_of(tenant, matches) if matches else {}
        if behind and trusts:
            # An index that lags may still hold what was superseded since.
            current = {row[0] for row in self.record.heads(tenant, sorted({head.path for head in trusts.values()}))}
            matches = [version_id for version_id in matches if version_id in current]
        return [head_row(trusts[version_id]) for version_id in matches if version_id in trusts]

    def catch_up(self, tenant: int) -> bool:
        """Bring the engine's index up to the record, in batches; True when there is still more."""
        with self.indexing:
            try:
                return not any(self.indexed_all(tenant) for _ in range(INDEX_BATCHES_MAX))
            except Unavailable:
                return True  # a full disk or a busy writer stops the index, not the reader

    def indexed_all(self, tenant: int) -> bool:
        """Index one batch; True when there was none."""
        ids = self.record.text_behind(tenant, INDEX_BATCH)
        if ids:
            found = self.record.versions(tenant, ids)
            # A version whose seal is broken gets an empty row: it is not found, and does not hold up the others.
            self.record.text_add(tenant, [(version_id, index_text(found[version_id])) for version_id in ids])
        return not ids

    def shown(self, tenant: int, rows: list[Row]) -> list[Candidate]:
        """These rows with their trust in full."""
        heads = self.record.trust_of(tenant, [row[VERSION_ID] for row in rows])
        return [candidate(row, heads[row[VERSION_ID]]) for row in rows if row[VERSION_ID] in heads]


def exposed(shown: list[Candidate], ordered: Ordered) -> list[Shown]:
    rows = {row[VERSION_ID]: row for row in ordered.rows}
    return [
        Shown(match.version_id, rank, "search", features=as_text(ordered.numbers(rows[match.version_id])))
        for rank, match in enumerate(shown, start=1)
    ]


def best_matches(matches: list[Row], limit: int) -> list[Row]:
    """The first in order: relevance comes before standing here, and the block of a briefing does not count.

    Only what never stood and failed lately comes behind everything that stands, however well it is worded.
    """
    if len(matches) > limit * 2:  # only those that can be among them are put in order
        bound = sorted([row[ORDER] for row in matches if not fell(row)] or [0])[:limit][-1]
        matches = [row for row in matches if row[ORDER] <= bound]
    return sorted(matches, key=lambda row: (fell(row), row[ORDER], TIERS[row[NAME]], row[2:5]))[:limit]


def in_tier(row: Row) -> tuple[int, int]:
    """What fell comes behind all others; between equals standing decides."""
    return int(fell(row)), TIERS[row[NAME]]


def fell(row: Row) -> bool:
    return bool(row[HEAD][7] >= FAILED_MIN and not acts(row[NAME]))


def check(request: SearchRequest) -> None:
    if not request.query.strip():
        raise InvalidRequest("the query is empty: say what to look for, or use `list`")
    whole_characters(request.query, what="query")
    if len(request.query) > limits.QUERY_CHARS_MAX:
        raise TooLarge(f"the query has {len(request.query)} characters, the limit is {limits.QUERY_CHARS_MAX}")
    if not 1 <= request.limit <= limits.PAGE_MAX:
        raise InvalidRequest(f"limit must be between 1 and {limits.PAGE_MAX}, got {request.limit}")


def index_text(version: Version | HerdbookError) -> str:
    return "" if isinstance(version, HerdbookError) else " ".join(words_of(version))
