"""What the verbs of learning do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from herdbook.base import text
from herdbook.base.ids import row_id
from herdbook.fastloop import features
from herdbook.record import exposures as shown
from herdbook.record import tuning as tunables
from herdbook.record.store.protocol import Work
from herdbook.service.asking import settled
from herdbook.service.callers import Caller
from herdbook.service.learning import requests
from herdbook.service.learning.embedding import Embedding
from herdbook.service.telling import stamped, with_request_id

if TYPE_CHECKING:
    from herdbook.service.door import Service


def tune(service: Service, caller: Caller, request: requests.Tune) -> Work:
    """Set how ranking, credit and experiments work at an entity path and below it."""
    return stamped(service, caller, tunables.tune, with_request_id(request))


def tuning(service: Service, caller: Caller, request: requests.Tuning) -> dict[str, Any]:
    """Everything that may be tuned, with what holds at a path."""
    path = tunables.place(request.entity)
    answer = tunables.told(service.record.store, caller.tenant, path)
    if request.history:
        answer["history"] = tunables.history(service.record.store, caller.tenant, path)
    return answer


def exposures(service: Service, caller: Caller, request: requests.Exposures) -> dict[str, Any]:
    """Runs that ended in an outcome, with all they were shown or had withheld."""
    under = "" if request.entity is None else text.entity_path(request.entity)
    after = page_start(request.after)
    found = settled(
        service, caller, lambda reader: shown.resolved(reader, caller.tenant, under=under, after=after, limit=request.limit)
    )
    return {"forms": {features.FORM: list(features.NAMES)}, **found}


def embed(service: Service, caller: Caller, request: requests.Embed) -> dict[str, Any]:
    """Embed entries that have no vector yet, some at a time; without an embedder it says how to get one."""
    meanings = service.briefer.orderer.semantics
    if not isinstance(meanings, Embedding):
        return {"space": None, "entries": 0, "embedded": 0, "waiting": 0, "missing": str(meanings)}
    meanings.embed_next(caller.tenant, after=0, limit=request.limit)
    state = meanings.state(caller.tenant)
    waiting = state["entries"] - state["embedded"]
    if not waiting:
        meanings.tidy(caller.tenant)
    return state | {"waiting": waiting, "missing": None}


def page_start(cursor: str | None) -> int:
    """The outcome a page begins after, out of the `next` of the page before."""
    if cursor is None:
        return 0
    return row_id(cursor, otherwise="`after` is not the `next` of a page: ask for the first page again")
