"""Two entries that set one thing differently are named together, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from herdbook.fastloop.briefing import Briefer
from herdbook.fastloop.ordering import Orderer
from herdbook.fastloop.tokens import estimate_tokens
from tests.fastloop.fake_record import NOW, TENANT, Asked, FakeRecord


def pairs(*entries: tuple[str, str, Any, dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """What is told of a record with these entries: each thing, with the keys that set it."""
    record = FakeRecord()
    for path, key, value, more in entries:
        record.write(path, key, value, **more)
    found = Briefer(record).contradictions(TENANT, "acme/ci", now=NOW)
    return [(each["what"], [f"{side['entity']} {side['key']}" for side in each["sides"]]) for each in found]


def env(text: str) -> dict[str, Any]:
    return {"env": {"HTTP_PROXY": text}}


DIFFERENT: dict[str, list[tuple[str, str, Any, dict[str, Any]]]] = {
    "env HTTP_PROXY": [("acme/ci", "proxy", env("a:1"), {}), ("acme/ci", "network", env("b:1"), {})],
    "env TZ": [("acme/ci", "zone", {"env": {"TZ": "UTC"}}, {}), ("acme", "clock", {"env": {"TZ": "CET"}}, {})],
    "field retry.limit": [
        ("acme/ci", "retries", {"retry": {"limit": 3}}, {}),
        ("acme/ci", "retry", {"retry": {"limit": 5}}, {}),
    ],
    "key port": [("acme/ci", "port", 22, {}), ("acme", "port", 2222, {"observed": 1})],
}
ALIKE: dict[str, list[tuple[str, str, Any, dict[str, Any]]]] = {
    "they agree": [("acme/ci", "proxy", env("a:1"), {}), ("acme/ci", "network", env("a:1"), {})],
    "one is a dead end": [
        ("acme/ci", "proxy", env("a:1"), {}),
        ("acme/ci", "tried", env("b:1"), {"kind": "experience", "worked": False}),
    ],
    "one has expired": [("acme/ci", "proxy", env("a:1"), {}), ("acme/ci", "old", env("b:1"), {"expires_at": NOW - 1})],
    "one has faded": [
        ("acme/ci", "proxy", env("a:1"), {}),
        ("acme/ci", "old", env("b:1"), {"confidence": 0.01, "age_days": 900}),
    ],
    "each has a condition of its own": [
        ("acme/ci", "proxy", env("a:1"), {"applies_when": "arm64"}),
        ("acme/ci", "other", env("b:1"), {"applies_when": "amd64"}),
    ],
    "two things have a port": [("acme/ci", "api", {"port": 1}, {}), ("acme/ci", "database", {"port": 2}, {})],
    "instances of one kind": [("acme/ci", "host-1", {"cores": 1}, {}), ("acme/ci", "host-2", {"cores": 2}, {})],
    "prose": [("acme/ci", "note", {"text": "it is slow"}, {}), ("acme/ci", "notes", {"text": "it is fast"}, {})],
    "elsewhere": [("acme/ci", "proxy", env("a:1"), {}), ("acme/web", "proxy", env("b:1"), {})],
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_what_is_set_twice_is_a_pair(what: str) -> None:
    """An agent would act on one of two entries, and never know that the other one says otherwise."""
    [(told, sides)] = pairs(*DIFFERENT[what])
    assert (what, 2) == (told, len(sides))


@pytest.mark.parametrize("why", ALIKE)
def test_what_does_not_contradict_is_not_told(why: str) -> None:
    """Pairs that are none would be read past, and the real ones with them."""
    assert [] == pairs(*ALIKE[why])


def test_a_pair_is_in_the_text_within_the_budget() -> None:
    """Whoever reads the text would not see it, or the text would cost more than was asked for."""
    record = FakeRecord()
    for number, (key, text) in enumerate([("proxy", "a:1"), ("network", "b:1"), ("mirror", "`c`:1")]):
        record.write("acme/ci", key, env(text), why="x " * 40, observed=int(number == 1))
    for tokens in (64, 120, 200, 400, 2_000):
        answer = Briefer(record).brief(TENANT, Asked(tokens=tokens), now=NOW).answer
        assert estimate_tokens(answer["markdown"]) <= tokens
    assert "## Set differently by two entries" in answer["markdown"]
    assert "- `env HTTP_PROXY`: `network` v1 (observed) says" in answer["markdown"]
    [pair] = answer["contradictions"]
    assert ["network", "proxy", "mirror"] == [side["key"] for side in pair["sides"]] or 3 == len(pair["sides"])
    assert {True} == {side["shown"] for side in pair["sides"]}


def test_what_is_not_shown_is_not_quoted() -> None:
    """A run would be told what its exposures do not hold."""
    record = FakeRecord()
    record.write("acme/ci", "proxy", env("a:1"), observed=1)
    record.write("acme/ci", "network", env("b:1"), why="long " * 300)
    answer = Briefer(record).brief(TENANT, Asked(tokens=130), now=NOW).answer
    shown = {entry["key"] for entry in answer["entries"]}
    for pair in answer["contradictions"]:
        for side in pair["sides"]:
            assert (side["key"] in shown) == side["shown"] == (side["value"] is not None)


def test_a_pair_is_gone_when_one_side_is_superseded() -> None:
    """What was put right would be called a contradiction for ever."""
    record, briefer = FakeRecord(), None
    record.write("acme/ci", "proxy", env("a:1"))
    record.write("acme/ci", "network", env("b:1"))
    briefer = Briefer(record, Orderer())
    assert 1 == len(briefer.contradictions(TENANT, "acme/ci", now=NOW))
    record.write("acme/ci", "network", env("a:1"), number=2)
    assert [] == briefer.contradictions(TENANT, "acme/ci", now=NOW)
