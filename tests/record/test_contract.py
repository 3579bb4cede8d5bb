"""SQLite keeps the one contract of every store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from herdbook.testing.records import Book, RecordContract
from tests.record.files import sqlite_book


class TestSqlite(RecordContract):
    @pytest.fixture
    def book(self, path: Path) -> Iterator[Book]:
        found = sqlite_book(path)
        yield found
        found.close()
