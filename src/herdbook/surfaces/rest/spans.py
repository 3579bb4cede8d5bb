"""A server's own requests as OpenTelemetry spans: only where the standard OTEL_* variables ask for them.

A span says which verb, how it ended and how long it took. It never holds what was sent or answered, nor any name in it. A server
that stops waits two seconds for a collector that does not answer, and says how many spans nobody took.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from herdbook.base.version import VERSION

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

LOG = logging.getLogger("herdbook.rest")
ASKED_BY: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
PASSED_ON: Final = (b"traceparent", b"tracestate")
STOP_SECONDS: Final = 2.0


class Delivering:
    """An exporter that counts what was taken at its other end."""

    def __init__(self, exporter: SpanExporter) -> None:
        self.exporter, self.delivered = exporter, 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self.exporter.export(spans)
        if result.name == "SUCCESS":
            self.delivered += len(spans)
        return result

    def shutdown(self) -> None:
        self.exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self.exporter.force_flush(timeout_millis)


class RequestSpans:
    """What makes a span of each request that was answered."""

    def __init__(self, provider: TracerProvider, delivering: Delivering) -> None:
        from opentelemetry.trace import SpanKind, Status, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self.provider, self.delivering, self.made = provider, delivering, 0
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
        self.made += 1

    def close(self) -> None:
        """Send what is left, for so long: the SDK itself would try for half a minute, on a thread that may hang in a socket."""
        sending = threading.Thread(target=self.provider.shutdown, name="herdbook-spans", daemon=True)
        sending.start()
        sending.join(STOP_SECONDS)
        if left := self.made - self.delivering.delivered:
            LOG.warning("%d of %d spans were not delivered to the collector that OTEL_* names: is it there?", left, self.made)


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
    provider, delivering = TracerProvider(resource=named, shutdown_on_exit=False), Delivering(exporter or OTLPSpanExporter())
    provider.add_span_processor(BatchSpanProcessor(cast("SpanExporter", delivering)))
    return RequestSpans(provider, delivering)


def wanted(environ: Mapping[str, str]) -> bool:
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get("OTEL_TRACES_EXPORTER") == "none":
        return False
    return environ.get("OTEL_TRACES_EXPORTER") == "otlp" or any(environ.get(name) for name in ASKED_BY)
