"""What the verb of spans takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from herdbook.service.requests import Request


class RecordSpans(Request, frozen=True, kw_only=True):
    """Tool and model calls out of OpenTelemetry spans, as actions of the runs they name; what is left out is counted."""

    resource_spans: list[Any]  # as OTLP has them in JSON


def changes(fields: Mapping[str, Any]) -> int:
    """How many spans there are, each of which may become a step of a run. What has another form is refused later."""
    found = 0
    for of_resource in listed(fields, "resource_spans"):
        for of_scope in listed(of_resource, "scopeSpans"):
            found += len(listed(of_scope, "spans"))
    return found


def listed(of: Any, key: str) -> list[Any]:
    value = of.get(key) if isinstance(of, Mapping) else None
    return value if isinstance(value, list) else []
