"""What was shown, to whom, and what came of it, in bulk: what rankers, effects and calibration are learnt from.

Only runs that ended in an outcome are here; a run without one says nothing yet. Features are as the ranking saw them at the time,
withheld exposures come with the probability with which they would have been served, and nothing is read as it is now.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from herdbook.base.clock import iso
from herdbook.record.store.protocol import Reader, Row

SERVING = ("serving", "asked", "how", "arm", "policy", "candidates", "at")
READ = ("serving", "version_id", "entry", "entity", "key", "version", "claim", "rank", "how", "served", "probability", "features")


def resolved(reader: Reader, tenant: int, *, under: str, after: int, limit: int) -> dict[str, Any]:
    """Runs in the order of their last outcomes, a page at a time; `next` is where the next page begins, or None.

    Row ids are told as texts: they are larger than what JavaScript counts to.
    """
    asked = {"tenant": tenant, "under": under, "low": f"{under}/", "high": f"{under}0", "after": after, "limit": limit}
    outcomes = reader.rows("last_outcomes", asked)
    those = {"tenant": tenant, "sessions": json.dumps([row[2] for row in outcomes])}
    parts = {name: by_session(reader.rows(name, those)) for name in ("servings_of", "exposures_of", "credited_of", "tries_of")}
    return {
        "runs": [run(row, {name: rows[row[2]] for name, rows in parts.items()}) for row in outcomes],
        "next": str(outcomes[-1][0]) if len(outcomes) == limit else None,
    }


def by_session(rows: Iterable[Row]) -> defaultdict[str, list[Row]]:
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[0]].append(row[1:])
    return found


def run(outcome: Row, parts: dict[str, list[Row]]) -> dict[str, Any]:
    """One run: its last outcome, what it was served and what it used."""
    number, ref, session, at, observed, task_input, kind, attested, agent, identity, box, entity, task, started, ended = outcome
    used, credited = used_and_credit(parts["credited_of"])
    return {
        "session": session,
        "agent": agent,
        "identity": identity,
        "box": box,
        "entity": entity,
        "task": task if task_input is None else task_input,
        "started_at": iso(started),
        "ended_at": None if ended is None else iso(ended),
        "outcome": {
            "id": str(number),
            "ref": ref,
            "type": kind,
            "success": kind == "success",
            "attested": bool(attested),
            "observed": json.loads(observed) if observed else [],
            "at": iso(at),
        },
        "servings": [dict(zip(SERVING, (str(row[0]), *row[1:-1], iso(row[-1])), strict=True)) for row in parts["servings_of"]],
        "attempts": [
            {"n": n, "result": result, "used": list(map(str, json.loads(ids))), "at": iso(when)}
            for n, result, ids, when in parts["tries_of"]
        ],
        "reads": [read(row, used, credited) for row in parts["exposures_of"]],
    }


def used_and_credit(causes: Sequence[Row]) -> tuple[dict[int, str], dict[int, float]]:
    """How each version was used, and the credit it got of the run's outcomes."""
    used: dict[int, str] = {}
    credited: dict[int, float] = {}
    for version, how, credit, _ in causes:
        if how in ("used", "attempt"):
            used[version] = "declared" if how == "used" or used.get(version) == "declared" else "attempt"
        credited[version] = max(credit, credited.get(version, 0.0))
    return used, credited


def read(row: Row, used: dict[int, str], credited: dict[int, float]) -> dict[str, Any]:
    *parts, features, at = row
    found = dict(zip(READ, (*parts, json.loads(features or "[]")), strict=True))
    version, serving = found["version_id"], found["serving"]
    return found | {
        "version_id": str(version),
        "entry": str(found["entry"]),
        "serving": None if serving is None else str(serving),
        "claim": found["claim"].hex(),
        "served": bool(found["served"]),
        "used": used.get(version),
        "credit": credited.get(version, 0.0),
        "at": iso(at),
    }
