"""OTLP over HTTP at /v1/traces, where exporters and collectors send spans: JSON or protobuf. Compressed bodies are
refused here as everywhere.

What is left out is said in OTLP's own way, as rejected spans with the reasons; a body that is no OTLP is refused as any other.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from herdbook.base.errors import InvalidRequest
from herdbook.base.http_edge import UnsupportedMediaType
from herdbook.surfaces.rest import wire
from herdbook.surfaces.rest.wire import Answer

PROTOBUF: Final = b"application/x-protobuf"
IDS: Final = ("traceId", "spanId", "parentSpanId")


def fields_of(headers: Mapping[bytes, bytes], body: bytes) -> dict[str, Any]:
    """The verb's fields out of a request's body."""
    if in_protobuf(headers):
        return {"resource_spans": from_protobuf(body)}
    return {"resource_spans": wire.json_fields(headers, body).get("resourceSpans", [])}


def in_protobuf(headers: Mapping[bytes, bytes]) -> bool:
    return headers.get(b"content-type", b"").partition(b";")[0].strip().lower() == PROTOBUF


def from_protobuf(data: bytes) -> list[Any]:
    """The same in JSON's form, where ids are hexadecimal."""
    try:
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ImportError as problem:
        raise UnsupportedMediaType(
            "this server reads spans as JSON: set http/json, or have herdbook[otel] installed"
        ) from problem
    try:
        found: list[Any] = MessageToDict(ExportTraceServiceRequest.FromString(data)).get("resourceSpans", [])
    except (DecodeError, ValueError, RecursionError) as problem:
        raise InvalidRequest("the body is no protobuf of OTLP's ExportTraceServiceRequest") from problem
    for of_resource in found:
        for of_scope in of_resource.get("scopeSpans", []):
            for span in of_scope.get("spans", []):
                span |= {name: base64.b64decode(span[name]).hex() for name in IDS if name in span}
    return found


def answer(headers: Mapping[bytes, bytes], told: Mapping[str, Any]) -> Answer:
    """OTLP's answer, in the form that was asked in."""
    rejected = told["spans"] - told["recorded"]
    said = "; ".join(f"{count} spans: {reason}" for reason, count in told["left_out"].items())
    if in_protobuf(headers):
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTracePartialSuccess, ExportTraceServiceResponse

        partial = ExportTracePartialSuccess(rejected_spans=rejected, error_message=said) if rejected else None
        return Answer(200, ExportTraceServiceResponse(partial_success=partial).SerializeToString(), PROTOBUF)
    told = {"partialSuccess": {"rejectedSpans": str(rejected), "errorMessage": said}} if rejected else {}
    return Answer(200, msgspec.json.encode(told))
