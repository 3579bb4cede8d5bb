"""Runs as OpenTelemetry spans, in the words of its GenAI conventions, sent by the official exporter to wherever OTEL_* says.

One trace for each run: the agent's span around one for each tool or model call. Ids come from the run's name, so that what is
sent twice is the same trace. Arguments and results stay here unless they are asked for, and then without secrets.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from herdbook.base.clock import from_iso
from herdbook.base.errors import ExtraMissing, Unavailable
from herdbook.base.redaction import redacted
from herdbook.base.version import VERSION
from herdbook.slowloop.export.collect import pages
from herdbook.slowloop.export.drafts import MODEL_CALLS

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

PAGE: Final = 50
TEXT_CHARS_MAX: Final = 8_000


@dataclass(slots=True)
class Sent:
    """How much went out."""

    runs: int = 0
    spans: int = 0


def export(
    ask: Callable[[Mapping[str, Any]], dict[str, Any]],
    *,
    entity: str | None,
    content: bool,
    exporter: SpanExporter | None = None,
    progress: Callable[[int], None] = lambda runs: None,
) -> Sent:
    """Every run at a path and below it. Raises Unavailable when the other side does not take them."""
    exporter = exporter or official()
    from opentelemetry.sdk.trace.export import SpanExportResult

    sent = Sent()
    try:
        for page in pages(ask, {"entity": entity, "limit": PAGE} if entity else {"limit": PAGE}):
            spans = [span for run in page["runs"] for span in spans_of(run, content=content)]
            if spans and exporter.export(spans) is not SpanExportResult.SUCCESS:
                raise Unavailable("the spans were not taken: look at OTEL_EXPORTER_OTLP_ENDPOINT, and at what answers there")
            sent.runs, sent.spans = sent.runs + len(page["runs"]), sent.spans + len(spans)
            progress(sent.runs)
    finally:
        exporter.shutdown()
    return sent


def official() -> SpanExporter:
    """The exporter over HTTP, which reads OTEL_EXPORTER_OTLP_*."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as problem:
        raise ExtraMissing.of("otel", what="OpenTelemetry's exporter") from problem
    return OTLPSpanExporter()


def spans_of(run: Mapping[str, Any], *, content: bool) -> Iterator[ReadableSpan]:
    """The run itself, and under it each call in order."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    resource = Resource({"service.name": "herdbook", "service.version": VERSION})
    scope = InstrumentationScope("herdbook", VERSION)

    def span(name: str, number: int, attributes: dict[str, Any], at: tuple[int, int], *, ok: bool | None) -> ReadableSpan:
        status = Status(StatusCode.UNSET if ok is None else StatusCode.OK if ok else StatusCode.ERROR)
        kind = SpanKind.CLIENT if attributes["gen_ai.operation.name"] in MODEL_CALLS else SpanKind.INTERNAL
        return ReadableSpan(
            name,
            context=place(number),
            parent=place(0) if number else None,
            resource=resource,
            attributes=attributes,
            kind=kind,
            status=status,
            start_time=at[0],
            end_time=at[1],
            instrumentation_scope=scope,
        )

    def place(number: int) -> SpanContext:
        trace = int.from_bytes(digest(run["session"])[:16])
        return SpanContext(trace, int.from_bytes(digest(f"{run['session']}/{number}")[:8]), False, TraceFlags(TraceFlags.SAMPLED))

    began, times = nanoseconds(run["started_at"]), [nanoseconds(each["at"]) for each in run["actions"]]
    ended = max([began, *times, *(nanoseconds(each["at"]) for each in run["outcomes"])])
    last = run["outcomes"][-1] if run["outcomes"] else None
    ok = None if last is None else last["effective_type"] == "success"
    yield span(f"invoke_agent {run['agent']}", 0, about(run, last), (began, ended), ok=ok)
    for number, (action, at) in enumerate(zip(run["actions"], times, strict=True), 1):
        attributes = called(action, content=content) | {"gen_ai.conversation.id": run["session"]}
        subject = attributes.get("gen_ai.tool.name") or attributes.get("gen_ai.request.model", "")
        yield span(f"{attributes['gen_ai.operation.name']} {subject}".strip(), number, attributes, (at, at), ok=action["ok"])


def about(run: Mapping[str, Any], last: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a run was, and came to. Its task is what somebody wrote, so it stays here."""
    found = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": run["agent"],
        "gen_ai.conversation.id": run["session"],
        "herdbook.entity": run["entity"],
        "herdbook.reads": len(run["reads"]),
        **({} if last is None else {"herdbook.outcome": last["effective_type"], "herdbook.ref": last["ref"]}),
        **({"error.type": last["effective_type"]} if last is not None and last["effective_type"] != "success" else {}),
    }
    return {name: value for name, value in found.items() if value is not None}


def called(action: Mapping[str, Any], *, content: bool) -> dict[str, Any]:
    """One call: of a model, where it was recorded as one, else of a tool."""
    args, result = action["args"], action["result"]
    failed = {"error.type": "error"} if action["ok"] is False else {}
    if action["tool"] in MODEL_CALLS and isinstance(args, dict):
        said = result if isinstance(result, dict) else {}
        found = {
            "gen_ai.operation.name": action["tool"],
            "gen_ai.request.model": args.get("model"),
            "gen_ai.provider.name": args.get("provider"),
            "gen_ai.response.model": said.get("model"),
            "gen_ai.usage.input_tokens": said.get("input_tokens"),
            "gen_ai.usage.output_tokens": said.get("output_tokens"),
        }
        return {name: value for name, value in found.items() if isinstance(value, str | int)} | failed
    told = {"gen_ai.tool.call.arguments": args, "gen_ai.tool.call.result": result} if content else {}
    texts = {name: shown(value) for name, value in told.items() if value is not None}
    return {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": action["tool"], **texts, **failed}


def shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return redacted(text).text[:TEXT_CHARS_MAX]


def nanoseconds(at: str) -> int:
    return from_iso(at) * 1_000


def digest(text: str) -> bytes:
    return sha256(f"herdbook run {text}".encode()).digest()
