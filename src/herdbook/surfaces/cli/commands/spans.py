"""Spans of OpenTelemetry, out of a file or the standard input, as actions of the runs they belong to."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from herdbook.base import files, strict_json
from herdbook.base.errors import InvalidRequest
from herdbook.surfaces.cli.inputs import standard_input
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.terminal import Answer, line

FILE_BYTES_MAX: Final = 256 * 1024 * 1024
SPANS_AT_ONCE: Final = 100
EXAMPLES: Final = """\
example:
  $ echo '{"resourceSpans": []}' | herdbook spans -
  herdbook spans traces.jsonl          # what the Collector's file exporter writes: one object a line

Tool and model calls become actions; which run they belong to is in docs/how-to/use-opentelemetry.md. What is sent again is
recorded once. Exporters can send straight to a server: its address with /v1/traces."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Read OpenTelemetry spans, as OTLP has them in JSON, and record the tool and model calls among them."
    parser.add_argument("file", metavar="FILE", help="OTLP in JSON, one object or one a line; - is the standard input")


def run(invocation: Invocation) -> int:
    sums, left_out, sessions = Counter[str](), Counter[str](), dict[str, None]()
    for part in parts(content(invocation.args.file)):
        told = invocation.ask("record_spans", resource_spans=part)
        sums.update({name: count for name, count in told.items() if isinstance(count, int)})
        left_out.update(told["left_out"])
        sessions |= dict.fromkeys(told["sessions"])
    names = ("spans", "recorded", "attributes_left_out", "redacted", "shortened")
    answer: Answer = {name: sums[name] for name in names} | {"sessions": list(sessions), "left_out": dict(left_out)}
    return invocation.show(answer, lines(answer))


def content(file: str) -> str:
    if file == "-":
        return standard_input(what="file of spans")
    return files.read_text(Path(file), what="spans of OTLP in JSON", bytes_max=FILE_BYTES_MAX)


def parts(text: str) -> Iterator[list[Any]]:
    """What one request takes, out of one object or one a line."""
    if not text.strip():
        raise InvalidRequest('there is nothing to read: send OTLP, an object with "resourceSpans"')
    for found in objects(text):
        if not isinstance(found, dict) or not isinstance(found.get("resourceSpans", []), list):
            raise InvalidRequest('this is no OTLP: an object with "resourceSpans" is')
        yield from cut(found.get("resourceSpans", []))


def objects(text: str) -> Iterator[Any]:
    try:
        json.loads(text)
    except ValueError:
        yield from (strict_json.loads(each) for each in text.splitlines() if each.strip())
    else:
        yield strict_json.loads(text)


def cut(resource_spans: list[Any]) -> Iterator[list[Any]]:
    """The same spans, so many at once. What is not in its form goes as it is, for the record to refuse."""
    for of_resource in resource_spans:
        scopes = of_resource.get("scopeSpans") if isinstance(of_resource, dict) else None
        if not isinstance(scopes, list) or not all(
            isinstance(each, dict) and isinstance(each.get("spans"), list) for each in scopes
        ):
            yield [of_resource]
            continue
        for of_scope in scopes:
            for first in range(0, len(of_scope["spans"]), SPANS_AT_ONCE):
                some = of_scope["spans"][first : first + SPANS_AT_ONCE]
                yield [{**of_resource, "scopeSpans": [{**of_scope, "spans": some}]}]


def lines(answer: Answer) -> Iterator[str]:
    yield f"{answer['recorded']:,} of {answer['spans']:,} spans recorded, in {len(answer['sessions']):,} runs"
    yield from (f"  {line(each)}" for each in answer["sessions"][:20])
    yield from (f"left out, {count:,}: {line(reason)}" for reason, count in answer["left_out"].items())
    if answer["redacted"] or answer["shortened"]:
        yield f"{answer['redacted']:,} secrets taken out, {answer['shortened']:,} texts cut"
    if answer["attributes_left_out"]:
        yield f"{answer['attributes_left_out']:,} other attributes of the recorded spans were left out"
