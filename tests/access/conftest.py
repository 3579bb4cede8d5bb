"""A record in a file of its own, a clock that stands still, and people who ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from herdbook.service.door import Service
from herdbook.testing.records import Book, Desk, person
from tests.record.files import sqlite_book


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    found = sqlite_book(tmp_path / "record.db")
    yield found
    found.close()


@pytest.fixture
def service(book: Book) -> Service:
    return book.open()


@pytest.fixture
def ann(service: Service) -> Desk:
    """At the machine itself."""
    return person(service)
