"""Datasets and models of the slow loop as the record keeps them: what each is, what it was made from, and what became of it.

An artefact's row is sealed and never changed, under an id that says what is in it; its states are appended, the newest counts.
The files themselves lie elsewhere: here is their hash, and for a dataset which runs it has rows from.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from herdbook.base import limits, strict_json, text
from herdbook.base.clock import iso
from herdbook.base.errors import HerdbookError, InvalidValue, NotFound
from herdbook.record import answers, seals
from herdbook.record.record import Record
from herdbook.record.store.protocol import Reader, Row, Transaction
from herdbook.record.types import Stamp

KINDS: Final = ("dataset", "model")
STATUSES: Final = {"dataset": ("made", "withdrawn"), "model": ("candidate", "refused", "promoted", "retired", "withdrawn")}
ID_DIGITS: Final = 16
HASH_DIGITS: Final = 64


def keep(record: Record, tx: Transaction, stamp: Stamp, asked: dict[str, Any], *, at: int) -> dict[str, Any]:
    """Keep an artefact in its first state. The same one again is answered as it stands now."""
    told = checked_fields(asked)
    status = asked["status"] or STATUSES[told["kind"]][0]
    check_state(told["kind"], status, asked["metrics"])
    for parent in json.loads(told["parents"]):
        row_of(tx, stamp.tenant, parent)
    artefact = identified(told)
    if tx.row("artefact", {"tenant": stamp.tenant, "artefact": artefact}) is None:
        seal = record.seal("artefact", stamp.tenant, artefact, *told.values(), stamp.identity, at)
        row = told | {"tenant": stamp.tenant, "artefact": artefact, "identity": stamp.identity, "at": at, "seal": seal}
        tx.run("insert_artefact", row)
        put_state(record, tx, stamp, artefact, told["kind"], {**asked, "status": status, "why": None}, at=at)
    return one(record, tx, stamp.tenant, artefact)


def checked_fields(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What the row holds of an artefact, in the order its seal covers. Raises InvalidValue and its kin."""
    digest = asked["hash"]
    if len(digest) != HASH_DIGITS or set(digest) - set("0123456789abcdef"):
        raise InvalidValue("the hash is 64 hexadecimal digits: the SHA-256 of what was made")
    return {
        "kind": asked["kind"],
        "name": text.name(asked["name"], what="name"),
        "hash": digest,
        "parents": strict_json.canonical([text.identifier(each, what="parent") for each in asked["parents"] or []]),
        "lineage": strict_json.canonical(asked["lineage"] or {}),
        "card": None if asked["card"] is None else text.prose(asked["card"], what="card", chars_max=limits.CARD_CHARS_MAX),
    }


def identified(told: Mapping[str, Any]) -> str:
    """An id out of everything but the card."""
    parts = [told[name] for name in ("kind", "name", "hash", "parents", "lineage")]
    return seals.digest("artefact", *parts).hex()[:ID_DIGITS]


def add_runs(record: Record, tx: Transaction, stamp: Stamp, asked: dict[str, Any], *, at: int) -> dict[str, Any]:
    """Say of a dataset which runs it has rows from; told again, they are kept once."""
    artefact = text.identifier(asked["artefact"], what="artefact")
    kind = row_of(tx, stamp.tenant, artefact)[1]
    if kind != "dataset":
        raise InvalidValue(f"{artefact!r} is a {kind}: what it has learned from is in its parents")
    runs = sorted({text.identifier(run, what="run") for run in asked["runs"]})
    tx.many("insert_artefact_run", [(stamp.tenant, run, artefact) for run in runs])
    return {"artefact": artefact, "runs": len(runs)}


def set_state(record: Record, tx: Transaction, stamp: Stamp, asked: dict[str, Any], *, at: int) -> dict[str, Any]:
    """What became of an artefact, once per request id; answers with the artefact as it stands."""
    artefact, name = text.identifier(asked["artefact"], what="artefact"), text.identifier(asked["request_id"], what="request id")
    metrics = strict_json.canonical(asked["metrics"])
    digest = seals.digest("artefact_set", artefact, asked["status"], metrics, asked["why"])
    if answers.first(tx, stamp.tenant, "artefact_set", name, digest) is None:
        kind = row_of(tx, stamp.tenant, artefact)[1]
        put_state(record, tx, stamp, artefact, kind, asked, at=at)
        answers.keep(tx, stamp.tenant, "artefact_set", name, digest, {})
    return one(record, tx, stamp.tenant, artefact)


def check_state(kind: str, status: str, metrics: Any) -> None:
    """Refuse a state that no artefact of this kind can be in, whether or not it would be written."""
    if status not in STATUSES[kind]:
        raise InvalidValue(f"a {kind} is one of {', '.join(STATUSES[kind])}, not {status[:40]!r}")
    strict_json.canonical(metrics)


def put_state(
    record: Record, tx: Transaction, stamp: Stamp, artefact: str, kind: str, asked: Mapping[str, Any], *, at: int
) -> None:
    status, before = asked["status"], states_of(tx, stamp.tenant, [artefact])[artefact]
    check_state(kind, status, asked["metrics"])
    metrics = before[-1][2] if asked["metrics"] is None and before else strict_json.canonical(asked["metrics"] or {})
    why = None if asked["why"] is None else text.prose(asked["why"], what="why", chars_max=limits.WHY_CHARS_MAX)
    said = {"n": len(before) + 1, "status": status, "metrics": metrics, "why": why, "identity": stamp.identity, "at": at}
    seal = record.seal("artefact_state", stamp.tenant, artefact, *said.values())
    tx.run("insert_artefact_state", said | {"tenant": stamp.tenant, "artefact": artefact, "seal": seal})


def one(record: Record, reader: Reader, tenant: int, artefact: str) -> dict[str, Any]:
    """An artefact as it stands. Raises NotFound, and SealBroken where a row is not what was written."""
    row = row_of(reader, tenant, artefact)
    return view(record, tenant, row, states_of(reader, tenant, [artefact])[artefact])


def listed(record: Record, reader: Reader, tenant: int, where: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Artefacts, the newest first; one that is not what was written says so and nothing else."""
    rows = reader.rows("artefacts", {"tenant": tenant, **where})
    states = states_of(reader, tenant, [row[0] for row in rows])
    found = []
    for row in rows:
        try:
            found.append(view(record, tenant, row, states[row[0]]))
        except HerdbookError as problem:
            found.append(shown(row) | {"refused": problem.message})
    return found


def view(record: Record, tenant: int, row: Row, states: Sequence[Row]) -> dict[str, Any]:
    artefact, *told, seal = row
    record.verify(seal, "artefact", tenant, artefact, *told)
    for *said, state_seal in states:
        record.verify(state_seal, "artefact_state", tenant, artefact, *said)
    _, status, metrics, *_ = states[-1]
    history = [{"status": each[1], "why": each[3], "by": each[4], "at": iso(each[5])} for each in states]
    return shown(row) | {
        "status": status,
        "metrics": json.loads(metrics),
        "card": row[6],
        "history": history,
    }


def shown(row: Row) -> dict[str, Any]:
    artefact, kind, name, digest, parents, lineage, _, identity, at, _ = row
    told = {"artefact": artefact, "kind": kind, "name": name, "hash": digest, "parents": json.loads(parents)}
    later: dict[str, Any] = {"status": None, "metrics": {}, "card": None, "history": [], "refused": None}
    return told | {"lineage": json.loads(lineage), "by": identity, "at": iso(at)} | later


def row_of(reader: Reader, tenant: int, artefact: str) -> Row:
    row = reader.row("artefact", {"tenant": tenant, "artefact": artefact})
    if row is None:
        raise NotFound(f"there is no dataset or model {artefact!r}: herdbook artefacts shows them")
    return row


def states_of(reader: Reader, tenant: int, artefacts: Sequence[str]) -> dict[str, list[Row]]:
    """What became of each, oldest first: (n, status, metrics, why, identity, at, seal)."""
    found: dict[str, list[Row]] = defaultdict(list)
    for artefact, *state in reader.rows("artefact_states", {"tenant": tenant, "artefacts": json.dumps(list(artefacts))}):
        found[artefact].append(tuple(state))
    return found


def containing(reader: Reader, tenant: int, runs: Iterable[str]) -> list[dict[str, Any]]:
    """The datasets that have rows from these runs, and whatever was made from them, each with how many of the runs."""
    asked = {"tenant": tenant, "sessions": json.dumps(list(runs))}
    holds: dict[str, int] = dict(reader.rows("artefacts_of_runs", asked))
    known = {row[0]: (row[1], row[2], json.loads(row[3])) for row in reader.rows("artefact_parents", {"tenant": tenant})}
    fresh = set(holds)
    while fresh:  # generation by generation: what was made of those that are known to hold them
        children = {
            each: [holds[parent] for parent in of[2] if parent in holds] for each, of in known.items() if each not in holds
        }
        fresh = {each for each, inherited in children.items() if inherited}
        holds |= {each: max(children[each]) for each in fresh}
    told = [(each, kind, name) for each, (kind, name, _) in known.items() if each in holds]
    return [{"artefact": each, "kind": kind, "name": name, "runs": holds[each]} for each, kind, name in told]


def became(record: Record, tx: Transaction, stamp: Stamp, artefact: str, status: str, why: str | None, *, at: int) -> None:
    """A model's new state, where it is not in it already; part of the transaction that makes it so."""
    told = one(record, tx, stamp.tenant, artefact)
    if told["status"] != status:
        put_state(record, tx, stamp, artefact, told["kind"], {"status": status, "metrics": None, "why": why}, at=at)
