"""OTLP's JSON, read as steps of runs. Pure: spans in, steps and counts out.

A span is a step when it says that a tool ran or a model was called, in the words of OpenTelemetry's GenAI conventions or of
OpenInference. Its run is the one it names in `herdbook.session`, else its conversation, else its trace. What has not the form of
OTLP is refused; what is no step is counted, by its reason.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from herdbook.base import limits
from herdbook.base.errors import InvalidRequest, InvalidText, TooLarge
from herdbook.base.redaction import keepable
from herdbook.base.text import identifier, name
from herdbook.slowloop.export.drafts import MODEL_CALLS

Attributes = dict[str, Any]
TOOL_NAMES: Final = ("gen_ai.tool.name", "tool.name")  # the second of each is OpenInference's
ARGUMENTS: Final = ("gen_ai.tool.call.arguments", "input.value")
RESULT: Final = ("gen_ai.tool.call.result", "output.value")
ASKED: Final = {"model": "gen_ai.request.model", "provider": "gen_ai.provider.name"}
ANSWERED: Final = {
    "model": "gen_ai.response.model",
    "finish_reasons": "gen_ai.response.finish_reasons",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
}
RUN: Final = ("herdbook.session", "herdbook.entity", "herdbook.task", "gen_ai.conversation.id")
AGENT: Final = ("gen_ai.agent.name", "resource gen_ai.agent.name", "resource service.name")
OTHER_CALLS: Final = frozenset({"invoke_agent", "create_agent", "embeddings", "retrieval", "invoke_workflow"})
TEXT_CHARS_MAX: Final = 8_000  # of one argument or result; longer ones are cut, and say so
ERROR: Final = (2, "STATUS_CODE_ERROR")
TRACE, SPAN = re.compile("[0-9a-f]{32}"), re.compile("[0-9a-f]{16}")


class Place(NamedTuple):
    """A span's own name, and its beginning."""

    trace: str
    span: str
    started: int


@dataclass(frozen=True, slots=True)
class Step:
    """One tool or model call of a run."""

    session: str
    agent: str
    entity: str | None
    task: str | None
    tool: str
    args: Any
    result: Any
    ok: bool
    request_id: str  # the span's own: sent again, it is the same step
    started: int


@dataclass(slots=True)
class Found:
    """What spans came to."""

    spans: int = 0
    steps: list[Step] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    attributes_left_out: int = 0
    redacted: int = 0
    shortened: int = 0


def read(resource_spans: list[Any]) -> Found:
    """Steps in the order they began. Raises InvalidRequest where this is not OTLP, TooLarge for too many spans."""
    found = Found()
    for resource, span in spans_of(resource_spans):
        found.spans += 1
        if found.spans > limits.SPANS_MAX:
            raise TooLarge(f"more than {limits.SPANS_MAX} spans in one request: send them in parts")
        about = attributes(span) | {f"resource {key}": value for key, value in resource.items()}
        place = place_of(span)
        reason = no_step(about)
        if reason:
            found.left_out[reason] += 1
            continue
        try:
            found.steps.append(step(span, about, found, place))
        except (InvalidText, TooLarge):
            found.left_out["names that no run or tool can have"] += 1
    found.steps.sort(key=lambda each: (each.session, each.started))
    return found


def spans_of(resource_spans: list[Any]) -> Iterator[tuple[Attributes, Mapping[str, Any]]]:
    for of_resource in objects(resource_spans, "resourceSpans"):
        resource = attributes(member(of_resource, "resource", {}, dict))
        for of_scope in objects(member(of_resource, "scopeSpans", [], list), "scopeSpans"):
            for span in objects(member(of_scope, "spans", [], list), "spans"):
                yield resource, span


def objects(found: list[Any], what: str) -> Iterator[Mapping[str, Any]]:
    for each in found:
        if not isinstance(each, dict):
            raise InvalidRequest(f"OTLP: `{what}` holds something that is no object")
        yield each


def member(of: Mapping[str, Any], key: str, default: Any, kind: type) -> Any:
    value = of.get(key, default)
    if not isinstance(value, kind):
        raise InvalidRequest(f"OTLP: `{key}` has the wrong type")
    return value


def attributes(of: Mapping[str, Any]) -> Attributes:
    """Attributes by name; of two with one name the last."""
    found = {}
    for each in objects(member(of, "attributes", [], list), "attributes"):
        found[member(each, "key", "", str)] = any_value(member(each, "value", {}, dict), depth=0)
    return found


def any_value(value: Mapping[str, Any], *, depth: int) -> Any:
    """A value of OTLP as plain JSON. Numbers of 64 bits come as text."""
    if depth > limits.VALUE_DEPTH_MAX:
        raise TooLarge(f"OTLP: a value is nested deeper than {limits.VALUE_DEPTH_MAX} levels")
    try:
        given: list[tuple[str, Any]] = [*value.items()] or [("stringValue", None)]
        [(kind, inner)] = given
        if kind == "arrayValue":
            return [any_value(each, depth=depth + 1) for each in objects(member(inner, "values", [], list), "values")]
        if kind == "kvlistValue":
            pairs = objects(member(inner, "values", [], list), "values")
            return {str(each["key"]): any_value(each.get("value", {}), depth=depth + 1) for each in pairs}
        if kind == "intValue":
            return int(inner)
        if kind == "doubleValue":
            return float(inner) if math.isfinite(float(inner)) else str(inner)
        return {"stringValue": inner, "boolValue": inner, "bytesValue": inner}[kind]
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise InvalidRequest("OTLP: an attribute's value has not the form of one") from problem


def no_step(about: Attributes) -> str | None:
    """Why this span is no step of a run, if it is none."""
    operation = about.get("gen_ai.operation.name")
    if operation in MODEL_CALLS or named(about, TOOL_NAMES):
        return None
    if operation == "execute_tool":
        return "a tool without a name"
    return f"{operation} is no call of a tool or a model" if operation in OTHER_CALLS else "neither a tool nor a model was called"


def named(about: Attributes, names: tuple[str, ...]) -> Any:
    return next((about[each] for each in names if about.get(each) is not None), None)


def place_of(span: Mapping[str, Any]) -> Place:
    """Where a span is told apart from every other one, and when it began."""
    trace, own = member(span, "traceId", "", str).lower(), member(span, "spanId", "", str).lower()
    if not (TRACE.fullmatch(trace) and SPAN.fullmatch(own)):
        raise InvalidRequest("OTLP: a span has no traceId of 32 and spanId of 16 hexadecimal digits")
    try:
        return Place(trace, own, int(span.get("startTimeUnixNano", 0)))
    except (ValueError, TypeError) as problem:
        raise InvalidRequest("OTLP: `startTimeUnixNano` is no whole number of nanoseconds") from problem


def step(span: Mapping[str, Any], about: Attributes, found: Found, place: Place) -> Step:
    status = member(span, "status", {}, dict)
    failed = status.get("code") in ERROR or "error.type" in about
    tool, args, result = called(about, failed=failed, said=status.get("message"))
    names = [*TOOL_NAMES, *ARGUMENTS, *RESULT, *ASKED.values(), *ANSWERED.values(), "gen_ai.operation.name", *RUN, *AGENT]
    found.attributes_left_out += sum(not key.startswith("resource ") and key not in names for key in about)
    return Step(
        session=session_of(about, place.trace),
        agent=fit(str(named(about, AGENT) or "opentelemetry"), chars_max=limits.NAME_CHARS_MAX),
        entity=text_or_none(about, "herdbook.entity"),
        task=text_or_none(about, "herdbook.task"),
        tool=name(fit(tool, chars_max=limits.NAME_CHARS_MAX), what="tool"),
        args=clean(args, found),
        result=clean(result, found),
        ok=not failed,
        request_id=f"otel-{place.trace}-{place.span}",
        started=place.started,
    )


def called(about: Attributes, *, failed: bool, said: Any) -> tuple[str, Any, Any]:
    """(tool, arguments, result). A failure that shows no result has its error for one."""
    error = {"error": about.get("error.type") or said or "error"} if failed else None
    tool = named(about, TOOL_NAMES)
    if tool is not None:
        result = named(about, RESULT)
        return str(tool), loaded(named(about, ARGUMENTS)), error if result is None else loaded(result)
    args = {key: about[source] for key, source in ASKED.items() if source in about}
    result = {key: about[source] for key, source in ANSWERED.items() if source in about}
    return str(about["gen_ai.operation.name"]), args, result | (error or {})


def session_of(about: Attributes, trace: str) -> str:
    given = about.get("herdbook.session", about.get("resource herdbook.session"))
    if given is not None:
        return identifier(given, what="session id")
    conversation = about.get("gen_ai.conversation.id")
    return f"otel-{fit(str(conversation), chars_max=100)}" if conversation else f"otel-{trace}"


def fit(text: str, *, chars_max: int) -> str:
    """A name as the record can have it, for what nobody chose as one."""
    return "".join(letter if letter.isprintable() else "-" for letter in text.strip())[:chars_max].strip()


def text_or_none(about: Attributes, key: str) -> str | None:
    found = about.get(key, about.get(f"resource {key}"))
    return found if isinstance(found, str) and found.strip() else None


def loaded(value: Any) -> Any:
    """Instrumentations send objects as text."""
    if isinstance(value, str) and value[:1] in "{[":
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def clean(value: Any, found: Found) -> Any:
    """As it may be kept, and counted where that took something away."""
    kept = keepable(value, chars_max=TEXT_CHARS_MAX)
    found.redacted += kept.taken
    found.shortened += kept.cut
    return kept.value
