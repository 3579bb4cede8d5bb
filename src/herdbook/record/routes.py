"""Which model answers under an alias: appended and sealed, so that every earlier answer to that question is found again.

A route is a dict: `model` and `before`, each {artefact, upstream, name} or None; `percent` and `entities`, the part of the runs
that `model` answers while `before` answers the rest. What a model may be promoted for is judged before this is asked.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from herdbook.base import limits, strict_json, text
from herdbook.base.clock import iso
from herdbook.base.errors import InvalidRequest, NotFound
from herdbook.record import answers, artefacts, runs, seals
from herdbook.record.record import Record
from herdbook.record.store.protocol import Reader, Row, Transaction
from herdbook.record.types import Stamp

Route = dict[str, Any]
Target = dict[str, Any]  # artefact, upstream, name

WHOLE: Final = 100.0  # percent
EVERY_ROW: Final = 2**63 - 1


def point(record: Record, tx: Transaction, stamp: Stamp, asked: Mapping[str, Any], *, at: int) -> dict[str, Any]:
    """Let an upstream's model answer under an alias, whatever answered before. Once per request id."""
    target = {"artefact": None, "upstream": asked["upstream"], "name": asked["name"]}

    def route(current: Route | None) -> Route:
        return {"model": target, "before": settled(current), "percent": WHOLE, "entities": []}

    return once(record, tx, stamp, "model_route", asked, route, at=at)


def promote(record: Record, tx: Transaction, stamp: Stamp, asked: Mapping[str, Any], *, at: int) -> dict[str, Any]:
    """Let a trained model answer, all runs or a part of them; a wider part of the same model keeps what it replaces."""
    target = {"artefact": asked["artefact"], "upstream": asked["upstream"], "name": asked["name"]}

    def route(current: Route | None) -> Route:
        same = current is not None and current["model"]["artefact"] == asked["artefact"]
        before = current["before"] if same and current is not None else settled(current)
        if before is None and asked["percent"] < WHOLE:
            raise InvalidRequest("nothing answers under this alias yet, so there is nothing to take a part of: promote it to all")
        artefacts.became(record, tx, stamp, asked["artefact"], "promoted", asked["why"], at=at)
        return {"model": target, "before": before, "percent": asked["percent"], "entities": asked["entities"]}

    return once(record, tx, stamp, "model_promote", asked, route, at=at)


def rollback(record: Record, tx: Transaction, stamp: Stamp, asked: Mapping[str, Any], *, at: int) -> dict[str, Any]:
    """Back to what answered before the model of now, for all runs."""

    def route(current: Route | None) -> Route:
        if current is None or current["before"] is None:
            raise InvalidRequest(f"nothing answered under {asked['alias']!r} before: herdbook models ls shows its routes")
        if current["model"]["artefact"] is not None:
            artefacts.became(record, tx, stamp, current["model"]["artefact"], "retired", asked["why"], at=at)
        return {"model": current["before"], "before": None, "percent": WHOLE, "entities": []}

    return once(record, tx, stamp, "model_rollback", asked, route, at=at)


def settled(current: Route | None) -> Target | None:
    """What answers where no part is being tried: the model of now, or, while that has only a part, the one before it."""
    if current is None:
        return None
    found: Target = current["model"] if current["percent"] >= WHOLE else current["before"]
    return found


def once(
    record: Record, tx: Transaction, stamp: Stamp, verb: str, asked: Mapping[str, Any], change: Any, *, at: int
) -> dict[str, Any]:
    """Append what `change` makes of the route of now; a retry gets the first answer."""
    alias = text.identifier(asked["alias"], what="alias")
    name = text.identifier(asked["request_id"], what="request id")
    why = None if asked["why"] is None else text.prose(asked["why"], what="why", chars_max=limits.WHY_CHARS_MAX)
    told = json.dumps({key: value for key, value in asked.items() if key != "request_id"}, sort_keys=True)
    digest = seals.digest(verb, told)
    before: dict[str, Any] | None = answers.first(tx, stamp.tenant, verb, name, digest)
    if before is not None:
        return before
    row = tx.row("model_route", {"tenant": stamp.tenant, "alias": alias})
    current = None if row is None else route_of(record, stamp.tenant, row)
    route = strict_json.canonical(change(current))
    said = {
        "alias": alias,
        "n": 1 if row is None else row[1] + 1,
        "route": route,
        "why": why,
        "identity": stamp.identity,
        "at": at,
    }
    seal = record.seal("model_route", stamp.tenant, *said.values())
    tx.run("insert_model_route", said | {"tenant": stamp.tenant, "seal": seal})
    answer = view(record, stamp.tenant, (*said.values(), seal))
    answers.keep(tx, stamp.tenant, verb, name, digest, answer)
    return answer


def current(record: Record, reader: Reader, tenant: int, alias: str) -> tuple[int, Route]:
    """The number and the route of an alias. Raises NotFound, and SealBroken for one that is not what was written."""
    row = reader.row("model_route", {"tenant": tenant, "alias": text.identifier(alias, what="model")})
    if row is None:
        raise NotFound(f"no model answers under the name {alias!r} here: /v1/models lists those that do")
    return row[1], route_of(record, tenant, row)


def was(record: Record, reader: Reader, tenant: int, alias: str, n: int) -> Route:
    row = reader.row("model_route_was", {"tenant": tenant, "alias": alias, "n": n})
    if row is None:
        raise NotFound(f"the model {alias!r} never had a route {n}")
    return route_of(record, tenant, row)


def listed(record: Record, reader: Reader, tenant: int, alias: str | None) -> list[dict[str, Any]]:
    """Each alias as it is routed now, with what it was."""
    by_alias: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in reader.rows("model_routes", {"tenant": tenant, "alias": alias}):
        by_alias[row[0]].append(view(record, tenant, row))
    return [found[-1] | {"history": found} for found in by_alias.values()]


def route_of(record: Record, tenant: int, row: Row) -> Route:
    *told, seal = row
    record.verify(seal, "model_route", tenant, *told)
    found: Route = json.loads(row[2])
    return found


def view(record: Record, tenant: int, row: Row) -> dict[str, Any]:
    alias, n, _, why, identity, at, _ = row
    return {"alias": alias, "n": n, **route_of(record, tenant, row), "why": why, "by": identity, "at": iso(at)}


def label(target: Mapping[str, Any]) -> str:
    """How a model is called where its runs are counted: a trained one by its artefact, another by where it is."""
    return str(target["artefact"] or f"{target['upstream']}/{target['name']}")


def results(record: Record, reader: Reader, tenant: int, alias: str) -> dict[str, dict[str, list[bool]]]:
    """By model and entity path: how the runs ended in which that model alone answered. Runs without an outcome say nothing."""
    rows = reader.rows("runs_of_models", {"tenant": tenant, "alias": alias})
    answered: dict[str, set[str]] = defaultdict(set)
    for model, session, _, _ in rows:
        answered[session].add(model)
    alone = [(model, session, entity) for model, session, _, entity in rows if len(answered[session]) == 1]
    ended = endings(record, reader, tenant, [session for _, session, _ in alone])
    found: dict[str, dict[str, list[bool]]] = {model: defaultdict(list) for model, *_ in rows}
    for model, session, entity in alone:
        if session in ended:
            found[model][entity].append(ended[session])
    return found


def endings(record: Record, reader: Reader, tenant: int, sessions: Sequence[str]) -> dict[str, bool]:
    """Whether each run that has an outcome ended well, by its last one."""
    found = {}
    for start in range(0, len(sessions), limits.PAGE_MAX):
        page = sessions[start : start + limits.PAGE_MAX]
        asked = {"tenant": tenant, "sessions": json.dumps(page), "snapshot": EVERY_ROW}
        for session, rows in runs.by_session(reader.rows("outcomes_of_runs", asked)).items():
            told = runs.outcomes_view(record, tenant, rows, {})["outcomes"]
            if told:
                found[session] = told[-1]["effective_type"] == "success"
    return found
