"""A file of an older schema is carried over where it is: what it holds stays, and trust goes on from where it stood."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import herdbook
from herdbook.record.store.sqlite import APPLICATION_ID, MIGRATIONS, SCHEMA

CAUSE = "INSERT INTO outcome_cause (tenant, outcome, version) VALUES (1, ?, ?)"


def as_of(path: Path, number: int) -> None:
    """An empty file as an older herdbook made it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("PRAGMA journal_mode=WAL")
        for _, _, sql in MIGRATIONS[:number]:
            raw.executescript(sql)
        raw.executescript(f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={number};")


def outcome_of_old(path: Path) -> float:
    """One entry and one outcome that moved it, by the statements of the time; where its trust stands now."""
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.executescript("""
            INSERT INTO path (tenant, id, path) VALUES (1, 1, 'acme/ci');
            INSERT INTO entry (tenant, path, key, id, number, version, claim) VALUES (1, 1, 'a', 2, 1, 3, zeroblob(16));
            INSERT INTO claim (tenant, path, entry, digest, initial, confidence) VALUES (1, 1, 2, zeroblob(16), 0.5, 0.5);
            INSERT INTO version (id, tenant, entry, path, key, number, claim, value, kind, confidence, origin, author, identity,
              at, request, body, answered)
            VALUES (3, 1, 2, 1, 'a', 1, zeroblob(16), '1', 'fact', 0.5, 'agent', 'x', 'x', 0, 'r', x'', '[]');
            INSERT INTO session (tenant, id, agent, identity, channel, started_at) VALUES (1, 's', 'x', 'x', 'cli', 0);
            INSERT INTO outcome (id, tenant, ref, session, type, identity, at) VALUES (4, 1, 'o1', 's', 'failure', 'x', 0);
            INSERT INTO outcome (id, tenant, ref, session, type, identity, at) VALUES (5, 1, 'o2', 's', 'failure', 'x', 0);
        """)
        raw.execute(CAUSE, (4, 3))
        return float(raw.execute("SELECT confidence FROM claim").fetchone()[0])


@pytest.mark.parametrize("number", range(1, SCHEMA))
def test_an_older_file_is_carried_over(tmp_path: Path, number: int) -> None:
    """Trust would begin anew, or the outcomes of an upgraded fleet would move nothing."""
    path = tmp_path / "record.db"
    as_of(path, number)
    assert 0.45 == outcome_of_old(path)
    with herdbook.open(path) as book:
        assert [] == book.call("status", {})["triggers_missing"]
        book.write("acme/ci", "b", 2, why="measured")
        book.commit_outcome("failure", used=[{"entity": "acme/ci", "key": "a", "version": 1}])
        with closing(sqlite3.connect(path, isolation_level=None)) as raw:
            assert (SCHEMA,) == raw.execute("PRAGMA user_version").fetchone()
            raw.execute(CAUSE, (5, 3))  # plain SQL goes on moving, too
            found = raw.execute("SELECT n, before, after FROM outcome_cause ORDER BY n").fetchall()
    assert [(1, 0.5, 0.45), (2, 0.45, 0.45 * 0.9), (3, 0.45 * 0.9, 0.45 * 0.9 * 0.9)] == found
