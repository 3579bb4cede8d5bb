"""Verbs that look back over many runs. What they work out, they work out outside any transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from herdbook.base import limits
from herdbook.fastloop import features
from herdbook.record.tuning import place
from herdbook.service.asking import settled
from herdbook.service.callers import Caller
from herdbook.service.slow import requests
from herdbook.slowloop import proof
from herdbook.slowloop.runs import Run, runs_under

if TYPE_CHECKING:
    from herdbook.service.door import Service


def prove(service: Service, caller: Caller, request: requests.Prove) -> dict[str, Any]:
    """What the record is worth, told against control."""
    runs = learnt_from(service, caller, request.entity)
    answer = proof.prove(runs, chars_at={features.FORM: features.NAMES.index("chars")})
    return {"entity": request.entity, **answer}


def learnt_from(service: Service, caller: Caller, entity: str | None) -> list[Run]:
    """The runs about a path, of one committed state."""
    path, runs_max = place(entity), limits.LEARNT_RUNS_MAX
    found: list[Run] = settled(
        service, caller, lambda reader: {"runs": runs_under(reader, caller.tenant, path, runs_max=runs_max)}
    )["runs"]
    return found
