"""A server's own requests as OpenTelemetry spans: only where the standard OTEL_* variables ask for them.

A span says which verb, how it ended and how long it took. It never holds what was sent or answered, nor any name in it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from herdbook.base.version import VERSION

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

LOG = logging.getLogger("herdbook.rest")
ASKED_BY: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
PASSED_ON: Final = (b"traceparent", b"tracestate")


class RequestSpans:
    """What makes a span of each request that was answered."""

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry.trace import SpanKind, Status, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self.provider = provider
        self.tracer = provider.get_tracer("herdbook", VERSION)
        self.kind, self.failed = SpanKind.SERVER, Status(StatusCode.ERROR)
        self.passed_on = TraceContextTextMapPropagator()

    def answered(
        self, headers: Mapping[bytes, bytes], *, method: str, route: str, verb: str, status: int, code: str | None, seconds: float
    ) -> None:
        carried = {name.decode(): headers[name].decode("latin-1") for name in PASSED_ON if name in headers}
        ended = time.time_ns()
        attributes: dict[str, Any] = {
            "http.request.method": method if method in METHODS else "_OTHER",
            "http.route": route,
            "http.response.status_code": status,
            "herdbook.verb": verb,
            **({"error.type": code or str(status)} if status >= 400 else {}),
        }
        span = self.tracer.start_span(
            f"{attributes['http.request.method']} {route}",
            context=self.passed_on.extract(carried),
            kind=self.kind,
            attributes=attributes,
            start_time=ended - round(seconds * 1e9),
        )
        if status >= 500:
            span.set_status(self.failed)
        span.end(ended)

    def close(self) -> None:
        self.provider.shutdown()


METHODS: Final = frozenset({"GET", "POST", "HEAD", "DELETE", "PUT", "PATCH", "OPTIONS"})


def request_spans(environ: Mapping[str, str], *, exporter: SpanExporter | None = None) -> RequestSpans | None:
    """What the environment asks for; nothing is imported where it asks for nothing."""
    if not wanted(environ):
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:  # such variables are often set for a whole cluster: they stop no server
        LOG.warning("OTEL_* asks for spans, which need: pip install 'herdbook[otel]'; none are sent")
        return None
    named = Resource.create({} if "OTEL_SERVICE_NAME" in environ else {"service.name": "herdbook"})
    provider = TracerProvider(resource=named)
    provider.add_span_processor(BatchSpanProcessor(exporter or OTLPSpanExporter()))
    return RequestSpans(provider)


def wanted(environ: Mapping[str, str]) -> bool:
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get("OTEL_TRACES_EXPORTER") == "none":
        return False
    return environ.get("OTEL_TRACES_EXPORTER") == "otlp" or any(environ.get(name) for name in ASKED_BY)
