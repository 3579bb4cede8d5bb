"""Attestation: what somebody outside the box saw. It gives evidence its full credit, and an attested success gives standing.

A session's own writes become observed; what it used becomes corroborated where another box (or, without boxes, another identity)
wrote it. A later revision takes back exactly what was given.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from herdbook.record import credit, precedents, traces, trust
from herdbook.record.erasing import is_erased
from herdbook.record.record import Record
from herdbook.record.store.protocol import Row, Transaction
from herdbook.record.tunables import credit_weights, in_force, line_of
from herdbook.record.types import Head, Stamp

if TYPE_CHECKING:
    from herdbook.record.outcomes import Outcome


def same_attestation(
    tx: Transaction, stamp: Stamp, outcome: Outcome, *, result: str, exit_code: int | None, note: str | None
) -> int | None:
    """When this was attested before in the same words, so that a retry changes nothing."""
    said = (stamp.identity, stamp.channel, exit_code, result, note)
    rows = tx.rows("attestations_of", {"tenant": stamp.tenant, "outcome": outcome.id})
    return next((row[6] for row in rows if tuple(row[1:6]) == said), None)


def record_attestation(
    record: Record,
    tx: Transaction,
    stamp: Stamp,
    outcome: Outcome,
    *,
    result: str,
    exit_code: int | None,
    note: str | None,
    at: int,
) -> list[dict[str, Any]]:
    """Append an attestation and give what it earns; returns the standings that changed."""
    tenant = stamp.tenant
    earlier = tx.rows("attestations_of", {"tenant": tenant, "outcome": outcome.id})
    parts = (outcome.id, len(earlier) + 1, stamp.identity, stamp.channel, exit_code, result, note, at)
    place = tx.next_id()  # in the feed
    seal = record.seal("attestation", tenant, *parts, place)
    tx.run(
        "insert_attestation",
        {
            "tenant": tenant,
            "id": place,
            "outcome": outcome.id,
            "n": len(earlier) + 1,
            "identity": stamp.identity,
            "channel": stamp.channel,
            "exit_code": exit_code,
            "result": result,
            "note": note,
            "at": at,
            "seal": seal,
        },
    )
    traces.link(record, tx, tenant, outcome.session, "attestation", seal, at=at)
    if not earlier:
        credit_in_full(record, tx, tenant, outcome)
    if result != "success" or outcome.effective_type != "success" or any(row[4] == "success" for row in earlier):
        return []
    note_written(record, tx, tenant, outcome, at=at)
    return give_standing(tx, tenant, outcome, sign=1)


def opened(reads: Iterable[Row]) -> frozenset[int]:
    """Versions that a session was shown, by a briefing or a search, and then read by key; of its reads, in order."""
    shown, found = set[int](), set[int]()
    for row in reads:
        if row[4] and row[3] != "read":
            shown.add(row[1])
        elif row[4] and row[1] in shown:
            found.add(row[1])
    return frozenset(found)


def opened_by_then(tx: Transaction, tenant: int, outcome: Outcome) -> frozenset[int]:
    """The same of an outcome's session when it told its outcome: what it opened later was not what its success rests on."""
    until = run_by_then(tx, tenant, outcome)["reads"]
    reads = tx.rows("reads_of_session", {"tenant": tenant, "session": outcome.session, "reads": 0})
    return opened(row for row in reads if row[7] <= until)


def task_of(record: Record, tx: Transaction, tenant: int, outcome: Outcome) -> str | None:
    """What the run was asked; of one that is erased nobody is told."""
    session = record.session(tenant, outcome.session, tx)
    return None if is_erased(record, tx, tenant, outcome.session) else (session and session.task) or outcome.task_input


def note_written(record: Record, tx: Transaction, tenant: int, outcome: Outcome, *, at: int) -> None:
    """What a run that ended well wrote down is about its task, until runs with such a task do without it."""
    task = task_of(record, tx, tenant, outcome)
    written = [row[0] for row in written_by_then(tx, tenant, outcome)]
    used = {row[10] for row in tx.rows("moves_of_outcome", {"tenant": tenant, "outcome": outcome.id}) if row[7]}
    rows = tx.rows("causes_of", {"tenant": tenant, "versions": json.dumps([*written, *used])}) if written else []
    counted = {row[3] for row in rows if row[0] in used}  # paths that know of this run
    precedents.count(tx, tenant, task, {row[3] for row in rows} - counted, at=at)
    precedents.wrote(tx, tenant, task, written)


def credit_in_full(record: Record, tx: Transaction, tenant: int, outcome: Outcome) -> None:
    """Attested outcomes always count: give each cause the credit that counting once a day had withheld."""
    observed = frozenset(json.loads(outcome.observed)) if outcome.observed else frozenset()
    rows = tx.rows("moves_of_outcome", {"tenant": tenant, "outcome": outcome.id})
    causes = tx.rows("causes_of", {"tenant": tenant, "versions": json.dumps([row[10] for row in rows])})
    named = {cause[0]: cause for cause in causes}
    counted = {(named[row[10]][3], row[6] == "attempt") for row in rows if row[7]}  # paths whose base rate knows of these tries
    failed = {(row[8], row[9]) for row in rows if row[6] == "used" and not row[11]}  # one run that fails is one failure
    looked_at = opened_by_then(tx, tenant, outcome) if any(row[6] == "served" for row in rows) else frozenset()
    paths, uses = list[int](), list[precedents.Use]()
    for row in rows:
        how, given, entry, claim, version, result, nth = row[6:]
        if how not in credit.WEIGHTS or (how == "attempt" and (entry, claim) in failed):
            continue
        path, applies_when = named[version][3], named[version][8]
        tuned = in_force(tx.rows("tuning_of", {"tenant": tenant, "paths": json.dumps(line_of(named[version][4]))}))
        way = credit.way(how, opened=version in looked_at)
        due = credit.weight(way, applies_when=applies_when, observed=observed, weights=credit_weights(tuned))
        if due <= given:
            continue
        more = due - given
        tx.run("credit_cause", {"tenant": tenant, "outcome": outcome.id, "version": version, "how": how, "credit": due})
        more_of = {"held": more * result, "failed": more * (1 - result), "n": nth}
        tx.run("credit_claim", {"tenant": tenant, "version": version, **more_of})
        if how == "used" and named[version][5] != outcome.session:
            uses.append(precedents.Use(version, more))
        if (path, how == "attempt") not in counted:
            counted.add((path, how == "attempt"))
            tx.run("add_base_rate", {"tenant": tenant, "path": path, "outcomes": 1, "successes": result})
            if how != "attempt":
                paths.append(path)
    task = task_of(record, tx, tenant, outcome)
    precedents.count(tx, tenant, task, paths, at=outcome.at)
    precedents.used(tx, tenant, task, uses, held=outcome.effective_type == "success")


def follow_revision(record: Record, tx: Transaction, tenant: int, outcome: Outcome, *, now: bool) -> None:
    """Take standing back from a success that was none, or give it to a failure that was a success, where somebody attested it."""
    rows = tx.rows("moves_of_outcome", {"tenant": tenant, "outcome": outcome.id})
    uses = [precedents.Use(row[10], row[7]) for row in rows if row[6] == "used" and row[7]]
    precedents.revised(tx, tenant, task_of(record, tx, tenant, outcome), uses, now=now)
    attested = tx.rows("attestations_of", {"tenant": tenant, "outcome": outcome.id})
    first = next((row for row in attested if row[4] == "success"), None)
    if first is not None:
        give_standing(tx, tenant, outcome, sign=1 if now else -1)


def run_by_then(tx: Transaction, tenant: int, outcome: Outcome) -> dict[str, Any]:
    """What a session had come to when it told its outcome, by its trace: nobody vouches for what comes later."""
    links = (json.loads(row[1]) for row in tx.rows("traces_of", {"tenant": tenant, "session": outcome.session}))
    return next(link for link in links if link["seal"] == outcome.seal.hex())


def written_by_then(tx: Transaction, tenant: int, outcome: Outcome) -> list[Row]:
    """What a session had written when it told its outcome."""
    written = tx.rows("writes_of", {"tenant": tenant, "session": outcome.session, "writes": 0})
    return written[: run_by_then(tx, tenant, outcome)["writes"]]


def give_standing(tx: Transaction, tenant: int, outcome: Outcome, *, sign: int) -> list[dict[str, Any]]:
    """Add (or take) one observation of what the session wrote, one corroboration of what it was served of others' and used."""
    who = {"tenant": tenant, "session": outcome.session}
    run = run_by_then(tx, tenant, outcome)
    wrote = written_by_then(tx, tenant, outcome)
    used = [row[10] for row in tx.rows("moves_of_outcome", {"tenant": tenant, "outcome": outcome.id}) if row[6] == "used"]
    served = {(entry, claim) for entry, claim, _, folded in tx.rows("served_claims", who) if folded <= run["reads"]}
    others = [
        row
        for row in tx.rows("causes_of", {"tenant": tenant, "versions": json.dumps(used)})
        if (row[2], row[1]) in served and of_another(row, outcome)
    ]
    touched = {row[0] for row in wrote} | {row[0] for row in others}
    before = standings(tx, tenant, touched)
    for rows, earned in ((wrote, (sign, 0)), (others, (0, sign))):
        for version in {(row[2], row[1]): row[0] for row in rows}.values():  # once a claim
            tx.run("stand", {"tenant": tenant, "version": version, "observed": earned[0], "corroborated": earned[1]})
    for version in touched:
        tx.run("mark_standing" if sign > 0 else "clear_standing", {"tenant": tenant, "version": version})
    after = standings(tx, tenant, touched)
    return [
        {"entity": head.path, "key": head.key, "version": nth, "before": before[version][0], "after": now}
        for version, (now, head, nth) in after.items()
        if before[version][0] != now
    ]


def of_another(cause: Row, outcome: Outcome) -> bool:
    """Whether a version was written by another box; where there are no boxes, by another identity. Never by the same session."""
    session, box, identity = cause[5:8]
    if session == outcome.session:
        return False
    return bool(box != outcome.box) if box and outcome.box else bool(identity != outcome.identity)


def standings(tx: Transaction, tenant: int, versions: set[int]) -> dict[int, tuple[str, Head, int]]:
    """Each version's standing, its head and its number, oldest first."""
    ids = json.dumps(sorted(versions))
    heads = {
        row[3]: Head._make(row) for row in sorted(tx.rows("trust_of", {"tenant": tenant, "versions": ids}), key=itemgetter(3))
    }
    numbers: dict[int, int] = dict(tx.rows("numbers_of", {"tenant": tenant, "versions": ids}))
    return {version: (trust.standing(head), head, numbers[version]) for version, head in heads.items()}
