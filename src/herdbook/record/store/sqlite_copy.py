"""A copy of an SQLite record while it is in use: what is committed and what was read until then, as of one moment, in one file.

SQLite's own backup reads a snapshot, so no writer waits. It goes through the store's own connection: nothing else in this process
opens the record's file.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from herdbook.base.errors import Broken
from herdbook.record.store.protocol import Reader
from herdbook.record.store.rows_digest import Tables, difference, digest_of
from herdbook.record.store.sqlite import Connection, SqliteStore, translated

BESIDE = ("", "-wal", "-shm", "-journal", ".reads")  # what belongs to a record's file, but for its lock
ALL_ROWS = 'SELECT * FROM "TABLE"'


def copy_out(store: SqliteStore, draft: Path) -> Tables:
    """Copy the record into this file, and compare the two, table by table."""
    store.write(lambda tx: None)  # which folds the reads journal
    try:
        with closing(sqlite3.connect(draft, isolation_level=None)) as copy:
            expected = store.look(lambda reader: copied(reader, copy))
            copy.execute("PRAGMA journal_mode=DELETE")  # one file, that can be read where nothing can be written
            damage = [row[0] for row in copy.execute("PRAGMA quick_check(1)") if row[0] != "ok"]
            wrong = difference(expected, tables_of(copy)) or "; ".join(damage)
    except sqlite3.Error as problem:
        raise translated(problem) from problem
    if wrong:
        raise Broken(f"the copy is not the record ({wrong}): nothing was kept; try another disk, and run `herdbook doctor`")
    return expected


def copied(reader: Reader, copy: sqlite3.Connection) -> Tables:
    assert isinstance(reader, Connection)
    found = tables_of(reader.raw)
    reader.raw.backup(copy)
    return found


def tables_of(raw: sqlite3.Connection) -> Tables:
    """What every table holds; of an index of texts, the tables under it."""
    names = raw.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name")
    return {name: digest_of(raw.execute(ALL_ROWS.replace("TABLE", name))) for (name,) in names.fetchall()}


def in_the_way(path: Path) -> list[Path]:
    """What of a record is already there."""
    return [found for found in (Path(f"{path}{end}") for end in BESIDE) if found.exists()]
