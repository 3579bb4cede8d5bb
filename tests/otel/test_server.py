"""Spans at a server: from the official SDK and its exporters, over the same door, limits and writer as every other request."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from herdbook.base.clock import TickClock
from herdbook.base.errors import HerdbookError
from herdbook.service.callers import Caller, local_caller
from herdbook.service.door import Service
from herdbook.surfaces.rest.spans import RequestSpans, request_spans
from tests.otel.conftest import batch, tool, url
from tests.rest.serving import KEY, Reply, Server, serving

ANN = local_caller("ann")
PROTOBUF = {"Content-Type": "application/x-protobuf"}


def posted(server: Server, spans: list[Any], **more: str) -> Reply:
    return server.ask("POST", "/v1/traces", json.dumps({"resourceSpans": spans}).encode(), headers=more)


def trace(server: Server, session: str) -> Any:
    return server.post("trace", {"ref": session}).json


def test_the_official_sdk_sends_straight_to_us(server: Server) -> None:
    """An agent that is traced already would need another library, or a collector, to be learned from."""
    exporter = OTLPSpanExporter(f"{url(server)}/v1/traces", headers={"Authorization": f"Bearer {KEY}"})
    provider = TracerProvider(resource=Resource({"service.name": "fixer", "herdbook.session": "run-41"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with provider.get_tracer("agent").start_as_current_span(
        "invoke_agent fixer", attributes={"gen_ai.operation.name": "invoke_agent"}
    ):
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "bash",
            "gen_ai.tool.call.arguments": '{"c": "ls"}',
        }
        with provider.get_tracer("agent").start_as_current_span("execute_tool bash", attributes=attributes):
            pass
    provider.shutdown()
    told = trace(server, "run-41")
    assert ("fixer", [("bash", {"c": "ls"}, True)]) == (told["agent"], [(a["tool"], a["args"], a["ok"]) for a in told["actions"]])
    assert 200 == server.post("commit_outcome", {"session": "run-41", "type": "success", "task_input": "fix it"}).status


def test_what_is_left_out_is_said_in_otlps_own_way(server: Server) -> None:
    """An exporter would count as delivered what nobody has."""
    told = posted(server, batch(tool(1), {**tool(2), "attributes": []}))
    partial = told.json["partialSuccess"]
    assert (200, "1", True) == (told.status, partial["rejectedSpans"], "neither a tool" in partial["errorMessage"])
    assert {} == posted(server, batch(tool(1))).json
    sent = ExportTraceServiceRequest()
    span = sent.resource_spans.add().scope_spans.add().spans.add()
    span.trace_id, span.span_id = b"t" * 16, b"s" * 8
    reply = server.ask("POST", "/v1/traces", sent.SerializeToString(), headers=PROTOBUF)
    assert (200, "application/x-protobuf") == (reply.status, reply.headers["content-type"])
    assert 1 == ExportTraceServiceResponse.FromString(reply.body).partial_success.rejected_spans


def test_a_span_that_is_sent_again_is_the_same_step(server: Server) -> None:
    """Exporters retry: a run would have done everything twice."""
    for _ in range(3):
        assert {} == posted(server, batch(tool(1, herdbook__session="r"), tool(2, herdbook__session="r"))).json
    assert 2 == len(trace(server, "r")["actions"])
    other = posted(server, batch(tool(1, "other", herdbook__session="r"))).json["partialSuccess"]
    assert ("1", "1 spans: sent before, and otherwise") == (other["rejectedSpans"], other["errorMessage"])


@pytest.mark.parametrize(
    "body, headers, answer",
    [
        (b"{", {}, (400, "invalid_request")),
        (b"[]", {}, (400, "invalid_request")),
        (b'{"resourceSpans": 1}', {}, (400, "invalid_request")),
        (b'{"resourceSpans": [1]}', {}, (400, "invalid_request")),
        (b'{"resourceSpans": [{"resource": {"attributes": [{"key": "\\ud800"}]}}]}', {}, (400, "invalid_text")),
        (b"\xff\xff\xff", PROTOBUF, (400, "invalid_request")),
        (b"x", {"Content-Type": "text/plain"}, (415, "unsupported_media_type")),
        (b"x", {"Content-Encoding": "gzip"}, (415, "unsupported_media_type")),
        (b" " * (1024 * 1024 + 1), {}, (413, "too_large")),
        (b"{}", {"Authorization": "Bearer wrong-key-wrong-key-wrong"}, (401, "unauthorized")),
    ],
)
def test_what_cannot_be_taken_is_refused_with_its_code(body: bytes, headers: dict[str, str], answer: Any, server: Server) -> None:
    """A broken exporter would see a traceback, or success."""
    reply = server.ask("POST", "/v1/traces", body, headers=headers)
    assert answer == (reply.status, reply.code)


def test_only_post_is_taken(server: Server) -> None:
    """A look with a browser would be answered as an unknown verb."""
    assert (405, "POST") == ((reply := server.ask("GET", "/v1/traces")).status, reply.headers["allow"])


def test_a_key_without_the_scope_and_a_run_of_another_are_refused(service: Service, server: Server) -> None:
    """Whoever may read could write what others did, or write into their runs."""
    reader = service.perform(ANN, "key_create", {"name": "r", "role": "reader"})["key"]
    writer = service.perform(ANN, "key_create", {"name": "w", "role": "writer", "reach": ["acme"]})["key"]
    assert (403, "forbidden") == ((reply := posted(server, batch(tool(1)), Authorization=f"Bearer {reader}")).status, reply.code)
    service.perform(ANN, "start_session", {"agent": "a", "session": "hers"})
    for spans, said in (
        (batch(tool(1, herdbook__session="hers")), "of a run that is another's"),
        (batch(tool(1, herdbook__session="mine", herdbook__entity="globex")), "about a path that this key does not reach"),
    ):
        partial = posted(server, spans, Authorization=f"Bearer {writer}").json["partialSuccess"]
        assert ("1", f"1 spans: {said}") == (partial["rejectedSpans"], partial["errorMessage"])
    assert [] == service.perform(ANN, "trace", {"ref": "hers"})["actions"]
    assert (
        {}
        == posted(
            server, batch(tool(2, herdbook__session="ok", herdbook__entity="acme/ci")), Authorization=f"Bearer {writer}"
        ).json
    )


def test_a_server_failure_is_no_span_left_out(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk would be told as a span that cannot be kept, and the exporter would not send it again."""

    class Full(HerdbookError):
        code, status = "full", 507

    def full(*args: Any, **more: Any) -> None:
        raise Full("full")

    monkeypatch.setattr("herdbook.record.sessions.record_action", full)
    with pytest.raises(Full):
        service.perform(ANN, "record_spans", {"resource_spans": batch(tool(1))})


def test_every_span_counts_as_a_change(service: Service) -> None:
    """A key that may make ten changes a day could put two thousand steps into runs with each of them."""
    service.clock = TickClock(service.clock.now())  # nothing is refilled meanwhile
    key = service.perform(ANN, "key_create", {"name": "ten", "role": "writer", "quota_day": 10})["key"]
    mine = {"Authorization": f"Bearer {key}"}

    def sent(name: str, count: int) -> tuple[int, str | None]:
        first = ord(name) * 100  # no span is sent twice
        reply = posted(server, batch(*(tool(first + n, herdbook__session=name) for n in range(count))), **mine)
        return reply.status, None if reply.status == 200 else reply.code

    with serving(service, key=KEY) as server:
        assert (200, None) == sent("a", 6)
        assert (429, "too_many_requests") == sent("b", 6)  # one more change was counted, and no step kept
        assert (413, "too_large") == sent("c", 20)
        assert (200, None) == sent("d", 2)
        assert (429, "too_many_requests") == sent("e", 1)
        kept = [len(trace(server, name)["actions"]) for name in ("a", "d")]
        assert [404, 404] == [server.post("trace", {"ref": name}).status for name in ("b", "c")]
    assert [6, 2] == kept


# --- a server's own requests ---


@pytest.mark.slow
def test_a_server_stops_though_its_collector_does_not_answer(tmp_path: Path) -> None:
    """A stop would take as long as the SDK goes on trying, and be killed; and nobody would hear that spans are missing."""
    told = {"HERDBOOK_HOME": str(tmp_path), "OTEL_EXPORTER_OTLP_TIMEOUT": "60000", "OTEL_BSP_SCHEDULE_DELAY": "60000"}
    with socket.create_server(("127.0.0.1", 0)) as hangs:  # takes connections, and never answers
        endpoint = f"http://127.0.0.1:{hangs.getsockname()[1]}"
        env = {**os.environ, **told, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}
        command = [sys.executable, "-m", "herdbook", "serve", "--port", "0", "--json"]
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            address = json.loads(running.stdout.readline())["url"]
            for _ in range(3):
                urllib.request.urlopen(f"{address}/healthz", timeout=20).close()
            running.terminate()
            _, said = running.communicate(timeout=25)  # the SDK would try for thirty seconds
    assert 0 == running.returncode
    assert "3 of 3 spans were not delivered" in said


def watched(monkeypatch: pytest.MonkeyPatch, exporter: InMemorySpanExporter) -> RequestSpans:
    found = request_spans({"OTEL_TRACES_EXPORTER": "otlp"}, exporter=exporter)
    assert found is not None
    return found


def test_each_request_is_a_span_without_what_was_sent(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody could see in their own tracing what is slow; or everybody there could read what the record holds."""
    exporter = InMemorySpanExporter()
    parent = f"00-{'ab' * 16}-{'cd' * 8}-01"
    with serving(service, key=KEY, spans=watched(monkeypatch, exporter)) as server:
        server.ask(
            "POST", "/v1/write", b'{"entity": "hidden/path", "key": "k", "value": "hidden"}', headers={"traceparent": parent}
        )
        server.get("/v1/read?entity=hidden/path&key=none")
        server.get("/hidden/address")
        server.get("/healthz")
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert {"POST /v1/write", "GET /v1/read", "GET /unknown", "GET /healthz"} == set(spans)
    wrote, read = dict(spans["POST /v1/write"].attributes or {}), dict(spans["GET /v1/read"].attributes or {})
    assert {
        "http.request.method": "POST", "http.route": "/v1/write", "http.response.status_code": 200, "herdbook.verb": "write",
    } == wrote  # fmt: skip
    assert (404, "not_found") == (read["http.response.status_code"], read["error.type"])
    assert int("ab" * 16, 16) == spans["POST /v1/write"].context.trace_id
    assert "hidden" not in str([span.to_json() for span in spans.values()])
    assert KEY not in str([span.to_json() for span in spans.values()])


@pytest.mark.parametrize(
    "environ",
    [{}, {"OTEL_SERVICE_NAME": "x"}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "true"},
     {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "none"}],
)  # fmt: skip
def test_nothing_is_sent_where_nobody_asked(environ: dict[str, str]) -> None:
    """A server would tell somebody about its requests because a package happens to be installed."""
    assert request_spans(environ) is None


def test_a_caller_has_to_be_known(service: Service) -> None:
    """The verb's scope would hold on one of its two addresses."""
    with pytest.raises(HerdbookError, match="needs the scope"):
        service.perform(Caller(1, "x", frozenset({"read"}), "rest"), "record_spans", {"resource_spans": []})
