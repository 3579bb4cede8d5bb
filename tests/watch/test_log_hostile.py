"""Whatever stands in a log, or in a release: the watch ends with a finding, and with a job that is done."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from herdbook.watch.config import Service
from herdbook.watch.queue import Job, RecordQueue
from tests.watch.hooking import sha_of
from tests.watch.staging import LEAST, Stage, staging

pytestmark = [pytest.mark.isolation, pytest.mark.slow]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staging(tmp_path) as found:
        yield found


TEXTS = [
    r"ERROR half a \ud800 pair",
    r"ERROR \u0000 \u0001 \u001b[31m \u202e \ufeff \u2028",
    "ERROR " + "\U0001f600" * 20_000,
    r"Traceback (most recent call last):\n" + r"  File \"a.py\", line 1\n" * 3_000,
]
TIMES = ["NaN", "1e999", "-5e300", "true", '"2026-99-99T99:99:99+99:99"', "9" * 6000, "[" * 5000 + "]" * 5000, "{}"]


def test_no_line_of_a_log_ends_a_watch(stage: Stage) -> None:
    """Whoever can write a log line could keep a release from being watched, or end the worker."""
    lines = [
        f'{{"time": {time.time()}, "message": "{text}", "severity": ["x"], "revision": {{"a": "\\udfff"}}}}' for text in TEXTS
    ]
    lines += [f'{{"message": "ERROR", "time": {when}}}' for when in TIMES]
    stage.log.write_bytes(b"ERROR \xff\xfe \x00 bytes\n" + "\n".join(lines).encode() + b"\n")
    (stage.home / "api.state.json").write_text(
        r'{"serving": "\ud800", "newest": ["x"], "newest_ready": "yes", "detail": "\udfff"}'
    )
    result = stage.watched(stage.deploy(1))
    assert ["unexplained"] == [each["label"] for each in result["verdicts"]]


def test_no_entry_of_a_journal_ends_a_watch(stage: Stage, tmp_path: Path) -> None:
    """The same for what a unit prints: bytes that are no text, fields that come twice, numbers that are none."""
    entries: list[dict[str, Any]] = [
        {"MESSAGE": value} for value in ([69, 255, 254], ["ERROR a", [66]], None, 7, {"a": 1}, "ERROR \ud800")
    ]
    entries += [{"MESSAGE": "ERROR", "PRIORITY": ["3"]}]
    told = [
        json.dumps({"__CURSOR": f"s={n}", "__REALTIME_TIMESTAMP": f"{time.time_ns() // 1000}", **e})
        for n, e in enumerate(entries)
    ]
    (tmp_path / "entries").write_text("\n".join(told) + "\n")
    program = tmp_path / "journal"
    program.write_text(f'#!/bin/sh\ncase "$*" in *after-cursor*) exit 0;; esac\ncat {tmp_path}/entries\n')
    program.chmod(0o755)
    options = {"unit": "api.service", "program": str(program)}
    stage.config = replace(stage.config, services={"api": Service(name="api", source="journald", options=options)})
    result = stage.watched(stage.deploy(1))
    assert ["unexplained"] == [each["label"] for each in result["verdicts"]]


def test_many_services_and_long_lines_fit(stage: Stage) -> None:
    """A bad release of a dozen services would be too much to be written down."""
    names = [f"s{n}" for n in range(12)]
    service = stage.config.services["api"]
    stage.config = replace(stage.config, services={name: replace(service, name=name) for name in names})
    for number in range(40):
        stage.logged(LEAST.replace("search returned", f"{number} \U0001f600" + "\u00e9" * 900))
    shas = {"before": sha_of(0), "after": sha_of(1)}
    body = {"kind": "deploy", "repositories": {"acme/app": shas}, "services": names}
    RecordQueue(stage.book()).put(Job(key="deploy-many", body=body))
    result = stage.watched("deploy-many")
    assert 12 == len(result["verdicts"])
    assert len(json.dumps(result)) < 512 * 1024


def test_colours_do_not_hide_an_error(stage: Stage) -> None:
    """What a program prints for a terminal would be read as noise."""
    stage.logged("\x1b[31mERROR\x1b[0m: it broke", level="")
    result = stage.watched(stage.deploy(1))
    assert ["unexplained"] == [each["label"] for each in result["verdicts"]]
