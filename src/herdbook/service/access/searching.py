"""The verb `audit`: who did what, searched by its admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from herdbook.base import clock, strict_json, text
from herdbook.base.errors import HerdbookError, InvalidRequest
from herdbook.record import audit as rows
from herdbook.record.record import under_path
from herdbook.service.access import requests
from herdbook.service.callers import Caller

if TYPE_CHECKING:
    from herdbook.service.door import Service

END: Final[list[Any]] = [2**62, "", 0]


def audit(service: Service, caller: Caller, request: requests.Audit) -> dict[str, Any]:
    """Rows, newest first; with `check`, also whether every chain of this tenant is whole."""
    service.auditor.flush()
    before = END if request.after is None else page_start(request.after)
    until = None if request.until is None else moment(request.until)
    if until is not None and until < before[0]:
        before = [until, "", 0]
    path = None if request.entity is None else text.entity_path(request.entity)
    filters = {"who": request.who, "verb": request.act, "code": request.code}
    asked = {
        "since": 0 if request.since is None else moment(request.since),
        **dict(zip(("before_at", "before_writer", "before_n"), before, strict=True)),
        **{name: None if value is None else text.name(value, what=name) for name, value in filters.items()},
        **under_path(path or ""),
        "path": path,
        "limit": request.limit,
    }
    answer = rows.found(service.record, caller.tenant, asked)
    if request.check:
        answer["problems"] = list(rows.problems(service.record, service.record.store, caller.tenant))
    return answer


def moment(value: str) -> int:
    try:
        return clock.from_iso(value)
    except (ValueError, OverflowError) as problem:
        raise InvalidRequest(f"{value[:40]!r} is not an ISO 8601 time such as 2026-12-31T00:00:00Z") from problem


def page_start(cursor: str) -> list[Any]:
    """Where a page begins, out of the `next` of the page before."""
    try:
        found = strict_json.loads(cursor)
    except HerdbookError:
        found = None
    shaped = isinstance(found, list) and [type(part) for part in found] == [int, str, int]
    if not isinstance(found, list) or not shaped or not all(0 <= number < 2**63 for number in found[::2]):
        raise InvalidRequest("`after` is not the `next` of a page: ask for the first page again")
    text.whole_characters(found[1], what="cursor")
    return found
