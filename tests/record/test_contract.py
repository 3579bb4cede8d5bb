"""Both engines keep the one contract of every store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from herdbook.testing.records import Book, RecordContract
from tests.postgres_server import server
from tests.record.databases import postgres_book
from tests.record.files import sqlite_book


class TestSqlite(RecordContract):
    @pytest.fixture
    def book(self, path: Path) -> Iterator[Book]:
        found = sqlite_book(path)
        yield found
        found.close()


@pytest.mark.slow
class TestPostgres(RecordContract):
    @pytest.fixture
    def book(self, tmp_path: Path) -> Iterator[Book]:
        name = server().database()
        found = postgres_book(name, tmp_path / "seal.key")
        yield found
        found.close()
        server().give_back(name)
