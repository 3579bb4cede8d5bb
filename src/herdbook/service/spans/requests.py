"""What the verb of spans takes."""

from __future__ import annotations

from typing import Any

from herdbook.service.requests import Request


class RecordSpans(Request, frozen=True, kw_only=True):
    """Tool and model calls out of OpenTelemetry spans, as actions of the runs they name; what is left out is counted."""

    resource_spans: list[Any]  # as OTLP has them in JSON
