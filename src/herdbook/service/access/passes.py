"""Passes for boxes that are not told apart by a socket: the host makes one, whoever is shown it asks whether it still holds.

A pass never reaches further than the key of the host that asked for it, does no verb and uses no connection that key may not,
spends what that key may spend, and ends with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from herdbook.base import box_token, clock, limits, text
from herdbook.base.box_token import BoxPass
from herdbook.base.errors import Forbidden, NotFound, TooLarge, Unauthorized
from herdbook.base.reach import ANY, Reach
from herdbook.record import access, leases
from herdbook.record.access import Granted
from herdbook.record.store.protocol import Reader, Row, Transaction, Work
from herdbook.service.access import requests
from herdbook.service.callers import Caller

if TYPE_CHECKING:
    from herdbook.service.door import Service


def box_pass(service: Service, caller: Caller, request: requests.MakeBoxPass) -> Work:
    """A pass for a box that lives."""
    box = text.identifier(request.box, what="box id")
    reach = Reach.of(request.reach) if request.reach is not None else caller.reach
    if not caller.reach.includes(reach):
        raise Forbidden("a pass reaches no further than the key that makes it: name paths within that key's reach")
    connections = handed_on(caller.connections, request.connections)

    def work(tx: Transaction) -> dict[str, Any]:
        now = service.clock.now()
        if not leases.one(tx, caller.tenant, box, at=now)["live"]:
            raise NotFound(f"the box {box!r} does not live any more: look with `herdbook box ls`")
        until = now + request.seconds * 1_000_000
        said = BoxPass(caller.tenant, box, caller.identity, reach.patterns, connections, now, until, caller.key)
        token = box_token.sign(service.record.pass_key(), said)
        return {"box": box, "token": token, **view(said)}

    return work


def box_check(service: Service, caller: Caller, request: requests.CheckBoxPass) -> dict[str, Any]:
    """What a pass says, while it holds and its box lives."""
    token = text.name(request.token, what="pass", chars_max=box_token.CHARS_MAX)
    try:
        said, _ = honoured(service, token, tenant=caller.tenant)
    except Unauthorized as problem:
        return {"valid": False, "why": problem.message}
    return {"valid": True, "why": None, "box": said.box, "identity": said.identity, **view(said)}


def honoured(service: Service, token: str, *, tenant: int | None = None) -> tuple[BoxPass, tuple[Granted, Row] | None]:
    """A pass whose signature, time, box and key all hold now, and that key where it was made with one. Raises Unauthorized."""
    said = box_token.opened(service.record.pass_key(), token, now=service.clock.now(), tenant=tenant)
    if not lives(service.record.store, said, at=service.clock.now()):
        raise Unauthorized("the box of this pass is gone, and its pass with it: ask a host for a new box")
    return said, None if said.key is None else access.by_id(service.record, said.tenant, said.key, now=service.clock.now())


def lives(reader: Reader, said: BoxPass, *, at: int) -> bool:
    row = reader.row("box", {"tenant": said.tenant, "box": said.box})
    return row is not None and bool(leases.view(row, at=at)["live"])


def handed_on(held: tuple[str, ...], wanted: list[str] | None) -> tuple[str, ...]:
    """The connections that are wanted, all of which have to be held; without a word, all that are held."""
    if wanted is None:
        return held
    names = checked(wanted)
    if ANY not in held and not set(names) <= set(held):
        raise Forbidden("a key hands on only the connections that it may use itself")
    return names


def checked(names: list[str]) -> tuple[str, ...]:
    """Names of connections, in order, each once."""
    if len(names) > limits.CONNECTIONS_MAX:
        raise TooLarge(f"{len(names)} connections are over the limit of {limits.CONNECTIONS_MAX}")
    return tuple(sorted({text.name(each, what="connection") for each in names}))


def view(said: BoxPass) -> dict[str, Any]:
    return {
        "reach": list(said.patterns),
        "connections": list(said.connections),
        "expires_at": clock.iso(said.expires_at),
    }
