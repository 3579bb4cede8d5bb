"""The one door all surfaces use: it checks scope and form in one place, then asks the record or hands back work for it.

Everything that comes out is a plain dict of JSON values or a HerdbookError; the same in process and over any wire.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from herdbook.base import limits
from herdbook.base.clock import Clock
from herdbook.base.errors import Forbidden, HerdbookError, InvalidRequest, InvalidText, NotFound
from herdbook.base.reach import Reach
from herdbook.fastloop.briefing import Briefer
from herdbook.fastloop.kept import KeptPaths
from herdbook.fastloop.ordering import NO_EMBEDDER, Orderer
from herdbook.fastloop.scope import StatsCache
from herdbook.fastloop.search import Searcher
from herdbook.fastloop.sources import Semantics
from herdbook.record.cache import BoundedCache
from herdbook.record.record import ERASURES_SEEN_SECONDS, Record
from herdbook.record.store.protocol import Planned, Work
from herdbook.service import reaching
from herdbook.service.access.auditing import ALWAYS, Audited, Auditor
from herdbook.service.callers import Caller
from herdbook.service.learning.scorers import Scorers
from herdbook.service.verbs import VERBS, Verb

Plan = Planned
VIEWS_MAX = 1_000
PATHS_PART, TEXTS_PART = 2, 6  # of what may be kept in memory: paths take half, texts, their tokens and vectors a sixth each


class Service:
    """The verbs over one record. Safe to use from many threads."""

    def __init__(
        self,
        record: Record,
        clock: Clock,
        *,
        semantics: Semantics | str = NO_EMBEDDER,
        cache_bytes_max: int = limits.CACHE_BYTES_MAX,
    ) -> None:
        self.record = record
        self.clock = clock
        orderer = Orderer(
            StatsCache(cache_bytes_max // TEXTS_PART), KeptPaths(cache_bytes_max // PATHS_PART), semantics, Scorers(record)
        )
        self.briefer = Briefer(record, orderer)
        self.searcher = Searcher(record, self.briefer.orderer)
        self.auditor = Auditor(record, clock)
        self.views: BoundedCache[Reach, Service] = BoundedCache(VIEWS_MAX)

    def perform(
        self, caller: Caller, verb: str, fields: Mapping[str, Any], *, lax: bool = False, request_id: str = ""
    ) -> dict[str, Any]:
        """Do one verb and answer. `lax` reads numbers and booleans out of text, as query strings need."""
        if verb in VERBS and VERBS[verb].tells:
            plan = self.plan(caller, verb, fields, lax=lax, request_id=request_id)
            answer: dict[str, Any] = self.auditor.write(plan)
            if wait := self.settling(VERBS[verb]):
                time.sleep(wait)
            return answer
        try:
            found = self.allowed(caller, verb)
            told: dict[str, Any] = self.acted(caller, found, parsed(found, fields, lax=lax))
        except HerdbookError as refusal:
            self.note(caller, verb, fields, request_id, refusal.code)
            raise
        self.note(caller, verb, fields, request_id, "ok")
        return told

    def plan(self, caller: Caller, verb: str, fields: Mapping[str, Any], *, lax: bool = False, request_id: str = "") -> Plan:
        """Check a telling verb and give the work that `commit` will do: how a server batches what arrives together."""
        try:
            found = self.allowed(caller, verb)
            assert found.tells, f"{verb} only asks: perform it"
            work: Work = self.acted(caller, found, parsed(found, fields, lax=lax))
        except HerdbookError as refusal:
            self.note(caller, verb, fields, request_id, refusal.code)
            raise
        if self.auditor.wants(caller, verb, found.scope):
            work = Audited(work, self.auditor.act(caller, verb, found.scope, fields, request=request_id, code="ok"))
        return Planned(caller.tenant, work)

    def note(self, caller: Caller, verb: str, fields: Mapping[str, Any], request_id: str, code: str) -> None:
        """Keep in the audit what is refused at the door, and questions that are answered."""
        scope = VERBS[verb].scope if verb in VERBS else None
        if self.auditor.wants(caller, verb, scope):
            name = verb if scope else "unknown"
            self.auditor.note(self.auditor.act(caller, name, scope, fields, request=request_id, code=code))

    def acted(self, caller: Caller, verb: Verb, request: Any) -> Any:
        """What a verb answers or plans, over the record as the caller's key sees it."""
        reaching.check(caller.reach, verb.name, request, tells=verb.tells)
        return verb.act(self.seen_by(caller.reach), caller, request)

    def seen_by(self, reach: Reach) -> Service:
        """The service over what a key reaches; everything else is answered as if it had never been."""
        if reach.everything:
            return self
        seen = self.views.get(reach)
        if seen is None:
            seen = copy.copy(self)
            seen.record = self.record.seen_by(reach)
            seen.briefer = replace(self.briefer, record=seen.record)
            seen.searcher = replace(self.searcher, record=seen.record)
            self.views.put(reach, seen)
        return seen

    def settling(self, verb: Verb) -> float:
        """Seconds from a commit until no process goes by what was before, where that matters: only then is it acknowledged."""
        if verb.name == "erase":
            return ERASURES_SEEN_SECONDS
        return self.record.store.lent_seconds if verb.scope in ALWAYS and verb.tells else 0.0

    def commit(self, plans: Sequence[Plan]) -> list[dict[str, Any] | HerdbookError]:
        """Do planned work in one durable transaction; each answer or refusal in its place, acknowledged after the commit."""
        return self.auditor.commit(plans)

    def allowed(self, caller: Caller, verb: str) -> Verb:
        """The verb, if there is one and the caller has its scope. Denied by default."""
        found = VERBS.get(verb)
        if found is None:
            raise NotFound(f"there is no verb {verb!r}: the verbs are {', '.join(sorted(VERBS))}")
        if found.scope not in caller.scopes:
            raise Forbidden(f"{verb} needs the scope {found.scope!r}, which this credential does not have")
        if caller.verbs is not None and verb not in caller.verbs:
            raise Forbidden(f"this key may do {', '.join(sorted(caller.verbs))}, and not {verb}")
        return found

    def base_rate(self, tenant: int, path: str) -> float:
        """How often runs on this entity succeed at all."""
        return self.record.base_rates(tenant, [path])[path]

    def close(self) -> None:
        self.auditor.close()
        close = getattr(self.briefer.orderer.semantics, "close", None)  # only a leg with a model of its own has one
        if close is not None:
            close()
        self.record.close()


def parsed(verb: Verb, fields: Mapping[str, Any], *, lax: bool) -> Any:
    """The verb's request, or InvalidRequest that names the field."""
    try:
        return msgspec.convert(fields, verb.request, strict=not lax)
    except msgspec.ValidationError as problem:
        raise InvalidRequest(f"{verb.name}: {problem}") from problem
    except UnicodeEncodeError as problem:  # in a text that is compared with a few known words
        raise InvalidText(f"{verb.name}: a text holds a lone surrogate: send well-formed Unicode") from problem
