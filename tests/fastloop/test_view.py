"""The one shape of an entry in answers."""

from __future__ import annotations

from herdbook.fastloop.sources import reach
from herdbook.fastloop.view import entry_view
from tests.fastloop.fake_record import NOW, FakeRecord

FIELDS = (
    "entity key version value why kind worked confidence effective_confidence evidence standing acting author identity session "
    "box origin at age_days applies_when expires_at links moves recalls affirmed affirmed_at last_outcome seal"
)


def test_an_entry_has_every_field_and_no_other() -> None:
    """A surface or a client would look for a field that is not there."""
    record = FakeRecord()
    version = record.write(
        "acme/ci",
        "port",
        {"n": 49222},
        why="moved",
        age_days=2,
        corroborated=1,
        held=3.0,
        moves=2,
        links_text='[{"rel":"see_also"}]',
        last_type="success",
        last_ref="r1",
        last_at=NOW,
        expires_at=NOW + 1,
        confidence=0.75,
    )
    view = entry_view(version, record.trust[version.id], now=NOW, base=0.5)
    assert FIELDS.split() == list(view)
    assert {"n": 49222} == view["value"]
    assert ("corroborated", True, "verified", 2.0) == (view["standing"], view["acting"], view["seal"], view["age_days"])
    assert {"type": "success", "ref": "r1", "at": "2026-01-01T00:00:00.000000Z"} == view["last_outcome"]
    assert [{"rel": "see_also"}] == view["links"]
    assert 0.7 < view["effective_confidence"] < 0.75
    assert 0.078947 == view["evidence"]


def test_an_expired_entry_is_retired() -> None:
    """What its author said would be over by now would still act."""
    record = FakeRecord()
    version = record.write("acme/ci", "port", 1, corroborated=5, expires_at=NOW)
    view = entry_view(version, record.trust[version.id], now=NOW, base=0.5)
    assert ("retired", False) == (view["standing"], view["acting"])


def test_a_clock_that_jumped_back_makes_nothing_younger_than_new() -> None:
    """An entry from the future would get a negative age and more confidence than it has."""
    record = FakeRecord()
    version = record.write("acme/ci", "port", 1, age_days=-400)
    view = entry_view(version, record.trust[version.id], now=NOW, base=0.5)
    assert (0.0, 0.5) == (view["age_days"], view["effective_confidence"])


def test_an_affirmed_claim_is_young_again() -> None:
    """What was said again yesterday would fade as if nobody had."""
    record = FakeRecord()
    version = record.write("acme/ci", "port", 1, age_days=300, affirmed=1, affirmed_at=NOW)
    view = entry_view(version, record.trust[version.id], now=NOW, base=0.5)
    assert (0.5, 300.0) == (view["effective_confidence"], view["age_days"])


def test_reach_is_the_path_and_its_ancestors() -> None:
    """A briefing would miss what a path inherits, or inherit from a sibling."""
    assert ["a/b/c", "a/b", "a"] == reach("a/b/c")
