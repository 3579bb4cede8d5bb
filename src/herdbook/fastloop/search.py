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
from herdbook.fastloop.candidates import IRRELEVANCE, Candidate, Gathered, Row, candidate, head_row, judge, relevant
from herdbook.fastloop.scope import StatsCache, asked_tokens
from herdbook.fastloop.sources import Record, SearchRequest, reach
from herdbook.fastloop.text import words_of
from herdbook.fastloop.view import entry_view
from herdbook.record.types import HeadRow, Served, Shown, Version

POLICY: Final = "keyword"
INDEX_BATCH: Final = 500
INDEX_BATCHES_MAX: Final = 40  # one search indexes at most so much of what others wrote; the answer says when more is waiting
MATCHES_MAX: Final = 1_000
MATCH_TOKENS_MAX: Final = 64
SCORE_DIGITS: Final = 6  # scores that differ by less are equal
SCORE_STEP: Final = 10.0**-SCORE_DIGITS


@dataclass(frozen=True, slots=True)
class Searched:
    """The answer, and what it showed."""

    answer: dict[str, Any]
    exposures: list[Shown]
    serving: Served


@dataclass(slots=True)
class Searcher:
    """Searches one record; share its cache with the Briefer, so that a version is tokenised once."""

    record: Record
    cache: StatsCache = field(default_factory=StatsCache)
    indexing: threading.Lock = field(default_factory=threading.Lock)

    def search(self, tenant: int, request: SearchRequest, *, now: int) -> Searched:
        """The best `limit` matches under `entity`, or of everything the key reaches."""
        check(request)
        entity = None if request.entity is None else entity_path(request.entity)
        heads, behind = self.scope(tenant, request.query, entity)
        gathered = Gathered(known=len(heads))
        versions = self.record.versions(tenant, [row[0] for row in heads])
        judge(heads, versions, gathered, now=now, floor=0.0)  # what has faded is still found by who looks for it
        matches = self.matches(tenant, request.query, gathered.rows)
        shown = self.shown(tenant, best_matches(matches, request.limit))
        bases = self.record.base_rates(tenant, sorted({match.version.path for match in shown})) if shown else {}
        results = []
        for rank, match in enumerate(shown, start=1):
            view = entry_view(match.version, match.head, now=now, base=bases.get(match.version.path, 0.5))
            view["rank"], view["score"] = rank, round(-match.irrelevance, SCORE_DIGITS)
            results.append(view)
        answer = {
            "query": request.query,
            "entity": entity,
            "results": results,
            "tracked": request.session is not None,
            "searched": len(heads),
            "left_out": {"expired": len(gathered.expired), "limit": len(matches) - len(shown), "unindexed": behind},
            "refused": gathered.refusals(),
        }
        exposures = [Shown(match.version_id, rank, "search") for rank, match in enumerate(shown, start=1)]
        return Searched(answer, exposures, Served(entity, "search", "on", POLICY, len(heads)))

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

    def matches(self, tenant: int, query: str, rows: list[Row]) -> list[Row]:
        """The rows that the query finds, with their relevance, in any order."""
        return relevant(rows, self.cache.rank(tenant, query, [row[7] for row in rows]))

    def shown(self, tenant: int, rows: list[Row]) -> list[Candidate]:
        """These rows with their trust in full."""
        heads = self.record.trust_of(tenant, [row[5] for row in rows])
        return [candidate(row, heads[row[5]]) for row in rows if row[5] in heads]


def best_matches(matches: list[Row], limit: int) -> list[Row]:
    """The first in order: relevance comes before standing here, and the block of a briefing does not count."""
    if len(matches) > limit:  # only those that can be among them are put in order
        bound = sorted([row[IRRELEVANCE] for row in matches])[limit - 1] + SCORE_STEP
        matches = [row for row in matches if row[IRRELEVANCE] <= bound]
    return sorted(matches, key=lambda row: (round(row[IRRELEVANCE], SCORE_DIGITS), row[1], row[3:6]))[:limit]


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
