"""Sessions, and what happens within one: actions, contexts, attempts. A session belongs to whoever began it, and to its box."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from herdbook.base import clock, limits, strict_json, text
from herdbook.base.errors import NotFound, RequestConflict, TooLarge, UnknownEntry
from herdbook.record import answers, seals
from herdbook.record.record import Record
from herdbook.record.store.protocol import Reader, Transaction
from herdbook.record.types import Session, Stamp


def start(record: Record, tx: Transaction, stamp: Stamp, fields: dict[str, Any], *, at: int) -> dict[str, Any]:
    """Begin a session, or find the one of that name again if it is the caller's own."""
    name = text.identifier(fields["session"], what="session id")
    agent = text.name(fields["agent"], what="agent")
    entity = None if fields["entity"] is None else text.entity_path(fields["entity"])
    task = None if fields["task"] is None else text.prose(fields["task"], what="task", chars_max=limits.TASK_CHARS_MAX)
    existing = record.session(stamp.tenant, name, tx)
    if existing:
        if not owned(existing, stamp) or existing.agent != agent:
            raise RequestConflict(f"the session {name!r} belongs to another run: begin one under a new name")
        return started(existing, existed=True)
    session = Session(name, agent, stamp.identity, stamp.channel, stamp.box, entity, task, at, None, stamp.reach)
    tx.run(
        "insert_session",
        {
            "tenant": stamp.tenant,
            "session": name,
            "agent": agent,
            "identity": stamp.identity,
            "channel": stamp.channel,
            "box": stamp.box,
            "entity": entity,
            "task": task,
            "at": at,
            "reach": stamp.reach,
        },
    )
    return started(session, existed=False)


def started(session: Session, *, existed: bool) -> dict[str, Any]:
    return {
        "session": session.id,
        "agent": session.agent,
        "box": session.box,
        "entity": session.entity,
        "task": session.task,
        "started_at": clock.iso(session.started_at),
        "existed": existed,
    }


def end(record: Record, tx: Transaction, stamp: Stamp, name: str, *, at: int) -> dict[str, Any]:
    """End a session; the first ending counts. Outcomes may still come."""
    require_session(record, tx, stamp, name)
    tx.run("end_session", {"tenant": stamp.tenant, "session": name, "at": at})
    row = tx.row("session", {"tenant": stamp.tenant, "session": name})
    assert row is not None
    return {"session": name, "ended_at": clock.iso(row[8])}


def require_session(record: Record, reader: Reader | None, stamp: Stamp, name: str) -> Session:
    """The caller's own session; another's and a missing one are answered alike."""
    session = record.session(stamp.tenant, name, reader)
    if session is None or not owned(session, stamp):
        raise NotFound(f"there is no session {name!r} of yours: begin one with start_session")
    return session


def owned(session: Session, stamp: Stamp) -> bool:
    """A box reaches its own sessions only; a host or a person those of their identity, begun with a key of the same reach.

    What a session was served is then within the reach of whoever goes on with it.
    """
    if session.reach != stamp.reach:
        return False
    if stamp.box is not None:
        return (session.box, session.identity) == (stamp.box, stamp.identity)
    return session.identity == stamp.identity


def visible(record: Record, stamp: Stamp, session: Session) -> bool:
    """Whether a run may be looked back at: one's own, or one about a path within reach; a box sees its own only."""
    if stamp.box is not None or record.reach.everything:
        return stamp.box is None or owned(session, stamp)
    return owned(session, stamp) if session.entity is None else record.reach.covers(session.entity)


def record_action(record: Record, tx: Transaction, stamp: Stamp, fields: dict[str, Any], *, at: int) -> dict[str, Any]:
    """Keep one tool call."""
    tool = text.name(fields["tool"], what="tool")
    row = {
        "tool": tool,
        "args": strict_json.canonical(fields["args"], bytes_max=record.value_bytes_max),
        "result": strict_json.canonical(fields["result"], bytes_max=record.value_bytes_max),
        "ok": fields["ok"],
    }
    return step(record, tx, stamp, "action", fields, row, at=at)


def record_context(record: Record, tx: Transaction, stamp: Stamp, fields: dict[str, Any], *, at: int) -> dict[str, Any]:
    """Keep something the agent was given."""
    row = {
        "name": text.name(fields["name"], what="name"),
        "text": text.prose(fields["text"], what="text", chars_max=limits.TASK_CHARS_MAX),
    }
    return step(record, tx, stamp, "context", fields, row, at=at)


def attempt(record: Record, tx: Transaction, stamp: Stamp, fields: dict[str, Any], *, at: int) -> dict[str, Any]:
    """Keep one try, with what it used; a failed one charges that when the outcome comes."""
    session = require_session(record, tx, stamp, fields["session"]).id  # first: what another's session was served is not told
    used = resolve_used(record, tx, stamp, session, fields["used"])
    note = None if fields["note"] is None else text.prose(fields["note"], what="note", chars_max=limits.WHY_CHARS_MAX)
    row = {"result": fields["result"], "used": json.dumps(used), "note": note}
    return step(record, tx, stamp, "attempt", fields, row, at=at) | {"result": fields["result"], "used": len(used)}


def step(
    record: Record, tx: Transaction, stamp: Stamp, kind: str, fields: dict[str, Any], row: dict[str, Any], *, at: int
) -> dict[str, Any]:
    """Append one numbered row to a session, once per request id."""
    session = require_session(record, tx, stamp, fields["session"]).id
    name = text.identifier(fields["request_id"], what="request id")
    digest = seals.digest(kind, session, *row.values())
    before: dict[str, Any] | None = answers.first(tx, stamp.tenant, kind, name, digest)
    if before is not None:
        return before
    number = tx.row(f"next_{kind}", {"tenant": stamp.tenant, "session": session})
    assert number is not None
    tx.run(f"insert_{kind}", row | {"tenant": stamp.tenant, "session": session, "n": number[0], "at": at})
    answer = {"session": session, "n": number[0], "at": clock.iso(at), "request_id": name}
    answers.keep(tx, stamp.tenant, kind, name, digest, answer)
    return answer


def resolve_used(record: Record, tx: Transaction, stamp: Stamp, session: str, used: Sequence[dict[str, Any] | str]) -> list[int]:
    """The versions that were acted on. One that nobody has is refused by name, and nothing moves."""
    if len(used) > limits.USED_MAX:
        raise TooLarge(f"{len(used)} used entries are over the limit of {limits.USED_MAX}")
    found = [
        served_key(tx, stamp, session, item) if isinstance(item, str) else named_version(record, tx, stamp, session, item)
        for item in used
    ]
    return list(dict.fromkeys(found))


def served_key(tx: Transaction, stamp: Stamp, session: str, name: str) -> int:
    """A plain key means the entry of that key which this session was served."""
    rows = tx.rows("served_by_key", {"tenant": stamp.tenant, "session": session, "key": text.key(name)})
    if not rows:
        raise UnknownEntry(f"this session was not served an entry {name!r}: name what was used as {{entity, key, version}}")
    if len({entry for _, entry in rows}) > 1:
        raise UnknownEntry(f"this session was served {name!r} from several paths: name it as {{entity, key, version}}")
    return int(rows[-1][0])


def named_version(record: Record, tx: Transaction, stamp: Stamp, session: str, item: dict[str, Any]) -> int:
    """The version named; without a number the one this session was served last, else the current one."""
    path, key, wanted = text.entity_path(item["entity"]), text.key(item["key"]), item["version"]
    number = record.path_id(stamp.tenant, path, tx)
    where = {"tenant": stamp.tenant, "path": number, "key": key}
    row = tx.row("version_id", where | {"number": wanted}) if wanted is not None else None
    if row is None:
        head = tx.row("head", where)
        if head is None:
            raise UnknownEntry(f"there is no entry {key!r} at {path!r}: nothing was moved")
        if wanted is not None:
            raise UnknownEntry(f"{key!r} at {path!r} has no version {wanted}: nothing was moved")
        row = tx.row("served_by_entry", {"tenant": stamp.tenant, "session": session, "entry": head[2]}) or (head[3],)
    return int(row[0])
