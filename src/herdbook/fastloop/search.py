"""Entries whose text matches, the most relevant first; standing and confidence only decide between equals.

Under an entity the ranking is exact over what is below it and what it inherits. Without one the engine's index picks the matches,
which the same code then ranks. Superseded versions never compete; expired ones are left out and counted.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
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
from herdbook.fastloop.ordering import Ordered, Orderer, explained
from herdbook.fastloop.scope import asked_tokens
from herdbook.fastloop.sources import Record, SearchRequest, reach
from herdbook.fastloop.text import words_of
from herdbook.fastloop.view import entry_view
from herdbook.record.trust import acts
from herdbook.record.tunables import EVERYWHERE
from herdbook.record.types import HeadRow, Served, Shown, Version

INDEX_BATCH: Final = 500
INDEX_BATCHES_MAX: Final = 40  # one search indexes at most so much of what others wrote; the answer says when more is waiting
MATCHES_MAX: Final = 1_000
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
        heads, behind = self.scope(tenant, request.query, entity)
        gathered = Gathered(known=len(heads))
        versions = self.record.versions(tenant, [row[0] for row in heads])
        paths = sorted({version.path for version in versions.values() if isinstance(version, Version)})
        scale = scale_of(self.record, tenant, paths, tuning)
        judge(heads, versions, gathered, now=now, floor=0.0, scale=scale)  # what has faded is still found by who looks for it
        ordered = self.orderer.order(
            tenant,
            gathered.rows,
            request.query,
            asked=entity or "",
            now=now,
            scale=scale,
            tuning=tuning,
            standing_stays=False,
        )
        matches = ordered.rows if ordered.matched else []
        shown = self.shown(tenant, best_matches(matches, request.limit))
        answer = {
            "query": request.query,
            "entity": entity,
            "results": self.results(shown, ordered, explain=request.explain),
            "tracked": request.session is not None,
            "searched": len(heads),
            "left_out": {"expired": len(gathered.expired), "limit": len(matches) - len(shown), "unindexed": behind},
            "refused": gathered.refusals(),
            "ranking": ordered.said(),
        }
        return Searched(answer, exposed(shown, ordered), Served(entity, "search", "on", ordered.policy, len(heads)))

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

    def scope(self, tenant: int, query: str, entity: str | None) -> tuple[list[HeadRow], bool]:
        """Which entries may answer, and whether the engine's index is still behind the record."""
        if entity is None:
            reached = self.record.reached(tenant)
            return self.matched(tenant, query) if reached is None else (reached, False)
        return self.record.subtree(tenant, entity) + self.record.heads(tenant, reach(entity)[1:]), False

    def matched(self, tenant: int, query: str) -> tuple[list[HeadRow], bool]:
        """What the engine's index finds."""
        behind = self.catch_up(tenant)
        matches = self.record.text_match(tenant, asked_tokens(query)[:MATCH_TOKENS_MAX], MATCHES_MAX)
        if not isinstance(self.orderer.semantics, str):
            matches = list(dict.fromkeys([*matches, *self.orderer.semantics.nearest(tenant, query, NEAREST_MAX)]))
        trusts = self.record.trust_of(tenant, matches) if matches else {}
        if behind and trusts:
            # An index that lags may still hold what was superseded since.
            current = {row[0] for row in self.record.heads(tenant, sorted({head.path for head in trusts.values()}))}
            matches = [version_id for version_id in matches if version_id in current]
        return [head_row(trusts[version_id]) for version_id in matches if version_id in trusts], behind

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
