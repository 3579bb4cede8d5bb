"""What the server counts: enough to see load, failures and batching, and nothing a caller can make grow."""

from __future__ import annotations

import json
import logging
import re

import pytest

from herdbook.base.exposition import SECONDS, Histogram
from herdbook.service.door import Service
from herdbook.surfaces.rest.metrics import NAMES, Metrics
from tests.rest.serving import ENTRY, Server, serving

SAMPLE = re.compile(r"^([a-z_]+)(?:\{([^{}]*)\})? (-?[0-9.]+(?:e[-+]?\d+)?)$")


def samples(server: Server) -> dict[str, float]:
    """Every sample, by its name and labels, and that the text is in the exposition format."""
    text = server.get("/metrics").body.decode()
    assert text.endswith("\n")
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = SAMPLE.match(line)
            assert match, line
            found[f"{match[1]}{{{match[2] or ''}}}"] = float(match[3])
    return found


def test_requests_and_errors_are_counted(server: Server) -> None:
    """Nobody could see that clients are being refused."""
    server.post("write", {**ENTRY, "value": 1, "why": "w"})
    server.post("write", {**ENTRY, "value": 2, "why": "w"})
    server.post("read", ENTRY)
    server.post("read", {**ENTRY, "key": "nobody"})
    server.get("/nowhere")
    found = samples(server)
    assert 2 == found['herdbook_requests_total{verb="write",status="200"}']
    assert 1 == found['herdbook_requests_total{verb="read",status="404"}']
    assert 1 == found['herdbook_requests_total{verb="unknown",status="404"}']
    assert 2 == found['herdbook_errors_total{code="not_found"}']
    assert 2 == found['herdbook_request_seconds_count{verb="write"}']
    assert 2 == found['herdbook_request_seconds_bucket{verb="write",le="+Inf"}']
    assert 2 == found["herdbook_batch_requests_sum{}"]
    assert 0 == found["herdbook_waiting_requests{}"]
    assert found["process_start_time_seconds{}"] > 1_700_000_000


def test_a_caller_cannot_make_labels(server: Server) -> None:
    """Anybody could fill the memory, or forge lines, by asking for names that do not exist."""
    for name in ("nothing", "a%22%7D%201%0Aforged", "x" * 200):
        server.ask("POST", f"/v1/{name}", b"{}")
        server.ask("BREW", f"/{name}")
    assert {"unknown", "none"} >= {key.split('"')[1] for key in samples(server) if "requests_total" in key}


def test_every_metric_is_named_once() -> None:
    """The reference would describe other figures than the server has."""
    text = Metrics().text(waiting=0)
    assert list(NAMES) == re.findall(r"^# TYPE ([a-z_]+) ", text, re.MULTILINE)
    assert list(NAMES) == re.findall(r"^# HELP ([a-z_]+) .+\.$", text, re.MULTILINE)


def test_a_histogram_counts_at_its_bounds() -> None:
    """Durations would be put into the wrong bucket."""
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 99.0):
        histogram.observe(value)
    lines = list(histogram.lines("h"))
    assert ['h_bucket{le="1"} 2', 'h_bucket{le="2"} 4', 'h_bucket{le="+Inf"} 5', "h_sum 104.000000", "h_count 5"] == lines
    assert sorted(SECONDS) == list(SECONDS)


def test_the_access_log_names_no_values(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    """A log file would hold what agents know, or the key."""
    with caplog.at_level(logging.INFO, logger="herdbook.access"), serving(service, key="a-secret-of-enough-length") as server:
        answer = server.post("write", {**ENTRY, "value": "value-of-it", "why": "reason-for-it"})
        server.get("/v1/read?entity=acme%2Fci&key=retries")
    lines = [json.loads(record.getMessage()) for record in caplog.records if record.name == "herdbook.access"]
    assert [("write", 200, "POST"), ("read", 200, "GET")] == [(line["verb"], line["status"], line["method"]) for line in lines]
    assert answer.headers["x-request-id"] == lines[0]["request_id"]
    for secret in ("a-secret", "value-of-it", "reason-for-it", "acme", "retries"):
        assert secret not in caplog.text
