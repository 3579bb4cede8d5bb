"""A database of its own for each test, in the one server of the run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from herdbook.service.door import Service
from herdbook.testing.records import Book, Desk, person
from tests.postgres_server import server
from tests.record.databases import postgres_book


@pytest.fixture
def database() -> Iterator[str]:
    name = server().database()
    yield name
    server().give_back(name)


@pytest.fixture
def book(database: str, tmp_path: Path) -> Iterator[Book]:
    found = postgres_book(database, tmp_path / "seal.key")
    yield found
    found.close()


@pytest.fixture
def service(book: Book) -> Service:
    return book.open()


@pytest.fixture
def ann(service: Service) -> Desk:
    return person(service)


@pytest.fixture
def admin(database: str) -> Iterator[psycopg.Connection[Any]]:
    """A superuser's own connection, as psql has it."""
    with server().admin(database) as connection:
        connection.execute("SET search_path = herdbook")
        yield connection
