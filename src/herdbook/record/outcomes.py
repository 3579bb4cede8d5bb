"""What happened, and what it moves. One transaction: the outcome, its causes (the trigger moves trust), evidence, the seal.

An outcome counts once per ref, for ever. Anybody may claim one; only somebody outside the box can attest one, and only an
attested success gives standing. A revision appends, and confidence becomes the fold of the effective outcomes.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from herdbook.base import clock, limits, strict_json, text
from herdbook.base.errors import Broken, Forbidden, InvalidRequest, NotFound, RequestConflict, TooLarge, UnknownOutcomeType
from herdbook.record import answers, attesting, credit, precedents, seals, traces, trust
from herdbook.record.record import Record
from herdbook.record.scoped import moved_within
from herdbook.record.sessions import require_session, resolve_used, visible
from herdbook.record.store.protocol import Reader, Row, Transaction
from herdbook.record.tunables import credit_weights, in_force, line_of
from herdbook.record.types import Session, Stamp

MOVE = ("entity", "key", "version", "before", "factor", "after", "how")  # what is told of one


class Cause(NamedTuple):
    """One version an outcome rests on."""

    version: int
    claim: bytes
    entry: int
    path_id: int
    path: str
    session: str | None
    box: str | None
    identity: str
    applies_when: str | None
    key: str
    number: int
    confidence: float  # of the claim, and how many moves it has behind it, before this outcome
    moves: int
    how: str  # used, served or attempt
    credit: float
    result: int


class Outcome(NamedTuple):
    """One outcome, as it is stored."""

    id: int
    ref: str
    session: str
    type: str
    identity: str
    box: str | None
    task_input: str | None
    observed: str | None
    artifacts: str | None
    verified_by: str | None
    at: int
    seal: bytes
    effective_type: str


def checked_type(name: str) -> str:
    """One of the four names; anything else is refused rather than stored as something it is not."""
    if name not in trust.OUTCOME_TYPES:
        raise UnknownOutcomeType(f"{name!r} is not an outcome: send one of {', '.join(trust.OUTCOME_TYPES)}")
    return name


def commit(record: Record, tx: Transaction, stamp: Stamp, fields: dict[str, Any], *, at: int) -> dict[str, Any]:
    """Record what happened, once per ref, and move the trust of what the run rests on."""
    ref = text.identifier(fields["ref"], what="outcome ref")
    body = outcome_body(record, fields)
    session = require_session(record, tx, stamp, fields["session"])
    digest = seals.digest("outcome", fields["session"], *body.values(), json.dumps(fields["used"], sort_keys=True))
    before: dict[str, Any] | None = answers.first(tx, stamp.tenant, "outcome", ref, digest)
    if before is not None:
        return before | {"moved": moves(tx, stamp.tenant, before.pop("outcome"))}
    said = fields | {"observed": body["observed"]}
    asked = ["uncharged_attempts", "last_trace", *(["reads_of_session"] if said["used"] is None else [])]
    tries, last, *read = tx.rows_of(asked, {"tenant": stamp.tenant, "session": session.id, "reads": 0})
    reads = read[0] if read else None
    failed = failed_attempts(tx, stamp.tenant, session.id, tries)
    causes = find_causes(record, tx, stamp, session, said, reads, failed, success=body["type"] == "success", at=at)
    outcome = insert_outcome(record, tx, stamp, session, ref, body, at=at)
    moved = move_trust(tx, stamp.tenant, outcome, causes)
    note_precedents(record, tx, stamp.tenant, session, outcome, causes)
    counts = traces.link(record, tx, stamp.tenant, session.id, "outcome", outcome.seal, at=at, reads=reads, last=last)
    lacking = traces.missing(task_input=body["task_input"], actions=counts["actions"])
    answer = {
        "outcome": outcome.id,
        "ref": ref,
        "type": outcome.type,
        "session": session.id,
        "at": clock.iso(at),
        "attested": False,
        "trainable": not lacking,
        "missing": lacking,
        "warnings": warnings_for(causes, fields),
    }
    answers.keep(tx, stamp.tenant, "outcome", ref, digest, answer)
    return {name: value for name, value in answer.items() if name != "outcome"} | {"moved": moved}


def outcome_body(record: Record, fields: dict[str, Any]) -> dict[str, Any]:
    """The parts of an outcome as they are stored, canonical and within limits."""
    observed = fields["observed"]
    if observed is not None and len(observed) > limits.OBSERVED_MAX:
        raise TooLarge(f"{len(observed)} observed conditions are over the limit of {limits.OBSERVED_MAX}")
    names = (
        None if observed is None else [text.name(o, what="condition", chars_max=limits.APPLIES_WHEN_CHARS_MAX) for o in observed]
    )
    task_input, artifacts, verified_by = fields["task_input"], fields["artifacts"], fields["verified_by"]
    return {
        "type": checked_type(fields["type"]),
        "task_input": None if task_input is None else text.prose(task_input, what="task input", chars_max=limits.TASK_CHARS_MAX),
        "observed": None if names is None else strict_json.canonical(names),
        "artifacts": None if artifacts is None else strict_json.canonical(artifacts, bytes_max=record.value_bytes_max),
        "verified_by": None if verified_by is None else text.name(verified_by, what="verified_by"),
    }


def find_causes(
    record: Record,
    tx: Transaction,
    stamp: Stamp,
    session: Session,
    fields: dict[str, Any],
    reads: list[Row] | None,
    failed: list[int],
    *,
    success: bool,
    at: int,
) -> list[Cause]:
    """What this outcome rests on, one version a claim: what was used, or else all that was served; and what failed tries used."""
    opened = frozenset[int]()
    wanted = {"attempt": failed}  # they came before what the run ended with
    if reads is not None:
        opened = attesting.opened(reads)
        latest = {(row[9], row[8]): row[1] for row in reads if row[4]}  # by entry and claim, the version that was served last
        wanted["served"] = list(latest.values())
    else:
        wanted["used"] = resolve_used(record, tx, stamp, session.id, fields["used"])
    observed = frozenset(json.loads(fields["observed"] or "[]"))
    found = [
        cause
        for how, versions in wanted.items()
        for cause in load_causes(
            tx, stamp.tenant, how, versions, opened=opened, observed=observed, result=int(success and how != "attempt")
        )
    ]
    return count_once(tx, stamp, charge_once(found), at=at)


def charge_once(causes: list[Cause]) -> list[Cause]:
    """One run that fails is one failure: what it used is not charged again for the attempt that failed within it."""
    failed = {(cause.entry, cause.claim) for cause in causes if cause.how == "used" and not cause.result}
    if not failed:
        return causes
    return [
        cause._replace(credit=0.0) if cause.how == "attempt" and (cause.entry, cause.claim) in failed else cause
        for cause in causes
    ]


def failed_attempts(tx: Transaction, tenant: int, session: str, tries: list[Row]) -> list[int]:
    """The versions that failed tries used, of those that no outcome has charged yet."""
    used = [version for result, used in tries if result == "failure" for version in json.loads(used)]
    if tries:
        tx.run("charge_attempts", {"tenant": tenant, "session": session})
    return list(dict.fromkeys(used))


def load_causes(
    tx: Transaction,
    tenant: int,
    how: str,
    versions: list[int],
    *,
    opened: frozenset[int],
    observed: frozenset[str],
    result: int,
) -> list[Cause]:
    """Causes in one order for every writer: by path, entry and claim. One a claim, its newest version."""
    if not versions:
        return []
    rows = tx.rows("causes_of", {"tenant": tenant, "versions": json.dumps(versions)})
    by_claim = {(row[2], row[1]): row for row in sorted(rows)}
    weights = {path: weights_at(tx, tenant, path) for path in {row[4] for row in rows}}
    found = []
    for row in sorted(by_claim.values(), key=lambda row: (row[4], row[2], row[1])):
        way = credit.way(how, opened=row[0] in opened)
        due = credit.weight(way, applies_when=row[8], observed=observed, weights=weights[row[4]])
        found.append(Cause._make((*row, how, due, result)))
    return found


def weights_at(tx: Reader, tenant: int, path: str) -> dict[str, float]:
    """What credit is tuned to at a path."""
    return credit_weights(in_force(tx.rows("tuning_of", {"tenant": tenant, "paths": json.dumps(line_of(path))})))


def count_once(tx: Transaction, stamp: Stamp, causes: list[Cause], *, at: int) -> list[Cause]:
    """Credit counts once per identity, entry and day until it is attested, so that nobody votes a hundred times by retrying."""
    who = {"tenant": stamp.tenant, "identity": stamp.identity, "day": at // clock.MICROSECONDS_PER_DAY}
    entries = list(dict.fromkeys(cause.entry for cause in causes if cause.credit))
    rows = tx.rows("counted_already", who | {"entries": json.dumps(entries)}) if entries else []
    already = {row[0] for row in rows}
    tx.many("count_once", [(stamp.tenant, entry, stamp.identity, who["day"]) for entry in entries if entry not in already])
    return [cause._replace(credit=0.0) if cause.entry in already else cause for cause in causes]


def insert_outcome(
    record: Record, tx: Transaction, stamp: Stamp, session: Session, ref: str, body: dict[str, Any], *, at: int
) -> Outcome:
    number = tx.next_id()
    parts = (
        number,
        ref,
        session.id,
        body["type"],
        stamp.identity,
        stamp.box,
        body["task_input"],
        body["observed"],
        body["artifacts"],
        body["verified_by"],
        at,
    )
    outcome = Outcome(*parts, seal=record.seal("outcome", stamp.tenant, *parts), effective_type=body["type"])
    tx.run(
        "insert_outcome",
        {
            "tenant": stamp.tenant,
            "outcome": number,
            "ref": ref,
            "session": session.id,
            "identity": stamp.identity,
            "box": stamp.box,
            "at": at,
            "seal": outcome.seal,
            **body,
        },
    )
    return outcome


def move_trust(tx: Transaction, tenant: int, outcome: Outcome, causes: list[Cause]) -> list[dict[str, Any]]:
    """Tell the moves; the trigger makes them, and lets no other pass. An attempt charges evidence only: its factor is one."""
    factors: dict[str, float] = dict(tx.rows("multipliers", {"tenant": tenant, "type": outcome.type}))
    stood: dict[tuple[int, bytes], tuple[float, int]] = {}  # where this outcome has left a claim so far
    rows, told = [], []
    for c in causes:
        factor = 1.0 if c.how == "attempt" else credit.nearest_factor(c.path, factors)
        if factor is None:
            raise Broken("the record refused this: no_multiplier")
        before, moves = stood.get((c.entry, c.claim), (c.confidence, c.moves))
        after, nth = trust.moved(before, factor), moves + 1
        stood[c.entry, c.claim] = (after, nth)
        whole = (c.how, factor, c.credit, c.result, factor, c.entry, c.claim, nth, before, after)
        rows.append((tenant, outcome.id, c.version, *whole))
        told.append((c.path, c.key, c.number, nth, before, factor, after, c.how))
    tx.many("insert_cause", rows)
    success = int(outcome.type == "success")
    tried = {(c.path_id, c.how == "attempt") for c in causes if c.credit}
    for path, failed in sorted(tried):
        tx.run("add_base_rate", {"tenant": tenant, "path": path, "outcomes": 1, "successes": 0 if failed else success})
    return [dict(zip(MOVE, (*move[:3], *move[4:]), strict=True)) for move in sorted(told)]


def note_precedents(
    record: Record, tx: Transaction, tenant: int, session: Session, outcome: Outcome, causes: list[Cause]
) -> None:
    """What runs with such a task come to use; nothing of it is what the run wrote itself."""
    counted = [cause for cause in causes if cause.credit and cause.how != "attempt"]
    task, held = attesting.task_of(record, tx, tenant, outcome), outcome.type == "success"
    precedents.count(tx, tenant, task, [cause.path_id for cause in counted], at=outcome.at)
    uses = [precedents.Use(c.version, c.credit) for c in counted if c.how == "used" and c.session != session.id]
    precedents.used(tx, tenant, task, uses, held=held)


def moves(tx: Reader, tenant: int, outcome: int) -> list[dict[str, Any]]:
    """What an outcome moved, as it happened."""
    rows = tx.rows("moves_of_outcome", {"tenant": tenant, "outcome": outcome})
    return [dict(zip(MOVE, row, strict=False)) for row in rows]


def warnings_for(causes: list[Cause], fields: dict[str, Any]) -> list[str]:
    """What the committer should know: nothing moved, or nothing will be trainable."""
    found = []
    if not causes:
        found.append("nothing moved: this session was served nothing, so no entry rests on this outcome")
    if fields["task_input"] is None:
        found.append("no task_input was given: the run cannot become a training example without the task it was asked to do")
    return found


def find(record: Record, tx: Transaction, stamp: Stamp, ref: str) -> Outcome:
    """An outcome as it was written. Raises NotFound, and SealBroken for one that was changed or did not come through herdbook."""
    tenant = stamp.tenant
    row = tx.row("outcome", {"tenant": tenant, "ref": ref})
    session = None if row is None or record.reach.everything else record.session(tenant, row[2], tx)
    if row is None or (session is not None and not visible(record, stamp, session)):
        raise NotFound(f"there is no outcome {ref!r}: look with `herdbook trace`")
    outcome = Outcome(*row)
    record.verify(outcome.seal, "outcome", tenant, *outcome[:11])
    return outcome


def attest(record: Record, tx: Transaction, stamp: Stamp, fields: dict[str, Any], *, at: int) -> dict[str, Any]:
    """Vouch for an outcome from outside its box. A claimed success that the exit code contradicts is revised to a failure."""
    result = attested_result(fields["exit_code"], fields["result"])
    outcome = find(record, tx, stamp, text.identifier(fields["ref"], what="outcome ref"))
    for whose in ("session", "box"):
        if fields[whose] is not None and fields[whose] != getattr(outcome, whose):
            raise RequestConflict(f"the outcome {outcome.ref!r} is of another {whose}: attest the one you saw")
    note = None if fields["note"] is None else text.prose(fields["note"], what="note", chars_max=limits.WHY_CHARS_MAX)
    known = attesting.same_attestation(tx, stamp, outcome, result=result, exit_code=fields["exit_code"], note=note)
    standing: list[dict[str, Any]] = []
    moved: list[dict[str, Any]] = []
    if known is None:
        standing = attesting.record_attestation(
            record, tx, stamp, outcome, result=result, exit_code=fields["exit_code"], note=note, at=at
        )
        if result == "failure" and outcome.effective_type == "success":
            why = f"attested: exit code {fields['exit_code']}" if fields["exit_code"] is not None else "attested as a failure"
            moved = append_revision(record, tx, stamp, outcome, "failure", why, at=at)["moved"]
    return {
        "ref": outcome.ref,
        "session": outcome.session,
        "box": outcome.box,
        "result": result,
        "type": find(record, tx, stamp, outcome.ref).effective_type,
        "exit_code": fields["exit_code"],
        "by": stamp.identity,
        "at": clock.iso(at if known is None else known),
        "moved": moved_within(record.reach, moved),
        "standing": moved_within(record.reach, standing),
    }


def attested_result(exit_code: int | None, result: str | None) -> str:
    """What the attestor says, from an exit code, a word, or both if they agree."""
    seen = None if exit_code is None else ("success" if exit_code == 0 else "failure")
    if seen is None and result is None:
        raise InvalidRequest("an attestation needs an exit code or a result: send exit_code=0, or result='success'")
    if seen and result and seen != result:
        raise InvalidRequest(f"exit code {exit_code} is a {seen}, not a {result}: send one of the two")
    return seen or str(result)


def revise(record: Record, tx: Transaction, stamp: Stamp, fields: dict[str, Any], *, at: int) -> dict[str, Any]:
    """Say that an outcome was something else after all. Whoever committed it may, and whoever may attest."""
    new_type = checked_type(fields["type"])
    outcome = find(record, tx, stamp, text.identifier(fields["ref"], what="outcome ref"))
    if not stamp.attests and (stamp.identity, stamp.box) != (outcome.identity, outcome.box):
        raise NotFound(f"there is no outcome {outcome.ref!r} of yours: look with `herdbook trace`")
    why = None if fields["why"] is None else text.prose(fields["why"], what="why", chars_max=limits.WHY_CHARS_MAX)
    name = text.identifier(fields["request_id"], what="request id")
    digest = seals.digest("revise", outcome.ref, new_type, why)
    before: dict[str, Any] | None = answers.first(tx, stamp.tenant, "revise", name, digest)
    if before is None:
        if not stamp.attests:
            refuse_raising(tx, stamp, outcome, new_type)
        before = append_revision(record, tx, stamp, outcome, new_type, why, at=at) | {"request_id": name}
        answers.keep(tx, stamp.tenant, "revise", name, digest, before)
    return before | {"moved": moved_within(record.reach, before["moved"])}


def refuse_raising(tx: Transaction, stamp: Stamp, outcome: Outcome, new_type: str) -> None:
    """Once somebody outside has attested an outcome, its box may say that it was worse, never that it was better."""
    better = trust.MULTIPLIERS[new_type] > trust.MULTIPLIERS[outcome.effective_type]
    if better and tx.rows("attestations_of", {"tenant": stamp.tenant, "outcome": outcome.id}):
        raise Forbidden(f"the outcome {outcome.ref!r} is attested: only a credential with the scope 'attest' may raise it")


def append_revision(
    record: Record, tx: Transaction, stamp: Stamp, outcome: Outcome, new_type: str, why: str | None, *, at: int
) -> dict[str, Any]:
    """Append a revision; the trigger refolds. Standing and base rate follow the effective type."""
    row = tx.row("next_revision", {"tenant": stamp.tenant, "outcome": outcome.id})
    assert row is not None
    nth = row[0]
    place = tx.next_id()  # in the feed
    seal = record.seal("revision", stamp.tenant, outcome.id, nth, new_type, why, stamp.identity, at, place)
    tx.run(
        "insert_revision",
        {
            "tenant": stamp.tenant,
            "id": place,
            "outcome": outcome.id,
            "n": nth,
            "type": new_type,
            "why": why,
            "identity": stamp.identity,
            "at": at,
            "seal": seal,
        },
    )
    traces.link(record, tx, stamp.tenant, outcome.session, "revision", seal, at=at)
    was, now = outcome.effective_type == "success", new_type == "success"
    caused = tx.rows("moves_of_outcome", {"tenant": stamp.tenant, "outcome": outcome.id})
    if was != now:
        attesting.follow_revision(record, tx, stamp.tenant, outcome, now=now)
        for path in dict.fromkeys(row[0] for row in caused if row[7] and row[6] != "attempt"):
            number = record.path_id(stamp.tenant, path, tx)
            tx.run("add_base_rate", {"tenant": stamp.tenant, "path": number, "outcomes": 0, "successes": int(now) - int(was)})
    return {
        "ref": outcome.ref,
        "type": new_type,
        "was": outcome.effective_type,
        "revision": nth,
        "at": clock.iso(at),
        "moved": refolded(tx, stamp.tenant, outcome.id, nth, caused),
    }


def refolded(tx: Transaction, tenant: int, outcome: int, nth: int, caused: list[Row]) -> list[dict[str, Any]]:
    """What a revision moved, by entry."""
    places = {(row[8], row[9]): row[:3] for row in caused}
    return [
        dict(zip(("entity", "key", "version"), places[entry, claim], strict=True)) | {"before": before, "after": after}
        for entry, claim, before, after in tx.rows("refolds_of", {"tenant": tenant, "outcome": outcome, "n": nth})
    ]
