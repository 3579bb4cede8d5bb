"""The fixtures that each part of the record's conformance suite stands on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from herdbook.service.door import Service
from herdbook.testing.record_book import Book, Desk, box, person


class Contract:
    """Give it a `book`, and close that after each test."""

    @pytest.fixture
    def book(self) -> Iterator[Book]:
        """The record to be tested, empty."""
        raise NotImplementedError("override this fixture with the record to be tested")

    @pytest.fixture
    def service(self, book: Book) -> Service:
        return book.open()

    @pytest.fixture
    def ann(self, service: Service) -> Desk:
        """A person with every scope."""
        return person(service)

    @pytest.fixture
    def box_a(self, service: Service) -> Desk:
        return box(service, "box-a")

    @pytest.fixture
    def box_b(self, service: Service) -> Desk:
        return box(service, "box-b")
