"""Verbs that fit: rankers and an entity's own numbers. Fitting is done before the transaction that keeps what came of it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from herdbook.base import limits, text
from herdbook.base.clock import iso
from herdbook.base.errors import HerdbookError, InvalidRequest
from herdbook.fastloop import features, learned
from herdbook.record import rankers, tunables, tuning
from herdbook.record.record import Record
from herdbook.record.store.protocol import Transaction, Work
from herdbook.record.types import Stamp
from herdbook.service.callers import Caller
from herdbook.service.slow import requests
from herdbook.service.slow.acts import learnt_from
from herdbook.service.telling import named, stamped
from herdbook.slowloop.calibrate.calibrating import calibrate as calibrated
from herdbook.slowloop.retrain import training
from herdbook.slowloop.retrain.samples import learnable
from herdbook.slowloop.runs import Run, below

if TYPE_CHECKING:
    from herdbook.service.door import Service

NAMES_OF = {
    "ranker": ("ranker", "ranker_weight"),
    "calibration": (*(name for name in tunables.TUNABLES if name.startswith(tunables.MULTIPLIER)), "half_life_days"),
}


def retrain(service: Service, caller: Caller, request: requests.Retrain) -> Work:
    """Fit a ranker, and keep it if it is worth it."""
    runs = learnt_from(service, caller, None)
    path = tuning.place(request.entity)
    mine = [run for run in runs if below(run.asked, path)]
    scope, used = (path, mine) if sample_count(mine) >= training.SAMPLES_MIN else ("", runs)
    names = list(features.NAMES)
    report = training.train(used, form=features.FORM, names=names, method=request.method, weight=request.weight)
    report["entity"] = scope or None
    if path and not scope:
        report["says"] = [f"There is too little at {path}: this is from the runs of all paths.", *report["says"]]
    return stamped(service, caller, keep, report)


def sample_count(runs: list[Run]) -> int:
    return sum(len(list(learnable(run, features.FORM))) for run in runs if run.told)


def keep(record: Record, tx: Transaction, stamp: Stamp, report: dict[str, Any], *, at: int) -> dict[str, Any]:
    """The artefact under the digest of its content; the report without it."""
    artefact = report["artefact"]
    told = {name: value for name, value in report.items() if name != "artefact"}
    if artefact is None:
        return {"ranker": None, **told}
    kept = artefact | {"entity": report["entity"], "importances": report["importances"], "says": report["says"]}
    return {"ranker": rankers.keep(record, tx, stamp, kept, at=at), **told}


def list_rankers(service: Service, caller: Caller, request: requests.Rankers) -> dict[str, Any]:
    """Every ranker that was kept; one that is not what it was says so."""
    store, record = service.record.store, service.record
    places: dict[str, list[str]] = defaultdict(list)
    for path, value in store.rows("rankers_in_force", {"tenant": caller.tenant}):
        places[json.loads(value)].append(path or "everywhere")
    runs = learnt_from(service, caller, None) if request.shadow else []
    found = []
    for row in store.rows("rankers", {"tenant": caller.tenant}):
        told: dict[str, Any] = {
            "ranker": row[0],
            "at": iso(row[3]),
            "by": row[2],
            "ranks_at": places.get(row[0], []),
            "refused": None,
        }
        try:
            artefact = rankers.checked(record, caller.tenant, row)
        except HerdbookError as problem:
            found.append(told | {"refused": problem.message})
            continue
        told |= {name: artefact.get(name) for name in ("entity", "method", "weight", "samples", "judged", "says")}
        found.append(told | {"shadow": shadow(artefact, runs) if request.shadow else None})
    return {"rankers": found}


def shadow(artefact: dict[str, Any], runs: list[Run]) -> dict[str, Any]:
    """How it would have done since it was made; why nobody can tell, where its features are of another form."""
    scorer = learned.scorer(artefact)
    if isinstance(scorer, str):
        return {"refused": scorer}
    mine = [run for run in runs if below(run.asked, artefact["entity"] or "")]
    return training.shadow(artefact, scorer, mine)


def promote(service: Service, caller: Caller, request: requests.Promote) -> Work:
    """Let a ranker rank: a setting of the path, with its reason."""
    artefact = rankers.load(service.record, service.record.store, caller.tenant, request.ranker)
    scorer = learned.scorer(artefact)
    if isinstance(scorer, str):
        raise InvalidRequest(f"the ranker {request.ranker!r} cannot rank: {scorer}")
    weight = artefact["weight"] if request.weight is None else request.weight
    values = {"ranker": request.ranker, "ranker_weight": float(weight)}
    return stamped(service, caller, tuning.tune, asked_for(request, values))


def calibrate(service: Service, caller: Caller, request: requests.Calibrate) -> Work:
    """A path's own numbers, and on request what of them may act."""
    path = tuning.place(request.entity)
    base = service.record.tuning(caller.tenant, path).half_life_days
    columns = {name: {features.FORM: features.NAMES.index(name)} for name in ("age_days", "confidence")}
    report = calibrated(learnt_from(service, caller, None), path, columns=columns, base_days=base)
    fields = asked_for(request, report["values"])
    acts = bool(request.promote and report["values"])

    def work(record: Record, tx: Transaction, stamp: Stamp, what: dict[str, Any], *, at: int) -> dict[str, Any]:
        if acts:
            tuning.tune(record, tx, stamp, what, at=at)
        return {"entity": request.entity, **report, "promoted": acts}

    return stamped(service, caller, work, fields)


def rollback(service: Service, caller: Caller, request: requests.Rollback) -> Work:
    """Back to what held before; once more goes one further back. Raises InvalidRequest where nothing was set before."""
    path = tuning.place(request.entity)
    states = held(tuning.history(service.record.store, caller.tenant, path), NAMES_OF[request.what])
    if len(states) < 2:
        where = path or "every path"
        raise InvalidRequest(f"no {request.what} is set at {where} that could be taken back: look with `herdbook tune --history`")
    before, now = states[-2:]
    values = {name: before.get(name) for name in before | now if before.get(name) != now.get(name)}
    return stamped(service, caller, tuning.tune, asked_for(request, values))


def held(history: Iterable[dict[str, Any]], names: Collection[str]) -> list[dict[str, Any]]:
    """What these names were, one after the other, nothing first. Whatever led back to the state before is no state of its own."""
    states: list[dict[str, Any]] = [{}]
    for _, rows in groupby((row for row in history if row["name"] in names), key=itemgetter("at")):
        state = states[-1] | {row["name"]: row["value"] for row in rows}
        state = {name: value for name, value in state.items() if value is not None}
        if state in states[-2:]:
            del states[states.index(state, -2) + 1 :]
        else:
            states.append(state)
    return states


def asked_for(request: requests.Promote | requests.Calibrate | requests.Rollback, values: dict[str, Any]) -> dict[str, Any]:
    """What `tune` takes; looked at here, since a calibration that nobody promotes never gets there."""
    why = None if request.why is None else text.prose(request.why, what="why", chars_max=limits.WHY_CHARS_MAX)
    request_id = text.identifier(named(request.request_id, "r"), what="request id")
    return {"entity": request.entity, "values": values, "why": why, "request_id": request_id}
