"""The other side of the in-process claims: SQLite with nothing on top.

Two tables, a head row per key and its versions, written in one transaction and read by one prepared SELECT, with the settings
the record uses: WAL and `synchronous=FULL`. No checks, no claims, no seals, no tracking: the least that could be called the same.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE head (path TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL,
    PRIMARY KEY (path, key)) STRICT, WITHOUT ROWID;
CREATE TABLE version (path TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, value TEXT NOT NULL, why TEXT NOT NULL,
    author TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (path, key, version)) STRICT, WITHOUT ROWID;
"""
SUPERSEDE = """
INSERT INTO head (path, key, version) VALUES (?, ?, 1)
ON CONFLICT (path, key) DO UPDATE SET version = version + 1 RETURNING version
"""
APPEND = "INSERT INTO version (path, key, version, value, why, author, at) VALUES (?, ?, ?, ?, ?, ?, ?)"
READ = """
SELECT v.version, v.value, v.why, v.author, v.at FROM head h JOIN version v USING (path, key, version)
WHERE h.path = ? AND h.key = ?
"""


class BareRecord:
    """One connection, as bare as durable writes get."""

    def __init__(self, where: Path) -> None:
        self.connection = sqlite3.connect(where, isolation_level=None)
        self.connection.executescript(SCHEMA)
        self.connection.execute("PRAGMA synchronous = FULL")

    def write(self, path: str, key: str, value: str, why: str) -> int:
        """One transaction of two rows, on disk when it returns."""
        execute = self.connection.execute
        execute("BEGIN IMMEDIATE")
        version: int = execute(SUPERSEDE, (path, key)).fetchone()[0]
        execute(APPEND, (path, key, version, value, why, "bench", time.time_ns()))
        execute("COMMIT")
        return version

    def read(self, path: str, key: str) -> tuple[object, ...]:
        """The current version, by one SELECT that the driver keeps prepared."""
        row: tuple[object, ...] = self.connection.execute(READ, (path, key)).fetchone()
        return row

    def close(self) -> None:
        self.connection.close()
