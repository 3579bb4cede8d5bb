"""Traces: the sealed record of a run. Each outcome, attestation and revision adds a link to the session's chain.

A link's digest covers the link before and everything the run had read, been given, done, tried and written since then. Reading a
trace recomputes the chain, so that a row changed, dropped or slipped in afterwards shows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from herdbook.record import seals
from herdbook.record.record import Record
from herdbook.record.seals import Part
from herdbook.record.store.protocol import Reader, Row, Transaction
from herdbook.record.types import Session

Steps = dict[str, list[Row]]
STEPS = {  # kinds of steps, and how they are asked for
    "reads": "reads_of_session",
    "actions": "actions_of",
    "contexts": "contexts_of",
    "attempts": "attempts_of",
    "writes": "writes_of",
}
START = {"reads": 0, "actions": 0, "contexts": 0, "attempts": 0, "writes": 0}


def missing(*, task_input: str | None, actions: int) -> list[str]:
    """What keeps a run from becoming a training example."""
    return [name for name, there in (("task_input", task_input is not None), ("actions", actions > 0)) if not there]


def run_steps(
    reader: Reader, tenant: int, session: str, since: Mapping[str, Any] = START, *, reads: list[Row] | None = None
) -> Steps:
    """What a run did since a link of its chain, by kind and in order; from the start, everything."""
    who = {"tenant": tenant, "session": session} | {name: since[name] for name in START}
    kinds = [kind for kind in STEPS if kind != "reads" or reads is None]
    found = dict(zip(kinds, reader.rows_of([STEPS[kind] for kind in kinds], who), strict=True))
    return found if reads is None else {"reads": [row for row in reads if row[7] > since["reads"]], **found}


def link(
    record: Record,
    tx: Transaction,
    tenant: int,
    session: str,
    what: str,
    row_seal: bytes,
    *,
    at: int,
    reads: list[Row] | None = None,
    last: list[Row] | None = None,
) -> dict[str, int]:
    """Seal what the run has come to, and count it; `row_seal` is of the outcome, attestation or revision that closes it.

    `reads` are all that the run was shown, and `last` is the link to chain to, where the caller has just asked for them.
    """
    found = tx.rows("last_trace", {"tenant": tenant, "session": session}) if last is None else last
    row = found[0] if found else None
    nth, before, event_before = (row[0] + 1, row[1], json.loads(row[2])) if row else (1, None, START)
    if before is None:
        before = beginning(record, tx, tenant, session)
    steps = run_steps(tx, tenant, session, since=event_before, reads=reads)
    counts = {name: event_before[name] + len(rows) for name, rows in steps.items()}
    folded = max((read[7] for read in steps["reads"]), default=event_before["reads"])
    text = json.dumps({**counts, "what": what, "seal": row_seal.hex(), "reads": folded}, separators=(",", ":"))
    digest = link_digest(before, text, steps)
    seal = record.seal("trace", tenant, session, nth, digest, at)
    tx.run(
        "insert_trace", {"tenant": tenant, "session": session, "n": nth, "event": text, "digest": digest, "seal": seal, "at": at}
    )
    return counts


def beginning(record: Record, reader: Reader, tenant: int, name: str) -> bytes:
    """What the first link stands on: who ran, where and on what."""
    session = record.session(tenant, name, reader)
    assert session is not None
    return said(session)


def said(session: Session) -> bytes:
    """A session's own row; its end may come after the first outcome."""
    return seals.digest("session", *session[:8])


def link_digest(before: bytes, text: str, steps: Steps) -> bytes:
    """A hash over the link before and the steps since."""
    parts: list[Part] = [before, text]
    for kind, columns in (("reads", 7), ("actions", 6), ("contexts", 4), ("attempts", 5), ("writes", 4)):
        for row in steps[kind]:
            parts.extend(row[:columns])
    return seals.digest(*parts)


def steps_between(steps: Steps, before: Mapping[str, Any], after: Mapping[str, Any]) -> Steps:
    """What one link covers: reads by when they came into the record, the others by their count."""
    found = {kind: rows[before[kind] : after[kind]] for kind, rows in steps.items() if kind != "reads"}
    return found | {"reads": [row for row in steps["reads"] if before["reads"] < row[7] <= after["reads"]]}


def event_of(text: str) -> dict[str, Any]:
    """What a link says it covers; empty for a text that no link has."""
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    whole = isinstance(event, dict) and isinstance(event.get("seal"), str) and all(type(event.get(name)) is int for name in START)
    return event if whole else {}


def check_chain(record: Record, reader: Reader, tenant: int, session: Session, steps: Steps, row_seals: set[str]) -> str:
    """`verified`, `unverified` (the key is away), `broken at link n`, or `none` where no outcome has sealed anything yet."""
    links = reader.rows("traces_of", {"tenant": tenant, "session": session.id})
    before, event_before = said(session), START
    for nth, text, digest, seal, at in links:
        event = event_of(text)
        as_said = (
            event
            and event["seal"] in row_seals
            and link_digest(before, text, steps_between(steps, event_before, event)) == digest
        )
        if not as_said or (record.sealing and not record.holds(seal, "trace", tenant, session.id, nth, digest, at)):
            return f"broken at link {nth}"
        before, event_before = seal, event
    if row_seals - {event_of(text)["seal"] for _, text, _, _, _ in links}:
        return "broken: an outcome, attestation or revision has no link"
    if not links:
        return "none"
    return "verified" if record.sealing else "unverified"
