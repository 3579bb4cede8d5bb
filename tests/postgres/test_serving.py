"""`herdbook serve` and `doctor` on PostgreSQL, as processes, and the log that a fleet's operator collects."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from herdbook.testing.records import Desk
from tests.postgres_server import LOGIN, server

KEY = "a-secret-of-enough-length"
SERVE = ("serve", "--port", "0", "--json", "--log-level", "info", "--log-format", "json")


def environment(database: str, home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HERDBOOK_")}
    record = server().url(database, login=LOGIN)
    ours = {"HERDBOOK_RECORD": record, "HERDBOOK_SEAL_KEY_FILE": str(home / "seal.key"), "HERDBOOK_EMBED": "off"}
    return {**kept, **ours, "HOME": str(home)}


@contextmanager
def serving(database: str, home: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    line = [sys.executable, "-m", "herdbook", *SERVE]
    env = environment(database, home) | {"HERDBOOK_KEY": KEY}
    with subprocess.Popen(line, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            yield json.loads(running.stdout.readline())["url"], running
        finally:
            running.kill()


def post(url: str, verb: str, fields: Mapping[str, object], *, key: str) -> tuple[int, str]:
    """The status, and the request's id."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    request = urllib.request.Request(f"{url}/v1/{verb}", json.dumps(fields).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers["X-Request-Id"]
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.headers["X-Request-Id"]


@pytest.mark.slow
def test_every_line_of_the_log_is_json_with_its_request(ann: Desk, database: str, tmp_path: Path) -> None:
    """An operator could not find a failed request in a collected log, or would find in it what agents know."""
    entry = {"entity": "acme/ci", "key": "canary-key", "value": "canary-value", "why": "canary-why", "request_id": "r1"}
    with serving(database, tmp_path) as (url, running):
        told = [
            post(url, "write", entry, key=KEY),
            post(url, "read", {"entity": "acme/none", "key": "canary-gone"}, key=KEY),
            post(url, "read", {"entity": "acme/ci", "key": "canary-key"}, key="canary-credential"),
        ]
        running.send_signal(signal.SIGTERM)
        said = running.communicate(timeout=30)[1]
    lines = [json.loads(line) for line in said.splitlines()]
    assert told == [(line["status"], line["request_id"]) for line in lines if line["logger"] == "herdbook.access"]
    assert [200, 404, 401] == [status for status, _ in told]
    assert {"at", "level", "logger"} <= set.intersection(*map(set, lines))
    assert "canary" not in said
    assert KEY not in said


@pytest.mark.slow
def test_doctor_examines_a_database(ann: Desk, database: str, tmp_path: Path) -> None:
    """On PostgreSQL nobody could tell whether all is well, or that a trigger was turned off."""
    ann.write("a", 1)
    line = [sys.executable, "-m", "herdbook", "doctor", "--no-box", "--json"]

    def examined() -> tuple[int, list[str]]:
        done = subprocess.run(line, env=environment(database, tmp_path), capture_output=True, text=True, check=False)
        return done.returncode, [each["what"] for each in json.loads(done.stdout)["findings"] if not each["ok"]]

    well = examined()
    trigger = "ALTER TABLE herdbook.outcome_cause {} TRIGGER outcome_cause_moves_trust_v1"
    with server().admin(database) as admin:
        admin.execute(trigger.format("DISABLE").encode())
        ill = examined()
        admin.execute(trigger.format("ENABLE ALWAYS").encode())
    assert (0, []) == (well[0], [each for each in well[1] if not each.startswith("synchronous")])
    assert 1 == ill[0]
    assert "integrity: a trigger can be passed by: outcome_cause.outcome_cause_moves_trust_v1" in ill[1]
    assert "trust trigger: did not move a confidence when it was tried" in ill[1]
