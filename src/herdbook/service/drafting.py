"""Boxes that compete: what one of them writes is a draft on its own session, and is told only if its host says that it has won.

Dead ends are told at once, since the others are to skip them now. A draft is an action of its run, so the trace shows what a
loser would have written; it is no entry, and nobody is briefed with it. All of it is in the record, so that boxes may reach it by
any server and their host by another.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from herdbook.base.errors import InvalidRequest
from herdbook.base.ids import new_name
from herdbook.base.reach import EVERYTHING, Reach
from herdbook.record import leases, sessions
from herdbook.record.store.protocol import Transaction, Work
from herdbook.service import requests
from herdbook.service.callers import Caller

if TYPE_CHECKING:
    from herdbook.service.door import Service

DRAFT: Final = "herdbook.draft"
Writer = Callable[["Service", Caller, requests.Write], Work]


def unless_competing(service: Service, caller: Caller, request: requests.Write, write: Work) -> Work:
    """The write itself, or, from a box that competes, its draft. What would be refused later is refused now."""
    box = caller.box
    if box is None or request.worked is False:
        return write

    def work(tx: Transaction) -> Any:
        if not leases.competes(tx, caller.tenant, box):
            return write(tx)
        if request.session is None:
            raise InvalidRequest("a box that competes writes within a session: name it, for the draft is kept there")
        sessions.record_action(service.record, tx, caller.stamp, action(request), at=service.clock.now())
        return {"entity": request.entity, "key": request.key, "version": 0, "supersedes": None, "draft": True}

    return work


def promotion(service: Service, caller: Caller, box: str, write: Writer) -> Work:
    """Tell what this box wrote, in its order, as the box and as far as it reached."""

    def work(tx: Transaction) -> dict[str, Any]:
        told = []
        for identity, channel, reach, args in leases.promote(tx, caller.tenant, box, tool=DRAFT):
            as_box = teller(caller.tenant, box, identity, channel, reach)
            told.append(write(service.seen_by(as_box.reach), as_box, msgspec.json.decode(args, type=requests.Write))(tx))
        return {"box": box, "told": told}

    return work


def teller(tenant: int, box: str, identity: str, channel: str, reach: str | None) -> Caller:
    """The box as it was when it began a run, with what it reached then."""
    reached = EVERYTHING if reach is None else Reach.of(json.loads(reach))
    return Caller(tenant, identity, frozenset({"read", "write"}), channel, box, origin="agent", reach=reached)


def refuse_forged(tool: str) -> None:
    """An action under this name would be told as if it had been written, unchecked."""
    if tool == DRAFT:
        raise InvalidRequest(f"the name {DRAFT!r} is kept for what a competing box writes: name the tool that was called")


def action(request: requests.Write) -> dict[str, Any]:
    """The draft as an action of its run."""
    plain = msgspec.to_builtins(request)
    said = {name: value for name, value in plain.items() if name == "value" or value not in (None, [])}
    name = f"draft {request.request_id}" if request.request_id else new_name("r")
    return {"session": request.session, "tool": DRAFT, "args": said, "result": None, "ok": None, "request_id": name}
