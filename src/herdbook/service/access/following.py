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
