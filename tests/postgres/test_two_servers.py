"""Two servers over one database, every request to the other one: nothing that one worker knows is needed by the next."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from herdbook.base.clock import TickClock
from herdbook.service.callers import Caller
from herdbook.service.door import Service
from herdbook.testing.records import Book, RecordContract
from tests.postgres_server import server
from tests.record.databases import postgres_book


class Alternating(Service):
    """A service that is two: each request is answered by the one that did not answer the last."""

    def __init__(self, first: Service, second: Service) -> None:
        self.turns = itertools.cycle((first, second))
        self.both = (first, second)
        self.record, self.clock, self.auditor = first.record, first.clock, first.auditor

    def perform(self, caller: Caller, verb: str, fields: Mapping[str, Any], **how: Any) -> dict[str, Any]:
        return next(self.turns).perform(caller, verb, fields, **how)

    def close(self) -> None:
        for each in self.both:
            each.close()


@pytest.mark.long
@pytest.mark.timeout(600)
class TestTwoServers(RecordContract):
    """The whole contract of the record, through two servers by turns."""

    @pytest.fixture
    def book(self, tmp_path: Path) -> Any:
        name = server().database()
        one = postgres_book(name, tmp_path / "seal.key")

        def opener(clock: TickClock) -> Service:
            return Alternating(one.opener(clock), one.opener(clock))

        found = Book(opener, one.tenant_maker)
        yield found
        found.close()
        server().give_back(name)
