"""Verbs on datasets and models: kept with what they were made from, told what became of them, found again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from herdbook.base import text
from herdbook.base.errors import InvalidRequest
from herdbook.record import artefacts
from herdbook.record.store.protocol import Work
from herdbook.service.asking import settled
from herdbook.service.callers import Caller
from herdbook.service.slow import requests
from herdbook.service.telling import plain, stamped, with_request_id

if TYPE_CHECKING:
    from herdbook.service.door import Service


def artefact_keep(service: Service, caller: Caller, request: requests.KeepArtefact) -> Work:
    """Keep a dataset or a model."""
    refuse_promoted(request.status)
    return stamped(service, caller, artefacts.keep, plain(request))


def artefact_runs(service: Service, caller: Caller, request: requests.ArtefactRuns) -> Work:
    """Say which runs a dataset has rows from."""
    return stamped(service, caller, artefacts.add_runs, plain(request))


def artefact_set(service: Service, caller: Caller, request: requests.SetArtefact) -> Work:
    """Say what became of one."""
    refuse_promoted(request.status)
    return stamped(service, caller, artefacts.set_state, with_request_id(request))


def refuse_promoted(status: str | None) -> None:
    """That state is only reached through the examination."""
    if status == "promoted":
        raise InvalidRequest("a model is promoted with model_promote, which looks at its examination")


def artefact_list(service: Service, caller: Caller, request: requests.Artefacts) -> dict[str, Any]:
    """Those there are; or those that hold a run."""
    tenant = caller.tenant

    def look(reader: Any) -> dict[str, Any]:
        if request.artefact is not None:
            found = [artefacts.one(service.record, reader, tenant, text.identifier(request.artefact, what="artefact"))]
        elif request.run is not None:
            holding = artefacts.containing(reader, tenant, [text.identifier(request.run, what="run")])
            found = [artefacts.one(service.record, reader, tenant, each["artefact"]) for each in holding][: request.limit]
        else:
            name = None if request.name is None else text.name(request.name, what="name")
            where = {"kind": request.kind, "name": name, "limit": request.limit}
            found = artefacts.listed(service.record, reader, tenant, where)
        return {"artefacts": found}

    return settled(service, caller, look)
