"""Verbs that erase: first what it would come to, then the erasure, and the list of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from herdbook.record import erasing
from herdbook.record.store.protocol import Work
from herdbook.service.asking import settled
from herdbook.service.callers import Caller
from herdbook.service.slow import requests
from herdbook.service.telling import plain, stamped, with_request_id

if TYPE_CHECKING:
    from herdbook.service.door import Service


def erase_preview(service: Service, caller: Caller, request: requests.PreviewErasure) -> dict[str, Any]:
    """What erasing a subject would come to."""
    return settled(service, caller, lambda reader: erasing.preview(reader, caller.tenant, request.kind, request.subject))


def erase(service: Service, caller: Caller, request: requests.Erase) -> Work:
    """Erase a subject."""
    return stamped(service, caller, erasing.erase, with_request_id(request))


def erasures(service: Service, caller: Caller, request: requests.Erasures) -> dict[str, Any]:
    """Every erasure there was."""
    record, asked = service.record, plain(request)
    return settled(service, caller, lambda reader: {"erasures": erasing.listed(record, reader, caller.tenant, asked)})
