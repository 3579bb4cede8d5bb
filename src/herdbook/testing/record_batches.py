"""Conformance: writes that are committed together come to what they would have come to one after another."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from herdbook.base.errors import HerdbookError
from herdbook.testing.record_base import Contract
from herdbook.testing.record_book import ENTITY, Desk

SEED = 20_261_201
SHOWN = ("value", "why", "version", "kind", "confidence", "origin", "author", "standing", "affirmed")


def any_writes(chance: random.Random, count: int) -> Iterator[dict[str, Any]]:
    """Few keys, values and ids, so that all that writes can do to one another is among them."""
    for number in range(count):
        fields: dict[str, Any] = {
            "entity": chance.choice([ENTITY, "acme", "acme/never/seen"]),
            "key": chance.choice("abc"),
            "value": chance.choice([1, "one", None]),
            "why": chance.choice(["seen", "told"]),
            "request_id": f"r{chance.randrange(number + 2)}",
        }
        more: list[dict[str, Any]] = [
            {},
            {},
            {"confidence": chance.choice([0.25, 0.75])},
            {"if_version": chance.randrange(4)},
            {"session": chance.choice(["s", "nobody's"])},
            {
                "links": [
                    {"rel": chance.choice(["derived_from", "see_also"]), "entity": fields["entity"], "key": chance.choice("abc")}
                ]
            },
        ]
        yield fields | chance.choice(more)


def under(side: str, fields: dict[str, Any]) -> dict[str, Any]:
    """The same write below another path, so that two sides never meet."""
    links = [{**link, "entity": f"{side}/{link['entity']}"} for link in fields.get("links", [])]
    return {**fields, "entity": f"{side}/{fields['entity']}", "request_id": f"{side}/{fields['request_id']}", "links": links}


def outcome_of(answer: Any) -> Any:
    """Without what names the side or the moment."""
    if isinstance(answer, HerdbookError):
        return answer.code
    return {name: said for name, said in answer.items() if name not in ("at", "entity", "request_id")}


class BatchContract(Contract):
    """A batch is one transaction for speed, and no other thing than its members in their order."""

    def test_a_batch_of_writes_comes_to_what_they_come_to_alone(self, ann: Desk) -> None:
        """Who happens to write at the same moment would decide what is known."""
        print(f"seed {SEED}")
        chance = random.Random(SEED)
        ann.begin("s")
        writes = list(any_writes(chance, 240))
        expected = [result for each in writes for result in committed(ann, [under("alone", each)])]
        done, rest = [], [under("together", each) for each in writes]
        while rest:
            size = chance.choice([1, 2, 7, 40])
            done += committed(ann, rest[:size])
            del rest[:size]
        assert list(map(outcome_of, expected)) == list(map(outcome_of, done))
        assert {"new", "affirmed", "restated", "returned"} <= {each["claim"] for each in expected if isinstance(each, dict)}
        codes = {each.code for each in expected if isinstance(each, HerdbookError)}
        assert {"version_conflict", "request_conflict", "not_found", "unknown_entry"} <= codes
        assert histories(ann, "alone") == histories(ann, "together")


def committed(desk: Desk, writes: list[dict[str, Any]]) -> list[Any]:
    return desk.service.commit([desk.service.plan(desk.caller, "write", each) for each in writes])


def histories(desk: Desk, side: str) -> list[Any]:
    """All that is known on a side, as it is shown."""
    known = desk.do("list", entity=side, limit=100)["paths"]
    places = [(path["entity"], entry["key"]) for path in known for entry in path["entries"]]
    told = [(place, desk.history(place[1], entity=place[0])) for place in places]
    assert told
    return [
        (path.removeprefix(side), key, [[one.get(name) for name in SHOWN] for one in versions]) for (path, key), versions in told
    ]
