"""The verb `changes`: what a follower of the record asks again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from herdbook.base import text
from herdbook.record import changes as feed
from herdbook.service.access import requests
from herdbook.service.callers import Caller

if TYPE_CHECKING:
    from herdbook.service.door import Service


def changes(service: Service, caller: Caller, request: requests.Changes) -> dict[str, Any]:
    under = None if request.entity is None else text.entity_path(request.entity)
    if request.after == feed.LATEST:
        return {"changes": [], "next": str(feed.latest(service.record, caller.tenant))}
    return feed.since(service.record, caller.stamp, feed.place(request.after), under=under, limit=request.limit)


def followed(service: Service, caller: Caller, request: requests.Changes, *, looked: int) -> tuple[list[dict[str, Any]], int]:
    """The changes after a place for whoever has looked as far as `looked` and found none, and how far that is now.

    Who follows asks many times a second: where nothing was committed that is all it costs, and nothing is looked through twice.
    """
    until = feed.latest(service.record, caller.tenant)
    if until <= looked:
        return [], looked
    under = None if request.entity is None else text.entity_path(request.entity)
    seen, after = service.seen_by(caller.reach).record, max(looked, feed.place(request.after))
    return feed.since(seen, caller.stamp, after, under=under, limit=request.limit)["changes"], until
