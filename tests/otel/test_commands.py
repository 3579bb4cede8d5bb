"""`herdbook spans` reads what exporters write to files; `herdbook export otlp` sends runs on, as one trace each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import herdbook as package
from herdbook.base.errors import Unavailable
from herdbook.slowloop.export.otlp import export
from tests.otel.conftest import batch, span, tool, url
from tests.rest.serving import KEY, Server


def test_a_file_of_spans_becomes_actions(herdbook, tmp_path: Path) -> None:
    """Traces that are kept already could teach nobody."""
    lines = [
        {"resourceSpans": batch(*(tool(number, herdbook__session="run") for number in range(first, first + 150)))}
        for first in (1, 151)
    ]
    (tmp_path / "traces.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    told = herdbook("spans", str(tmp_path / "traces.jsonl"), "--json").json
    assert (300, 300, ["run"], {}) == (told["spans"], told["recorded"], told["sessions"], told["left_out"])
    again = herdbook("spans", str(tmp_path / "traces.jsonl"))
    assert (0, "300 of 300 spans recorded, in 1 runs") == (again.code, again.out.splitlines()[0])
    assert 300 == len(herdbook("trace", "run", "--json").json["actions"])


def test_standard_input_is_read_and_what_is_left_out_said(herdbook) -> None:
    """A pipe would end in silence."""
    sent = json.dumps({"resourceSpans": batch(tool(1), span(2, http__route="/"))}).encode()
    told = herdbook("spans", "-", stdin=sent)
    assert (0, True) == (told.code, "left out, 1: neither a tool nor a model was called" in told.out)


@pytest.mark.parametrize("sent", [b"", b"no", b"[]", b'{"resourceSpans": 1}', b'{"resourceSpans": [1]}', b"\xff", b'{"a": NaN}'])
def test_what_is_no_otlp_is_refused(sent: bytes, herdbook) -> None:
    """A wrong file would look like one without any calls."""
    told = herdbook("spans", "-", stdin=sent)
    assert (1, "", False) == (told.code, told.out, "Traceback" in told.err), told


def learned(place: Path) -> Any:
    book = package.open(place / "record.db", agent="fixer", session="run-41", entity="acme/ci", task="fix it")
    book.write("acme/ci", "tz", {"env": {"TZ": "UTC"}}, why="dates")
    book.brief("acme/ci")
    secret = "ghp" + "_" + "a1B2" * 9
    book.action("bash", {"command": f"login {secret}"}, "ok", ok=True)
    book.action("bash", {"command": "pytest"}, "1 failed", ok=False)
    asked: dict[str, Any] = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "m-1", "gen_ai__usage__input_tokens": 7}
    book.call("record_spans", {"resource_spans": batch(span(9, herdbook__session="run-41", **asked))})
    book.commit_outcome("success", ref="ci-1")
    return book


def test_a_run_is_one_trace_in_the_words_of_the_conventions(tmp_path: Path) -> None:
    """Whoever looks at agents in their own tracing could not see what ours did."""
    exporter, again = InMemorySpanExporter(), InMemorySpanExporter()
    with learned(tmp_path) as book:
        sent = export(lambda fields: book.call("runs", dict(fields)), entity=None, content=False, exporter=exporter)
        export(lambda fields: book.call("runs", dict(fields)), entity="acme", content=True, exporter=again)
    spans = exporter.get_finished_spans()
    assert (1, 4) == (sent.runs, sent.spans)
    assert ["invoke_agent fixer", "execute_tool bash", "execute_tool bash", "chat m-1"] == [each.name for each in spans]
    root, first, second, chat = (dict(each.attributes or {}) for each in spans)
    assert ("success", "ci-1", "acme/ci", 1) == tuple(root[f"herdbook.{name}"] for name in ("outcome", "ref", "entity", "reads"))
    assert {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "bash", "gen_ai.conversation.id": "run-41"} == first
    assert ("error", "m-1", 7) == (second["error.type"], chat["gen_ai.request.model"], chat["gen_ai.usage.input_tokens"])
    assert [None, *[spans[0].context.span_id] * 3] == [each.parent and each.parent.span_id for each in spans]
    assert 1 == len({each.context.trace_id for each in spans})
    assert [each.context for each in spans] == [each.context for each in again.get_finished_spans()]
    shown = dict(again.get_finished_spans()[1].attributes or {})
    assert ('{"command": "login [redacted]"}', "ok") == tuple(
        shown[f"gen_ai.tool.call.{name}"] for name in ("arguments", "result")
    )


class Away(SpanExporter):
    def export(self, spans: Any) -> SpanExportResult:
        assert all(isinstance(each, ReadableSpan) for each in spans)
        return SpanExportResult.FAILURE


def test_a_collector_that_is_away_is_said(tmp_path: Path) -> None:
    """A command would end well, and nothing would have arrived."""
    with learned(tmp_path) as book, pytest.raises(Unavailable, match="OTEL_EXPORTER_OTLP_ENDPOINT"):
        export(lambda fields: book.call("runs", dict(fields)), entity=None, content=False, exporter=Away())


def test_what_goes_out_comes_in_again(server: Server, tmp_path: Path, herdbook) -> None:
    """The two directions would speak of different things; or the official exporter would not be what the command uses."""
    (tmp_path / "here").mkdir()
    learned(tmp_path / "here").close()
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": url(server), "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{KEY}"}
    record = ("--record", str(tmp_path / "here" / "record.db"))
    assert {"runs": 1, "spans": 4} == herdbook("export", "otlp", "--content", "--json", *record, env=environ).json
    told = server.post("trace", {"ref": "otel-run-41"}).json
    assert ["bash", "bash", "chat"] == [each["tool"] for each in told["actions"]]
    assert [{"command": "pytest"}, "1 failed", False] == [told["actions"][1][name] for name in ("args", "result", "ok")]
    assert {"model": "m-1"} == told["actions"][2]["args"]


def test_nothing_is_imported_before_it_is_needed() -> None:
    """Every command would start half a second later for those who trace nothing."""
    code = (
        "import sys, herdbook.__main__, herdbook.surfaces.rest.app, herdbook.surfaces.rest.otlp, herdbook.slowloop.export.otlp;"
        "print([name for name in sys.modules if name.split('.')[0] in ('opentelemetry', 'google')])"
    )
    assert "[]" == subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
