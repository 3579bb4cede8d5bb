"""Promoted rankers by their ids, each read from the record once: an artefact never changes."""

from __future__ import annotations

from dataclasses import dataclass, field

from herdbook.base.errors import HerdbookError
from herdbook.fastloop import learned
from herdbook.fastloop.ranking import Scorer
from herdbook.record import rankers
from herdbook.record.cache import BoundedCache
from herdbook.record.record import Record

KEPT_MAX = 64


@dataclass(slots=True)
class Scorers:
    """What a briefing asks for a ranker; a text says why there is none, and the briefing says so too."""

    record: Record
    kept: BoundedCache[tuple[int, str], Scorer] = field(default_factory=lambda: BoundedCache(KEPT_MAX))

    def __call__(self, tenant: int, name: str) -> Scorer | str:
        found = self.kept.get((tenant, name))
        if found is None:
            try:
                loaded = learned.scorer(rankers.load(self.record, self.record.store, tenant, name))
            except HerdbookError as problem:
                return problem.message
            if isinstance(loaded, str):
                return loaded
            self.kept.put((tenant, name), loaded)
            found = loaded
        return found
