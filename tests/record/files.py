"""The record on SQLite, as a book for the conformance suite and for this folder's own tests."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from herdbook.base.clock import TickClock
from herdbook.record.record import Record
from herdbook.service.door import Service
from herdbook.testing.records import Book


def key_file(path: Path) -> Path:
    return path.with_name("seal.key")


def sqlite_book(path: Path, *, synchronous: str = "FULL") -> Book:
    """The record in this file."""

    def opener(clock: TickClock) -> Service:
        return Service(Record.open(path, key_file=key_file(path), synchronous=synchronous), clock)

    def make_tenant(number: int) -> None:
        with closing(shell(path)) as connection:
            connection.execute("INSERT INTO tenant (id, name) VALUES (?, ?)", (number, f"tenant {number}"))

    return Book(opener, make_tenant)


def shell(path: Path) -> sqlite3.Connection:
    """A connection that knows nothing of herdbook, as the sqlite3 shell has it."""
    return sqlite3.connect(path, isolation_level=None, timeout=5)
