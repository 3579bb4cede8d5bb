"""The record on PostgreSQL, as a book for the conformance suite: a database of its own, and a login below row security."""

from __future__ import annotations

from pathlib import Path

from herdbook.base.clock import TickClock
from herdbook.base.settings import Database
from herdbook.record.record import Record
from herdbook.service.door import Service
from herdbook.testing.records import Book
from tests.postgres_server import LOGIN, server


def postgres_book(name: str, key_file: Path) -> Book:
    """The record in this database of the run's server."""

    def opener(clock: TickClock) -> Service:
        return Service(Record.open(Database(server().url(name, login=LOGIN)), key_file=key_file), clock)

    def make_tenant(number: int) -> None:
        with server().admin(name) as admin:
            admin.execute("INSERT INTO herdbook.tenant (id, name) VALUES (%s, %s)", (number, f"tenant {number}"))

    return Book(opener, make_tenant)
