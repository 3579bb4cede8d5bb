"""A service for boxes that compete: what one of them writes is a draft on its own session, and the host tells it only if it wins.

Dead ends are told at once, since the others are to skip them now. A draft is an action of its run, so the trace shows what a
loser would have written; it is no entry, and nobody is briefed with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from herdbook.base.errors import InvalidRequest
from herdbook.service.callers import Caller
from herdbook.service.door import Service, parsed
from herdbook.service.requests import Write
from herdbook.service.verbs import VERBS, Verb

DRAFT: Final = "draft"


class Drafting(Service):
    """The same record; only what a box writes takes the way round."""

    def __init__(self, service: Service) -> None:
        self.__dict__.update(service.__dict__)
        self.drafts: dict[str, dict[str, tuple[Caller, Write]]] = {}
        self.runs: dict[str, dict[str, None]] = {}
        self.lock = threading.Lock()

    def acted(self, caller: Caller, verb: Verb, request: Any) -> Any:
        if caller.box is not None and verb.name == "start_session":
            return self.begun(str(caller.box), super().acted(caller, verb, request))
        if verb.name != "write" or caller.box is None or request.worked is False:
            return super().acted(caller, verb, request)
        if request.session is None:
            raise InvalidRequest("a box that competes writes within a session: name it, for the draft is kept there")
        super().acted(caller, verb, request)  # refused now, if it would be refused later
        noted = super().acted(caller, VERBS["record_action"], parsed(VERBS["record_action"], action(request), lax=False))

        def keep(tx: Any) -> dict[str, Any]:
            noted(tx)
            with self.lock:
                mine = self.drafts.setdefault(str(caller.box), {})
                mine[request.request_id or f"draft {len(mine)}"] = (caller, request)
            return {"entity": request.entity, "key": request.key, "version": 0, "supersedes": None, DRAFT: True}

        return keep

    def begun(self, box: str, begin: Callable[[Any], dict[str, Any]]) -> Callable[[Any], dict[str, Any]]:
        def remember(tx: Any) -> dict[str, Any]:
            answer = begin(tx)
            with self.lock:
                self.runs.setdefault(box, {})[str(answer["session"])] = None
            return answer

        return remember

    def runs_of(self, box: str) -> list[str]:
        """The sessions that were begun in this box, in their order."""
        with self.lock:
            return list(self.runs.get(box, ()))

    def promote(self, box: str) -> list[Mapping[str, Any]]:
        """Tell what this box wrote, in its order, as the box; the answers."""
        with self.lock:
            mine = self.drafts.pop(box, {})
        write = VERBS["write"]
        told = [(caller, super(Drafting, self).acted(caller, write, request)) for caller, request in mine.values()]
        return [self.record.store.write(work, tenant=caller.tenant) for caller, work in told]


def action(request: Write) -> dict[str, Any]:
    """The draft as an action of its run."""
    said = {name: value for name, value in msgspec.to_builtins(request).items() if value not in (None, [])}
    told = {"session": request.session, "tool": DRAFT, "args": said}
    return {**told, "request_id": f"draft {request.request_id}"} if request.request_id else told
