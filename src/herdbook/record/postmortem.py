"""Looking back: a run as a postmortem wants it, and an entry's trust with every move that made it. Reads only.

What is sealed is checked as it is read: an outcome, attestation or revision that was changed afterwards is refused, not shown.
"""

from __future__ import annotations

import json
from typing import Any

from herdbook.base import clock
from herdbook.base.errors import Erased, HerdbookError, NotFound, SealBroken
from herdbook.record import traces, trust
from herdbook.record.erasing import erased_sessions
from herdbook.record.outcomes import Outcome, moves
from herdbook.record.record import Record
from herdbook.record.scoped import moved_within
from herdbook.record.sessions import visible
from herdbook.record.store.protocol import Reader, Row
from herdbook.record.types import Head, Session, Stamp, Version


def trace(record: Record, tx: Reader, stamp: Stamp, ref: str) -> dict[str, Any]:
    """The record of a run, by an outcome's ref or by its session id. A box sees its own runs only."""
    row = tx.row("outcome", {"tenant": stamp.tenant, "ref": ref})
    session = record.session(stamp.tenant, row[2] if row else ref, tx)
    if session is None or not visible(record, stamp, session):
        raise NotFound(f"there is no outcome or session {ref!r}: the answer to commit_outcome names its ref")
    if erased_sessions(tx, stamp.tenant, [session.id]):
        raise Erased(f"the run {ref!r} was erased: it is told to nobody")
    session = Session(*(tx.row("session", {"tenant": stamp.tenant, "session": session.id}) or session))
    steps = traces.run_steps(tx, stamp.tenant, session.id)
    outcomes = [Outcome(*found) for found in tx.rows("outcomes_of_session", {"tenant": stamp.tenant, "session": session.id})]
    told = [outcome_view(record, tx, stamp.tenant, outcome) for outcome in outcomes]
    seals = {seal for view in told for seal in view.pop("seals")}
    task_input = next((o.task_input for o in outcomes if o.task_input is not None), None)
    lacking = traces.missing(task_input=task_input, actions=len(steps["actions"]))
    return session_view(tx, stamp.tenant, session) | {
        **steps_view(record, stamp.tenant, steps),
        "outcomes": told,
        "seal": traces.check_chain(record, tx, stamp.tenant, session, steps, seals),
        "trainable": bool(outcomes) and not lacking,
        "missing": lacking if outcomes else ["outcome", *lacking],
    }


def session_view(tx: Reader, tenant: int, session: Session) -> dict[str, Any]:
    box = tx.row("box", {"tenant": tenant, "box": session.box}) if session.box else None
    return {
        "session": session.id,
        "agent": session.agent,
        "identity": session.identity,
        "channel": session.channel,
        "box": session.box,
        "provider": box[1] if box else None,
        "isolation": box[2] if box else None,
        "task": session.task,
        "entity": session.entity,
        "started_at": clock.iso(session.started_at),
        "ended_at": None if session.ended_at is None else clock.iso(session.ended_at),
    }


def steps_view(record: Record, tenant: int, steps: dict[str, list[Row]]) -> dict[str, Any]:
    """What the run read, was given, did, tried and wrote."""
    named = {row[1] for row in steps["reads"]} | {row[0] for row in steps["writes"]}
    named |= {version for row in steps["attempts"] for version in json.loads(row[2])}
    texts = record.versions(tenant, named)
    seen = {version for version, text in texts.items() if record.reach.everything or within(record, text)}
    return {
        "outside": len(named) - len(seen),  # what this key does not reach is counted, and not named
        "versions": [place(texts, version) for version in sorted(seen)],  # what they say, each once
        "reads": [
            name_of(texts, row[1])
            | {"rank": row[2], "how": row[3], "served": bool(row[4]), "probability": row[5], "at": clock.iso(row[6])}
            for row in steps["reads"]
            if row[1] in seen
        ],
        "contexts": [{"n": n, "name": name, "text": text, "at": clock.iso(at)} for n, name, text, at in steps["contexts"]],
        "actions": [
            {
                "n": n,
                "tool": tool,
                "args": json.loads(args),
                "result": json.loads(result),
                "ok": None if ok is None else bool(ok),
                "at": clock.iso(at),
            }
            for n, tool, args, result, ok, at in steps["actions"]
        ],
        "attempts": [
            {
                "n": n,
                "result": result,
                "used": [name_of(texts, version) for version in json.loads(used) if version in seen],
                "note": note,
                "at": clock.iso(at),
            }
            for n, result, used, note, at in steps["attempts"]
        ],
        "writes": [place(texts, row[0]) for row in steps["writes"] if row[0] in seen],
    }


def within(record: Record, text: Version | HerdbookError) -> bool:
    """Whether a version, or what is left of it, is of a path within reach."""
    path = text.path if isinstance(text, Version) else text.details.get("entity")
    return path is not None and record.reach.covers(path)


def name_of(texts: dict[int, Any], version: int) -> dict[str, Any]:
    """Which version of which entry; one with a broken seal says only that."""
    found = texts[version]
    if isinstance(found, HerdbookError):
        return {"entity": None, "key": None, "version": None, "refused": found.message}
    return {"entity": found.path, "key": found.key, "version": found.number}


def place(texts: dict[int, Any], version: int) -> dict[str, Any]:
    """The same, with what it says."""
    found = texts[version]
    if isinstance(found, HerdbookError):
        return name_of(texts, version)
    said = {"value": json.loads(found.value_text), "why": found.why, "author": found.author, "written_at": clock.iso(found.at)}
    return name_of(texts, version) | said


def outcome_view(record: Record, tx: Reader, tenant: int, outcome: Outcome) -> dict[str, Any]:
    """An outcome with who vouched for it, what it was revised to and what it moved; seals checked."""
    checked(record, outcome.seal, "outcome", tenant, *outcome[:11], what=f"outcome {outcome.ref!r}")
    attested = tx.rows("attestations_of", {"tenant": tenant, "outcome": outcome.id})
    revised = tx.rows("revisions_of", {"tenant": tenant, "outcome": outcome.id})
    for row in attested:
        parts = ("attestation", tenant, outcome.id, *row[:7], *placed(row[8]))
        checked(record, row[7], *parts, what=f"an attestation of {outcome.ref!r}")
    for row in revised:
        checked(record, row[5], "revision", tenant, outcome.id, *row[:5], *placed(row[6]), what=f"a revision of {outcome.ref!r}")
    return {
        "ref": outcome.ref,
        "type": outcome.type,
        "effective_type": outcome.effective_type,
        "at": clock.iso(outcome.at),
        "task_input": outcome.task_input,
        "observed": json.loads(outcome.observed or "[]"),
        "artifacts": json.loads(outcome.artifacts or "null"),
        "verified_by": outcome.verified_by,
        "attested": bool(attested),
        "attestations": [
            {"by": who, "channel": channel, "exit_code": code, "result": result, "note": note, "at": clock.iso(at)}
            for _, who, channel, code, result, note, at, *_ in attested
        ],
        "revisions": [
            {"n": n, "type": kind, "why": why, "by": who, "at": clock.iso(at)} for n, kind, why, who, at, *_ in revised
        ],
        "moved": moved_within(record.reach, moves(tx, tenant, outcome.id)),
        "seals": [(seal or b"").hex() for seal in (outcome.seal, *(row[7] for row in attested), *(row[5] for row in revised))],
    }


def placed(number: int | None) -> tuple[int, ...]:
    """The place in the feed, which a row from before there was one has not: it was sealed without."""
    return () if number is None else (number,)


def checked(record: Record, seal: bytes | None, *parts: Any, what: str) -> None:
    """Refuse what is not as it was written."""
    try:
        record.verify(seal, *parts)
    except SealBroken as problem:
        raise SealBroken(f"{what} is not what was written: it is refused; restore the record from a backup") from problem


def why(record: Record, tx: Reader, tenant: int, path: str, key: str) -> dict[str, Any]:
    """Every claim an entry made, newest first, each with the moves that made its confidence."""
    head, base = record.entry(tenant, path, key)
    texts = record.versions(tenant, [number for number, _ in record.version_ids(tenant, path, key)])
    stated: dict[bytes, list[int]] = {}
    for version in texts.values():
        if not isinstance(version, HerdbookError):
            stated.setdefault(version.claim, []).append(version.number)
    rows = tx.rows("claims_of_entry", {"tenant": tenant, "path": record.path_id(tenant, path, tx), "entry": head.entry_id})
    return {
        "entity": path,
        "key": key,
        "current": max((n for numbers in stated.values() for n in numbers), default=0),
        "base_rate": base,
        "claims": sorted(
            (claim_view(tx, tenant, head.entry_id, row, versions=stated.get(row[0], []), base=base) for row in rows),
            key=lambda claim: max(claim["versions"], default=0),
            reverse=True,
        ),
    }


def claim_view(tx: Reader, tenant: int, entry: int, row: Row, *, versions: list[int], base: float) -> dict[str, Any]:
    claim, initial, confidence, count, recalls, observed, corroborated, held, failed, failed_since = row
    head = Head(
        "", "", 0, 0, None, claim, confidence, count, recalls, observed, corroborated, held, failed, failed_since, 0, *[None] * 4
    )
    moved = tx.rows("moves_of_claim", {"tenant": tenant, "entry": entry, "claim": claim})
    folded = tx.rows("refolds_of_claim", {"tenant": tenant, "entry": entry, "claim": claim})
    gone = erased_sessions(tx, tenant, sorted({found[11] for found in moved}))
    told = [(found[0], move_view(found) | (NOBODY if found[11] in gone else {})) for found in moved] + [
        (found[8], refold_view(found)) for found in folded
    ]
    return {
        "versions": sorted(versions),
        "initial": initial,
        "confidence": confidence,
        "standing": trust.standing(head),
        "evidence": round(trust.evidence(held, failed, base), 4),
        "held": held,
        "failed": failed,
        "recalls": recalls,
        "observed": observed,
        "corroborated": corroborated,
        "moves": [view for _, view in sorted(told, key=lambda move: move[0])],  # in order of arrival, whatever the clock said
    }


NOBODY = {"agent": None, "identity": None, "box": None}  # who moved trust and was erased; the move stays, or the sum would not


def move_view(row: Row) -> dict[str, Any]:
    (
        n,
        at,
        ref,
        kind,
        how,
        before,
        factor,
        after,
        version,
        agent,
        box,
        session,
        who,
        credit,
        result,
        attested,
        read_at,
        effective,
    ) = row
    return {
        "n": n,
        "at": clock.iso(at),
        "ref": ref,
        "type": kind,
        "effective_type": effective,
        "how": how,
        "before": before,
        "factor": factor,
        "after": after,
        "version": version,
        "agent": agent,
        "identity": who,
        "box": box,
        "session": session,
        "attested": bool(attested),
        "credit": credit,
        "held": bool(result),
        "read_at": None if read_at is None else clock.iso(read_at),
    }


def refold_view(row: Row) -> dict[str, Any]:
    at, ref, kind, before, after, reason, who, nth, _ = row
    return {
        "n": None,
        "at": clock.iso(at),
        "ref": ref,
        "type": kind,
        "how": "revision",
        "revision": nth,
        "before": before,
        "after": after,
        "why": reason,
        "identity": who,
    }
