"""The record on SQLite, in a file of its own for each test."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from herdbook.service.door import Service
from herdbook.testing.records import Book, Desk, person
from tests.record.files import shell, sqlite_book


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the record is."""
    return tmp_path / "record.db"


@pytest.fixture
def book(path: Path) -> Iterator[Book]:
    found = sqlite_book(path)
    yield found
    found.close()


@pytest.fixture
def service(book: Book) -> Service:
    return book.open()


@pytest.fixture
def ann(service: Service) -> Desk:
    return person(service)


@pytest.fixture
def raw(service: Service, path: Path) -> Iterator[sqlite3.Connection]:
    """The same file from outside the application."""
    connection = shell(path)
    yield connection
    connection.close()
