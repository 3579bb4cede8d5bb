"""Which engine a record is on: an address is a PostgreSQL database, anything else a file of SQLite."""

from __future__ import annotations

from herdbook.base.errors import ExtraMissing
from herdbook.base.settings import Database, Place
from herdbook.record.store.protocol import Store
from herdbook.record.store.sqlite import SqliteStore


def open_store(where: Place, *, synchronous: str) -> Store:
    """The store there. Only SQLite's is made on first use, and only it takes `synchronous`: a server has its own setting."""
    if isinstance(where, Database):
        return open_database(where.url)
    return SqliteStore(where, synchronous=synchronous)


def open_database(url: str) -> Store:
    try:
        from herdbook.record.store.postgres.store import PostgresStore
    except ImportError as problem:
        raise ExtraMissing.of("postgres", what="the driver of PostgreSQL") from problem
    return PostgresStore(url)
