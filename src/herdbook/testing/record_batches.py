"""Conformance: writes that are committed together come to what they would have come to one after another."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any

from herdbook.base.errors import HerdbookError
from herdbook.testing.record_base import Contract
from herdbook.testing.record_book import ENTITY, Desk

SEED = 20_261_201
MOMENT = re.compile(r'"[0-9]{4}-[0-9]{2}-[0-9]{2}T[^"]*"')
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


def any_acts(chance: random.Random, count: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """All that a run tells, of few runs and outcomes, most of it writes."""
    for write in any_writes(chance, count):
        run, ref = {"session": f"s{chance.randrange(6)}"}, {"ref": f"o{chance.randrange(30)}"}
        once, used = {"request_id": write["request_id"]}, [{"entity": write["entity"], "key": chance.choice("abc")}]
        acts: list[tuple[str, dict[str, Any]]] = [
            *[("write", write)] * 6,
            ("start_session", run | {"agent": chance.choice("xxy")}),
            ("record_action", run | once | {"tool": "t", "args": {"a": 1}, "result": "ok"}),
            ("attempt", run | once | {"result": chance.choice(["success", "failure"]), "used": used}),
            ("attest", ref | {"exit_code": chance.randrange(2)}),
        ]
        outcome = run | ref | {"task_input": "t", "used": chance.choice([[], used])}
        acts += [("commit_outcome", outcome | {"type": kind}) for kind in ("success", "failure", "unheard of")]
        yield chance.choice(acts)


def act_under(side: str, verb: str, fields: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The same act on one side."""
    if verb == "write":
        return verb, under(side, fields | ({"session": f"{side}/s1"} if fields.get("session") == "s" else {}))
    told = {name: f"{side}/{said}" if name in ("session", "ref", "request_id") else said for name, said in fields.items()}
    used = [{**each, "entity": f"{side}/{each['entity']}"} for each in fields.get("used", [])]
    return verb, told | ({"used": used} if "used" in fields else {})


def under(side: str, fields: dict[str, Any]) -> dict[str, Any]:
    """The same write below another path, so that two sides never meet."""
    links = [{**link, "entity": f"{side}/{link['entity']}"} for link in fields.get("links", [])]
    return {**fields, "entity": f"{side}/{fields['entity']}", "request_id": f"{side}/{fields['request_id']}", "links": links}


def outcome_of(answer: Any) -> Any:
    """Without what names the side or the moment."""
    if isinstance(answer, HerdbookError):
        return answer.code
    return {name: said for name, said in answer.items() if name not in ("at", "entity", "request_id")}


def plain(answer: Any, side: str) -> str:
    """An answer without its side, or what holds of a moment or a row alone."""
    if isinstance(answer, HerdbookError):
        return answer.code
    return MOMENT.sub('"_"', json.dumps(answer, sort_keys=True).replace(f"{side}/", ""))


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

    def test_a_batch_of_anything_comes_to_what_it_comes_to_alone(self, ann: Desk) -> None:
        """An outcome would move other trust, or a run have other acts, for what arrived beside it."""
        print(f"seed {SEED}")
        chance = random.Random(SEED)
        acts = list(any_acts(chance, 200))
        expected = [result for each in acts for result in acted(ann, [act_under("alone", *each)])]
        done, rest = [], [act_under("together", *each) for each in acts]
        while rest:
            size = chance.choice([1, 2, 7, 40])
            done += acted(ann, rest[:size])
            del rest[:size]
        assert [plain(each, "alone") for each in expected] == [plain(each, "together") for each in done]
        assert {verb for verb, _ in acts} == {
            verb for (verb, _), answer in zip(acts, done, strict=True) if isinstance(answer, dict)
        }, "each came to something"
        assert histories(ann, "alone") == histories(ann, "together")
        assert [] == ann.do("status")["problems"]


def committed(desk: Desk, writes: list[dict[str, Any]]) -> list[Any]:
    return acted(desk, [("write", each) for each in writes])


def acted(desk: Desk, acts: Sequence[tuple[str, dict[str, Any]]]) -> list[Any]:
    """What each came to, committed together; what is refused before that is not part of the batch."""
    plans = [planned(desk, *act) for act in acts]
    done = iter(desk.service.commit([each for each in plans if not isinstance(each, HerdbookError)]))
    return [each if isinstance(each, HerdbookError) else next(done) for each in plans]


def planned(desk: Desk, verb: str, fields: dict[str, Any]) -> Any:
    try:
        return desk.service.plan(desk.caller, verb, fields)
    except HerdbookError as refusal:
        return refusal


def histories(desk: Desk, side: str) -> list[Any]:
    """All that is known on a side, as it is shown."""
    known = desk.do("list", entity=side, limit=100)["paths"]
    places = [(path["entity"], entry["key"]) for path in known for entry in path["entries"]]
    told = [(place, desk.history(place[1], entity=place[0])) for place in places]
    assert told
    return [
        (path.removeprefix(side), key, [[one.get(name) for name in SHOWN] for one in versions]) for (path, key), versions in told
    ]
