"""What the verb of spans does: one transaction, in which each span is a step of a run that is the caller's own."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from herdbook.base import text
from herdbook.base.errors import HerdbookError, RequestConflict, TooLarge
from herdbook.record import sessions
from herdbook.record.store.protocol import Transaction, Work
from herdbook.service.callers import Caller
from herdbook.service.spans import otlp, requests

if TYPE_CHECKING:
    from herdbook.service.door import Service


def record_spans(service: Service, caller: Caller, request: requests.RecordSpans) -> Work:
    """Tool and model calls of spans as actions; a run that nobody has begun yet begins here."""
    found = otlp.read(request.resource_spans)

    def work(tx: Transaction) -> dict[str, Any]:
        left_out, named = Counter(found.left_out), dict[str, None]()
        for step in found.steps:
            reason = recorded(service, tx, caller, step)
            if reason is None:
                named[step.session] = None
            else:
                left_out[reason] += 1
        return {
            "spans": found.spans,
            "recorded": found.spans - left_out.total(),
            "sessions": list(named),
            "left_out": dict(left_out),
            "attributes_left_out": found.attributes_left_out,
            "redacted": found.redacted,
            "shortened": found.shortened,
        }

    return work


def recorded(service: Service, tx: Transaction, caller: Caller, step: otlp.Step) -> str | None:
    """Keep one step; or why not."""
    record, stamp, at = service.record, caller.stamp, service.clock.now()
    existing = record.session(stamp.tenant, step.session, tx)
    if existing is not None and not sessions.owned(existing, stamp):
        return "of a run that is another's"
    try:
        if existing is None:
            entity = None if step.entity is None else text.entity_path(step.entity)
            if entity is not None and not caller.reach.covers(entity):
                return "about a path that this key does not reach"
            begun = {"session": step.session, "agent": step.agent, "entity": entity, "task": step.task}
            sessions.start(record, tx, stamp, begun, at=at)
        fields = {name: getattr(step, name) for name in ("session", "tool", "args", "result", "ok", "request_id")}
        sessions.record_action(record, tx, stamp, fields, at=at)
    except RequestConflict:
        return "sent before, and otherwise"
    except TooLarge:
        return "too large"
    except HerdbookError as problem:
        if problem.status >= 500:
            raise
        return "names that no run or tool can have"
    return None
