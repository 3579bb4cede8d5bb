"""Embedding behind the answer, on the server engine: from a thread of its own, beside whoever writes and asks."""

from __future__ import annotations

from herdbook.fastloop.embedding.meanings import Meanings
from herdbook.service.door import Service
from herdbook.testing.records import ENTITY, person
from tests.embedding.test_meanings import Slow, keys, waited


def test_what_was_written_is_found_by_meaning_a_moment_later(service: Service) -> None:
    """A server on PostgreSQL would wait for its model after each write, or never make what it missed."""
    embedder = Slow()
    meanings = Meanings(service.record, embedder)
    service.briefer.orderer.semantics = meanings
    desk = person(service)
    try:
        embedder.may.clear()
        desk.write("tz", "the suite passes at midnight only", why=None)
        assert "1 of 1" in desk.brief(task="calendar")["ranking"]["left_out"]["semantic"]
        desk.write("half", "rounding is to even", why=None)
        assert "2 of 2" in desk.brief(task="calendar")["ranking"]["left_out"]["semantic"]
        embedder.may.set()
        waited(meanings)
        assert ["tz"] == keys(desk, "calendar", entity=ENTITY)
        assert {"entries": 2, "embedded": 2} == {name: meanings.state(1)[name] for name in ("entries", "embedded")}
    finally:
        embedder.may.set()
        meanings.close()
