"""What must hold of a record's file whatever happened to the processes that wrote it, asked of the file alone."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CLOSE_ENOUGH = 1e-12

# Each finds rows that must not be. Names say what would be broken.
NEVER = {
    "a version is missing or doubled": """
        SELECT path, key, count(*), max(number), min(number) FROM version GROUP BY tenant, entry
        HAVING count(*) <> max(number) OR min(number) <> 1 OR count(DISTINCT number) <> count(*)""",
    "an entry does not point to its newest version": """
        SELECT e.path, e.key, e.number, e.version FROM entry e
        WHERE NOT EXISTS (SELECT 1 FROM version v WHERE v.tenant = e.tenant AND v.entry = e.id AND v.id = e.version
          AND v.number = e.number AND v.claim = e.claim AND v.path = e.path AND v.key = e.key)
        OR e.number <> (SELECT max(number) FROM version v WHERE v.tenant = e.tenant AND v.entry = e.id)""",
    "two entries share a number": "SELECT id, count(*) FROM entry GROUP BY tenant, id HAVING count(*) > 1",
    "a version without its claim": """
        SELECT v.id FROM version v
        LEFT JOIN claim c ON c.tenant = v.tenant AND c.path = v.path AND c.entry = v.entry AND c.digest = v.claim
        WHERE c.digest IS NULL""",
    "a claim of no entry, or of one elsewhere": """
        SELECT c.entry FROM claim c LEFT JOIN entry e ON e.tenant = c.tenant AND e.path = c.path AND e.id = c.entry
        WHERE e.id IS NULL""",
    "one request made two things": """
        SELECT request, count(*) FROM (SELECT tenant, request FROM version UNION ALL
          SELECT tenant, id FROM request WHERE verb = 'write') GROUP BY tenant, request HAVING count(*) > 1""",
    "an outcome and its first answer are not both there": """
        SELECT o.ref, r.id FROM outcome o FULL JOIN (SELECT * FROM request WHERE verb = 'outcome') r
          ON r.tenant = o.tenant AND r.id = o.ref WHERE o.ref IS NULL OR r.id IS NULL""",
    "a cause that moved nothing, or of no outcome": """
        SELECT x.outcome, x.version FROM outcome_cause x LEFT JOIN outcome o ON o.id = x.outcome
        WHERE x.n IS NULL OR x.before IS NULL OR x.after IS NULL OR o.id IS NULL""",
    "the count of moves is not the moves": """
        SELECT c.entry, c.moves FROM claim c WHERE c.moves <> (SELECT count(*) FROM outcome_cause x
          WHERE x.tenant = c.tenant AND x.entry = c.entry AND x.claim = c.digest)""",
    "the count of recalls is not the reads": """
        SELECT c.entry, c.recalls FROM claim c WHERE c.recalls <> (SELECT count(*) FROM read r JOIN version v ON v.id = r.version
          WHERE r.served = 1 AND r.tenant = c.tenant AND v.entry = c.entry AND v.claim = c.digest)""",
    "an outcome, attestation or revision without its link in the trace": """
        SELECT s.id FROM session s WHERE (SELECT count(*) FROM trace t WHERE t.tenant = s.tenant AND t.session = s.id) <>
          (SELECT count(*) + (SELECT count(*) FROM attestation a JOIN outcome o ON o.id = a.outcome WHERE o.session = s.id)
            + (SELECT count(*) FROM revision r JOIN outcome o ON o.id = r.outcome WHERE o.session = s.id)
          FROM outcome o WHERE o.tenant = s.tenant AND o.session = s.id)""",
}

# What a record says, without row numbers, times and seals, which differ from run to run.
SAYS = {
    "versions": """
        SELECT p.path, v.key, v.number, v.value, v.why, v.kind, v.worked, v.confidence, hex(v.claim), v.author, v.session,
               v.request
        FROM version v JOIN path p ON p.id = v.path""",
    "claims": """
        SELECT p.path, e.key, hex(c.digest), c.initial, c.confidence, c.moves, c.recalls, c.observed, c.corroborated, c.held,
               c.failed, c.failed_since, c.affirmed, c.last_type, c.last_ref
        FROM claim c JOIN entry e ON e.id = c.entry JOIN path p ON p.id = e.path""",
    "heads": """
        SELECT p.path, e.key, e.number, v.number FROM entry e JOIN path p ON p.id = e.path
        LEFT JOIN version v ON v.id = e.standing_version""",
    "rates": "SELECT path, outcomes, successes FROM path",
    "outcomes": "SELECT ref, session, type, identity, task_input FROM outcome",
    "causes": """
        SELECT o.ref, v.key, v.number, x.how, x.factor, x.credit, x.result, x.effective_factor, x.n, x.before, x.after
        FROM outcome_cause x JOIN outcome o ON o.id = x.outcome JOIN version v ON v.id = x.version""",
    "attestations": "SELECT o.ref, a.n, a.exit_code, a.result, a.note FROM attestation a JOIN outcome o ON o.id = a.outcome",
    "revisions": "SELECT o.ref, r.n, r.type, r.why FROM revision r JOIN outcome o ON o.id = r.outcome",
    "refolds": "SELECT o.ref, f.n, f.moves, f.before, f.after FROM refold f JOIN outcome o ON o.id = f.outcome",
    "steps": "SELECT session, n, tool FROM action UNION ALL SELECT session, n, result || charged FROM attempt",
    "reads": "SELECT r.session, v.key, v.number, r.rank, r.how, r.served FROM read r JOIN version v ON v.id = r.version",
    "requests": "SELECT verb, id FROM request",
    "counted": "SELECT e.key, c.identity FROM counted c JOIN entry e ON e.id = c.entry",
    "sessions": "SELECT id, agent, task, ended_at IS NULL FROM session",
    "links": "SELECT session, n, json_extract(event, '$.what') FROM trace",
}


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """The file as any process may read it."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)
    try:
        yield connection
    finally:
        connection.close()


def check(path: Path) -> None:
    """Everything that must hold of a record at rest. What is noted but not folded is no part of it."""
    with reading(path) as file:
        assert [("ok",)] == file.execute("PRAGMA integrity_check").fetchall()
        assert [] == file.execute("PRAGMA foreign_key_check").fetchall()
        for broken, query in NEVER.items():
            assert [] == file.execute(query).fetchall(), broken
        for entry, claim, initial, confidence in file.execute("SELECT entry, digest, initial, confidence FROM claim").fetchall():
            factors = file.execute(
                "SELECT effective_factor FROM outcome_cause WHERE entry = ? AND claim = ? ORDER BY n", (entry, claim)
            ).fetchall()
            assert abs(confidence - replay(initial, [row[0] for row in factors])) < CLOSE_ENOUGH, "confidence is not its moves"


def replay(initial: float, factors: list[float]) -> float:
    """Confidence as the seed's rule says: each outcome multiplies, within [0, 1]."""
    for factor in factors:
        initial = max(0.0, min(1.0, initial * factor))
    return initial


def says(path: Path) -> dict[str, list[Any]]:
    """All that a record says, comparable between runs."""
    with reading(path) as file:
        return {name: sorted(file.execute(query).fetchall(), key=repr) for name, query in SAYS.items()}


def digest(path: Path) -> str:
    """Every row of the file, to the byte, but for who asked what, which is kept also of what is refused."""
    with reading(path) as file:
        rows = [line for line in file.iterdump() if not line.startswith('INSERT INTO "audit"')]
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def versions_by_request(path: Path) -> dict[str, list[tuple[str, int, Any]]]:
    """What each request id made: (key, number, value)."""
    found: dict[str, list[tuple[str, int, Any]]] = {}
    with reading(path) as file:
        for request, key, number, value in file.execute("SELECT request, key, number, value FROM version"):
            found.setdefault(request, []).append((key, number, json.loads(value)))
    return found


def outcome_refs(path: Path) -> Counter[str]:
    with reading(path) as file:
        return Counter(row[0] for row in file.execute("SELECT ref FROM outcome"))


def reads_folded(path: Path, session: str | None = None) -> Counter[tuple[str, int]]:
    """How often each (key, number) was served, to one session or to all."""
    query = "SELECT v.key, v.number FROM read r JOIN version v ON v.id = r.version WHERE r.served = 1 AND ? IN ('', r.session)"
    with reading(path) as file:
        return Counter(file.execute(query, (session or "",)).fetchall())
