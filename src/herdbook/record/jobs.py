"""Jobs: put once for each key, taken by one worker at a time under a lease, ended once.

At least once: a worker that dies loses its lease, and another one takes the job as the next attempt. Whoever speaks of a job
names its attempt, so that a worker which was only slow is told that the job is no longer its own.
"""

from __future__ import annotations

import json
from typing import Any

from herdbook.base import clock, limits, strict_json, text
from herdbook.base.errors import Conflict, NotFound, RequestConflict
from herdbook.base.ids import new_name
from herdbook.record.store.protocol import Reader, Row, Transaction
from herdbook.record.types import Stamp

MICROSECONDS = 1_000_000


def put(tx: Transaction, stamp: Stamp, fields: dict[str, Any], *, at: int) -> dict[str, Any]:
    """A job under a key; within the window the same key is the same job, counted. The key's row makes that one decision."""
    tenant, queue = stamp.tenant, text.name(fields["queue"], what="queue")
    key, delivery, body = text.key(fields["key"]), fields["delivery"], compact(fields["body"])
    wanted = None if fields["job"] is None else text.identifier(fields["job"], what="job")
    place = {"tenant": tenant, "queue": queue}
    if delivery is not None:
        seen = tx.row("job_delivery", place | {"delivery": text.identifier(delivery, what="delivery")})
        if seen is not None:
            return told(tx, tenant, seen[0], created=False, replayed=True)
    fresh = wanted or new_name("job")
    if wanted and tx.row("job", {"tenant": tenant, "job": wanted}) is not None:
        raise RequestConflict(f"there is a job {fresh!r} already: give the new one another name, or none")
    row = tx.row("claim_job_key", place | {"key": key, "job": fresh, "at": at})
    assert row is not None
    job, put_at, _ = row
    created = job == fresh
    window = fields["window_seconds"]
    if not created and (fields["again"] or (window is not None and at - put_at >= window * MICROSECONDS)):
        job, created = fresh, True
        tx.run("renew_job_key", place | {"key": key, "job": job, "at": at})
    if created:
        tx.run("insert_job", place | {"key": key, "job": job, "body": body, "budget": fields["budget_seconds"], "at": at})
    else:
        tx.run("repeat_job_key", place | {"key": key, "at": at})
    if delivery is not None:
        tx.row("insert_job_delivery", place | {"delivery": delivery, "job": job})
    return told(tx, tenant, job, created=created, replayed=False)


def take(tx: Transaction, stamp: Stamp, fields: dict[str, Any], *, at: int) -> dict[str, Any]:
    """The oldest job that nobody holds, or the one this worker holds already; `job` is null when there is nothing to do."""
    tenant, worker = stamp.tenant, text.name(fields["worker"], what="worker")
    place = {"tenant": tenant, "queue": text.name(fields["queue"], what="queue"), "at": at}
    held = tx.row("job_held", place | {"worker": worker})
    if held is not None:
        return {"job": one(tx, tenant, held[0])}
    found = tx.row("job_next", place | {"attempts": limits.JOB_ATTEMPTS_MAX})
    if found is None:
        return {"job": None}
    deadline = at + one_row(tx, tenant, found[0])[4] * MICROSECONDS
    until = min(deadline, at + fields["lease_seconds"] * MICROSECONDS)
    tx.run("take_job", {"tenant": tenant, "job": found[0], "worker": worker, "lease_until": until, "deadline": deadline})
    return {"job": one(tx, tenant, found[0])}


def beat(tx: Transaction, stamp: Stamp, fields: dict[str, Any], *, at: int) -> dict[str, Any]:
    """Lengthen a lease, never past the attempt's deadline, and keep how far the work has come."""
    progress = None if fields["progress"] is None else compact(fields["progress"], bytes_max=limits.JOB_PROGRESS_BYTES_MAX)
    row = own_row(tx, stamp, fields, at=at)
    until = min(row[10], at + fields["lease_seconds"] * MICROSECONDS)
    tx.run("beat_job", {"tenant": stamp.tenant, "job": row[0], "lease_until": until, "progress": progress})
    return one(tx, stamp.tenant, row[0])


def done(tx: Transaction, stamp: Stamp, fields: dict[str, Any], *, at: int) -> dict[str, Any]:
    """End a job. Said twice by the same attempt it is one ending."""
    result = compact(fields["result"], bytes_max=limits.JOB_PROGRESS_BYTES_MAX)
    text.name(fields["worker"], what="worker")
    row = one_row(tx, stamp.tenant, text.identifier(fields["job"], what="job"))
    if row[6] in ("done", "failed") and row[7] == fields["attempt"]:
        return view(row)
    row = own_row(tx, stamp, fields, at=at)
    state = "done" if fields["ok"] else "failed"
    tx.run("end_job", {"tenant": stamp.tenant, "job": row[0], "state": state, "result": result, "at": at})
    return one(tx, stamp.tenant, row[0])


def reap(tx: Transaction, stamp: Stamp, fields: dict[str, Any], *, at: int) -> dict[str, Any]:
    """Give up jobs that were tried as often as a job is tried: they are said to be dead, with their last progress kept."""
    place = {"tenant": stamp.tenant, "queue": text.name(fields["queue"], what="queue"), "at": at}
    rows = tx.rows("jobs_given_up", place | {"attempts": limits.JOB_ATTEMPTS_MAX})
    why = compact({"why": f"{limits.JOB_ATTEMPTS_MAX} attempts ended without a result"})
    for (job,) in rows:
        tx.run("end_job", {"tenant": stamp.tenant, "job": job, "state": "dead", "result": why, "at": at})
    return {"dead": [one(tx, stamp.tenant, job) for (job,) in rows]}


def listed(reader: Reader, tenant: int, fields: dict[str, Any]) -> dict[str, Any]:
    """Jobs of a queue, newest first."""
    key = None if fields["key"] is None else text.key(fields["key"])
    queue = text.name(fields["queue"], what="queue")
    fields = fields | {"tenant": tenant, "open": int(fields["open"]), "queue": queue, "key": key}
    return {"jobs": [view(row) for row in reader.rows("jobs", fields)]}


def own_row(tx: Transaction, stamp: Stamp, fields: dict[str, Any], *, at: int) -> Row:
    """The job, if this worker still holds this attempt of it."""
    worker = text.name(fields["worker"], what="worker")
    row = one_row(tx, stamp.tenant, text.identifier(fields["job"], what="job"))
    mine = row[6] == "running" and (row[8], row[7]) == (worker, fields["attempt"])
    if not mine or row[9] <= at:
        raise Conflict(
            f"the job {row[0]!r} is no longer this worker's: another attempt has it, or it has ended; stop working on it"
        )
    return row


def told(tx: Reader, tenant: int, job: str, *, created: bool, replayed: bool) -> dict[str, Any]:
    found = one(tx, tenant, job)
    kept = {name: found[name] for name in ("job", "key", "state", "repeats")}
    return {**kept, "created": created, "replayed": replayed}


def one(tx: Reader, tenant: int, job: str) -> dict[str, Any]:
    return view(one_row(tx, tenant, job))


def one_row(tx: Reader, tenant: int, job: str) -> Row:
    row = tx.row("job", {"tenant": tenant, "job": job})
    if row is None:
        raise NotFound(f"there is no job {job!r}: look with `herdbook watch status`")
    return row


def view(row: Row) -> dict[str, Any]:
    (
        job,
        queue,
        key,
        body,
        budget,
        put_at,
        state,
        attempt,
        worker,
        lease_until,
        deadline_at,
        progress,
        result,
        ended_at,
        repeats,
    ) = row
    return {
        "job": job,
        "queue": queue,
        "key": key,
        "body": json.loads(body),
        "budget_seconds": budget,
        "put_at": clock.iso(put_at),
        "state": state,
        "attempt": attempt,
        "worker": worker,
        "lease_until": when(lease_until),
        "deadline_at": when(deadline_at),
        "progress": json.loads(progress),
        "result": json.loads(result),
        "ended_at": when(ended_at),
        "repeats": repeats,
    }


def when(at: int | None) -> str | None:
    return None if at is None else clock.iso(at)


def compact(value: Any, *, bytes_max: int = limits.VALUE_BYTES_MAX) -> str:
    """A value as the text that is stored, checked like any other value."""
    return strict_json.canonical(value, bytes_max=bytes_max)
