"""Runs in bulk, for whoever learns from them: a page of sessions with what each read, was given, did and came to.

A page costs a fixed number of queries however many runs are on it. An outcome whose seal is broken is refused, and its run says
so instead of showing it. Nothing here is one agent's view: only a caller who may see every run of the tenant asks for pages.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from herdbook.base import clock
from herdbook.base.errors import HerdbookError, SealBroken
from herdbook.record.erasing import erased_sessions
from herdbook.record.outcomes import Outcome
from herdbook.record.record import Record
from herdbook.record.store.protocol import Reader, Row

BySession = dict[str, list[Row]]
READ_JSON: Final = json.JSONDecoder().raw_decode  # of what was written canonically: nothing stands before it or after


def page(record: Record, reader: Reader, tenant: int, fields: dict[str, Any]) -> dict[str, Any]:
    """Runs after a session's name. `next` is None on the last page; `snapshot` and `until` are to be sent for the next."""
    where = {name: fields[name] for name in ("after", "under", "until", "limit")}
    rows = reader.rows("runs_after", where | {"tenant": tenant})
    return {
        "runs": views(record, reader, tenant, rows, snapshot=fields["snapshot"]),
        "next": rows[-1][0] if len(rows) == fields["limit"] else None,
        "snapshot": str(fields["snapshot"]),
        "until": clock.iso(fields["until"]),
    }


def views(record: Record, reader: Reader, tenant: int, sessions: Sequence[Row], *, snapshot: int) -> list[dict[str, Any]]:
    """These sessions, each as one run."""
    erased = erased_sessions(reader, tenant, [row[0] for row in sessions])
    which = {"tenant": tenant, "sessions": json.dumps([row[0] for row in sessions if row[0] not in erased])}
    outcomes = by_session(reader.rows("outcomes_of_runs", which | {"snapshot": snapshot}))
    attested: dict[int, str] = dict(reader.rows("attested_of_runs", which))
    queries = ("actions_of_runs", "contexts_of_runs", "reads_of_runs")
    actions, contexts, reads = (by_session(reader.rows(query, which)) for query in queries)
    texts = record.versions(tenant, {row[0] for rows in reads.values() for row in rows})
    return [
        buried(name, entity, started_at)
        if name in erased
        else {
            "session": name,
            "erased": False,
            "agent": agent,
            "identity": identity,
            "box": box,
            "entity": entity,
            "task": task,
            "started_at": clock.iso(started_at),
            "reads": [read for row in reads[name] if (read := read_view(texts[row[0]], row[1])) is not None],
            "contexts": [{"name": row[1], "text": row[2], "at": clock.iso(row[3])} for row in contexts[name]],
            "actions": [action_view(row) for row in actions[name]],
            **outcomes_view(record, tenant, outcomes[name], attested),
        }
        for name, agent, identity, _, box, entity, task, started_at, _ in sessions
    ]


def buried(name: str, entity: str | None, started_at: int) -> dict[str, Any]:
    """What is left of a run that was erased: that there was one, so that it is counted where it is left out."""
    told = dict.fromkeys(("agent", "identity", "box", "task"))
    nothing: dict[str, Any] = {what: [] for what in ("reads", "contexts", "actions", "outcomes")}
    return {
        "session": name,
        "erased": True,
        **told,
        "entity": entity,
        "started_at": clock.iso(started_at),
        **nothing,
        "broken": False,
    }


def by_session(rows: Sequence[Row]) -> BySession:
    """Rows under their first column, without it."""
    found: BySession = defaultdict(list)
    for row in rows:
        found[row[0]].append(row[1:])
    return found


def action_view(row: Row) -> dict[str, Any]:
    _, tool, args, result, ok, at = row
    return {
        "tool": tool,
        "args": READ_JSON(args)[0],
        "result": READ_JSON(result)[0],
        "ok": None if ok is None else bool(ok),
        "at": clock.iso(at),
    }


def read_view(version: Any, at: int) -> dict[str, Any] | None:
    """What was served, as it was then; a version whose seal is broken teaches nobody anything."""
    if isinstance(version, HerdbookError):
        return None
    said = {"value": json.loads(version.value_text), "why": version.why, "worked": version.worked}
    return {"entity": version.path, "key": version.key, "version": version.number, **said, "at": clock.iso(at)}


def outcomes_view(record: Record, tenant: int, rows: Sequence[Row], attested: dict[int, str]) -> dict[str, Any]:
    """What it came to, in the order it arrived; `broken` where a seal says that this is not what was written."""
    told, broken = [], False
    for outcome in (Outcome(*row) for row in rows):
        try:
            record.verify(outcome.seal, "outcome", tenant, *outcome[:11])
        except SealBroken:
            broken = True
            continue
        told.append(
            {
                "ref": outcome.ref,
                "type": outcome.type,
                "effective_type": outcome.effective_type,
                "attested": attested.get(outcome.id),
                "task_input": outcome.task_input,
                "at": clock.iso(outcome.at),
            }
        )
    return {"outcomes": told, "broken": broken}
