"""A record with runs in it, and pages of them, for whoever makes training sets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from herdbook.testing.records import Book, Desk, person
from tests.record.files import sqlite_book


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    found = sqlite_book(tmp_path / "record.db")
    yield found
    found.close()


@pytest.fixture
def ann(book: Book) -> Desk:
    return person(book.open())


class Fleet:
    """Runs by the dozen, on a clock that moves."""

    def __init__(self, desk: Desk, book: Book) -> None:
        self.desk = desk
        self.clock = book.clock

    def run(
        self,
        session: str,
        *calls: tuple[str, Any],
        kind: str | None = "success",
        task: str | None = "make it pass",
        entity: str = "acme/ci",
        **more: Any,
    ) -> None:
        """One run: these tool calls, then this outcome, or none."""
        self.desk.do("start_session", session=session, agent="agent", entity=entity)
        for tool, args in calls:
            self.clock.tick(seconds=1)
            self.desk.do("record_action", session=session, tool=tool, args=args, result="ok")
        self.clock.tick(seconds=1)
        if kind is not None:
            self.desk.outcome(session, kind, ref=f"{session}.end", **({"task_input": task} if task else {}), **more)

    def ask(self, fields: Any) -> dict[str, Any]:
        """Pages of runs."""
        return self.desk.do("runs", **fields)


@pytest.fixture
def fleet(ann: Desk, book: Book) -> Fleet:
    return Fleet(ann, book)
