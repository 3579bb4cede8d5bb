"""Verbs on served models: who answers under an alias, what a call was, and how the runs of each model ended.

A trained model gets an alias only past `refusals`, which are worked out here from the report its register holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from herdbook.base import limits, text
from herdbook.base.errors import NotPromotable
from herdbook.base.ids import new_name
from herdbook.record import artefacts, model_calls, routes
from herdbook.record.record import Record
from herdbook.record.store.protocol import Reader, Transaction, Work
from herdbook.record.types import Stamp
from herdbook.service.asking import settled
from herdbook.service.callers import Caller
from herdbook.service.models import requests
from herdbook.service.telling import plain, stamped, with_request_id
from herdbook.slowloop.intervals import Groups, share_difference
from herdbook.slowloop.models import arms
from herdbook.slowloop.models.judging import refusals

if TYPE_CHECKING:
    from herdbook.service.door import Service

EVALUATION = "evaluation"  # the name of the report among a model's metrics


def model_route(service: Service, caller: Caller, request: requests.RouteModel) -> Work:
    """Let any upstream's model answer."""
    return stamped(service, caller, routes.point, named(with_request_id(request)))


def model_promote(service: Service, caller: Caller, request: requests.PromoteModel) -> Work:
    """Let a trained model answer, if it may."""
    fields = named(with_request_id(request)) | {"artefact": text.identifier(request.artefact, what="artefact")}
    fields["entities"] = sorted({text.entity_path(path) for path in request.entities or ()})
    fields["percent"] = (0.0 if fields["entities"] else routes.WHOLE) if request.percent is None else request.percent

    def work(record: Record, tx: Transaction, stamp: Stamp, what: dict[str, Any], *, at: int) -> dict[str, Any]:
        check(artefacts.one(record, tx, stamp.tenant, what["artefact"]))
        return routes.promote(record, tx, stamp, what, at=at)

    return stamped(service, caller, work, fields)


def check(artefact: dict[str, Any]) -> None:
    """Raises NotPromotable with every reason why not."""
    if artefact["kind"] != "model":
        raise NotPromotable(f"{artefact['artefact']} is a {artefact['kind']}: promote a model")
    if artefact["status"] == "withdrawn":
        raise NotPromotable(f"{artefact['name']} was withdrawn: train another one")
    report = artefact["metrics"].get(EVALUATION)
    reasons = ["it was never examined: herdbook models evaluate"] if report is None else refusals(report)
    if reasons:
        raise NotPromotable(f"{artefact['name']} is not promoted: {'; '.join(reasons)}", reasons=reasons)


def model_rollback(service: Service, caller: Caller, request: requests.RollbackModel) -> Work:
    """One step back."""
    return stamped(service, caller, routes.rollback, with_request_id(request))


def named(fields: dict[str, Any]) -> dict[str, Any]:
    """What names something is one printable line."""
    told = {name: text.name(fields[name], what=name) for name in ("upstream", "name")}
    return fields | {"alias": text.identifier(fields["alias"], what="alias")} | told


def model_routes(service: Service, caller: Caller, request: requests.ModelRoutes) -> dict[str, Any]:
    """Every alias, or one."""
    alias = None if request.alias is None else text.identifier(request.alias, what="alias")

    def look(reader: Reader) -> dict[str, Any]:
        found = routes.listed(service.record, reader, caller.tenant, alias)
        for route in found if request.compare else ():
            route["compared"] = compared(route, routes.results(service.record, reader, caller.tenant, route["alias"]))
        return {"routes": found}

    return settled(service, caller, look)


def compared(route: dict[str, Any], results: dict[str, dict[str, list[bool]]]) -> dict[str, Any]:
    """How the runs of each model ended; the model of now minus what it replaced, path by path, with its interval."""
    models = {
        model: {"runs": sum(map(len, by_path.values())), "successes": sum(sum(ended) for ended in by_path.values())}
        for model, by_path in results.items()
    }
    now, before = (results.get(routes.label(each), {}) if each else {} for each in (route["model"], route["before"]))
    strata = [Groups([float(each) for each in now[path]], [float(each) for each in before.get(path, ())]) for path in sorted(now)]
    difference = share_difference(strata)
    return {"models": models, "difference": None if difference is None else difference.as_dict() | {"sure": difference.sure}}


def model_call(service: Service, caller: Caller, request: requests.ModelCall) -> Work:
    """Keep one call in its run."""
    fields = plain(request) | checked(request)
    route = routes.was(service.record, service.record.store, caller.tenant, fields["alias"], request.n)
    unit = fields["unit"] or fields["session"] or ""
    target = arms.chosen(route, alias=fields["alias"], entity=fields["entity"], unit=unit)
    fields["session"] = fields["session"] or new_name("s")
    task = next((model_calls.text_of(each.get("content")) for each in request.messages if each.get("role") == "user"), "")
    fields |= {"model": routes.label(target), "task": model_calls.fit(task) or None}
    return stamped(service, caller, model_calls.keep, fields)


def checked(request: requests.ModelCall) -> dict[str, Any]:
    """What names something, and what was said, within their limits, whether or not the run begins with this call."""
    named = {"alias": request.alias, "session": request.session, "unit": request.unit}
    told: dict[str, Any] = {
        what: None if name is None else text.identifier(name, what="session id" if what == "session" else what)
        for what, name in named.items()
    }
    told["agent"] = text.name(request.agent, what="agent")
    told["entity"] = None if request.entity is None else text.entity_path(request.entity)
    told["answer"] = request.answer and text.prose(request.answer, what="answer", chars_max=limits.TASK_CHARS_MAX)
    return told


def picked(service: Service, caller: Caller, *, alias: str, entity: str | None, unit: str) -> tuple[int, dict[str, Any]]:
    """The number of the alias's route, and the model of it that answers this run: for a surface that asks it."""
    n, route = routes.current(service.record, service.record.store, caller.tenant, alias)
    return n, arms.chosen(route, alias=alias, entity=entity, unit=unit)


def aliases(service: Service, caller: Caller) -> list[dict[str, Any]]:
    """The routes of now, for a surface that lists them."""
    return routes.listed(service.record, service.record.store, caller.tenant, None)
