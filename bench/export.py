"""A training set of many runs: how fast beside a bare SELECT and JSON dump of the same rows, and in how much memory.

The runs are written straight into the tables, sealed as herdbook seals them: through the verbs a million would take an hour. Each
side is a process of its own, so that its largest memory is its own. A turn reads everything, so there are few of them.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from bench.timing import Claim, Result, Scale
from herdbook.base import settings
from herdbook.record.record import Record

PASSES_MAX = 3
CALLS = 3
MEMORY_MB = 500.0
TIMES_BARE = 4.0
BATCH = 10_000
TASKS = 5_000
FILES = ["checkout", "billing", "search", "login", "mail", "stock"]

BARE = """
SELECT s.id, s.agent, s.entity, s.started_at,
  (SELECT json_group_array(json_array(c.name, c.text, c.at)) FROM context c WHERE c.tenant = 1 AND c.session = s.id),
  (SELECT json_group_array(json_array(a.tool, a.args, a.result, a.ok, a.at))
   FROM action a WHERE a.tenant = 1 AND a.session = s.id),
  (SELECT json_group_array(json_array(o.ref, o.type, o.task_input, o.at)) FROM outcome o WHERE o.tenant = 1 AND o.session = s.id)
FROM session s WHERE s.tenant = 1 ORDER BY s.id"""


def claims(scale: Scale) -> Iterator[Result]:
    """Rates with and without looking for secrets, and the largest memory of either."""
    with tempfile.TemporaryDirectory(prefix="bench-export-") as home:
        record = Path(home) / "record.db"
        fill(record, scale.entries, scale)
        turns: dict[str, list[tuple[float, float]]] = {"bare": [], "export": [], "unscrubbed": []}
        for _ in range(min(scale.passes, PASSES_MAX)):
            for side, found in turns.items():
                found.append(turn(record, side, Path(home)))
                scale.say(f"  {side}: {scale.entries / found[-1][0]:,.0f} runs/s, {found[-1][1]:.0f} MB")
        bare = [seconds for seconds, _ in turns["bare"]]
        for side, says in (("export", "secrets and personal data taken out"), ("unscrubbed", "as the runs are")):
            ratios = tuple(seconds / beside for (seconds, _), beside in zip(turns[side], bare, strict=True))
            each = {"us_a_run": 1e6 * min(turns[side])[0] / scale.entries, "bare_us_a_run": 1e6 * min(bare) / scale.entries}
            text = f"a training set of {scale.entries:,} runs, {says}, beside SELECT and JSON"
            yield Claim(f"export.{side}", text, ratios, "at most", TIMES_BARE, "x", each)
        memory = tuple(max(mb for _, mb in pair) for pair in zip(turns["export"], turns["unscrubbed"], strict=True))
        yield Claim("export.memory", "the largest memory of the process that exports", memory, "at most", MEMORY_MB, "MB")


def turn(record: Path, side: str, home: Path) -> tuple[float, float]:
    """Seconds and megabytes of one side, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.export_side", side, str(record), str(home / f"out-{time.monotonic_ns()}")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "HERDBOOK_HOME": str(record.parent)},
    )
    told = json.loads(done.stdout)
    return told["seconds"], told["megabytes"]


def fill(path: Path, runs: int, scale: Scale) -> None:
    """Runs as the verbs leave them: a session, what it was given, its calls, and a sealed outcome."""
    key = settings.load({"HERDBOOK_HOME": str(path.parent)}).seal_key_file
    with closing(Record.open(path, key_file=key)) as record, closing(sqlite3.connect(path, isolation_level=None)) as raw:
        chosen = random.Random(7)
        raw.execute("PRAGMA synchronous = OFF")
        for first in range(0, runs, BATCH):
            raw.execute("BEGIN")
            for number in range(first, min(first + BATCH, runs)):
                add(raw, record, chosen, number)
            raw.execute("COMMIT")
            if first % 100_000 == 0:
                scale.say(f"  {first:,} runs written")


def add(raw: sqlite3.Connection, record: Record, chosen: random.Random, number: int) -> None:
    name, at = f"run-{chosen.getrandbits(48):012x}-{number}", 1_760_000_000_000_000 + number * 1_000_000
    task, file = chosen.randrange(TASKS), chosen.choice(FILES)
    asked = f"Make the {file} suite pass again; it went red with build {task}."
    raw.execute(
        "INSERT INTO session VALUES (1, ?, 'fixer', 'ci', 'rest', NULL, ?, ?, ?, NULL, NULL)", (name, f"acme/{file}", asked, at)
    )
    raw.execute("INSERT INTO context VALUES (1, ?, 1, 'system', ?, ?)", (name, f"You mend {file}. Be brief, and test.", at + 1))
    for nth in range(1, CALLS + 1):
        args = json.dumps({"command": f"pytest -q tests/{file} -k case_{chosen.randrange(500)}", "timeout": 60})
        result = json.dumps(f"{chosen.randrange(40)} passed, {chosen.randrange(3)} failed in {chosen.random() * 9:.2f}s\n" * 4)
        row = (name, nth, args, result, at + nth * 1_000)
        raw.execute("INSERT INTO action VALUES (1, ?, ?, 'bash', ?, ?, 1, ?)", row)
    kind = "success" if chosen.random() < 0.8 else "failure"
    outcome: tuple[Any, ...] = (number + 1, f"{name}.end", name, kind, "ci", None, asked, None, None, None, at + 9_000)
    seal = record.seal("outcome", 1, *outcome)
    raw.execute("INSERT INTO outcome VALUES (?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*outcome, seal))
