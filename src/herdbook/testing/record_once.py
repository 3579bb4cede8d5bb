"""Conformance: a request id or an outcome's ref counts once, for ever, however often and by however many it is sent."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest

from herdbook.record import trust
from herdbook.service.door import Service
from herdbook.testing.record_base import Contract
from herdbook.testing.record_book import ENTITY, Book, Desk, as_bytes, person, refused, told_at_once

SEED = 20_260_101
# Each verb with a body, and one with the same id and something else in it.
TOLD: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "write": ({"entity": ENTITY, "key": "new", "value": {"b": 1, "a": 2}, "why": "seen", "session": "s"}, {"value": 3}),
    "write, restated": ({"entity": ENTITY, "key": "port", "value": 1, "why": "other", "confidence": 0.7}, {"confidence": 0.8}),
    "write, affirmed": ({"entity": ENTITY, "key": "port", "value": 1, "why": "seen"}, {"value": 2}),
    "record_action": ({"session": "s", "tool": "pytest", "args": ["-x"], "result": {"z": 1, "a": 2}, "ok": True}, {"ok": False}),
    "record_context": ({"session": "s", "name": "prompt", "text": "do it"}, {"text": "do it well"}),
    "attempt": ({"session": "s", "result": "failure", "used": ["port"], "note": "n"}, {"used": []}),
    "commit_outcome": (
        {
            "session": "s",
            "type": "success",
            "task_input": "t",
            "used": ["port"],
            "observed": ["x"],
            "artifacts": {"z": 1, "a": 2},
        },
        {"type": "failure"},
    ),
    "revise_outcome": ({"ref": "first", "type": "failure", "why": "it broke"}, {"type": "minor_failure"}),
}
OTHER_WRITES: dict[str, Any] = {
    "entity": "acme/other", "key": "other", "value": 2, "why": "other", "kind": "experience", "worked": True, "confidence": 0.6,
    "applies_when": "dark", "expires_at": "2031-01-01T00:00:00Z", "links": [{"rel": "supports", "entity": ENTITY, "key": "port"}],
    "session": "s", "if_version": 0,
}  # fmt: skip
OTHER_OUTCOMES: dict[str, Any] = {
    "session": "t", "type": "failure", "task_input": "u", "used": [], "observed": ["y"], "artifacts": 1, "verified_by": "me",
}  # fmt: skip


class OnceContract(Contract):
    """The first answer, to the byte, to whoever sends the same again; a 409 to whoever sends something else under its id."""

    @pytest.fixture
    def told(self, ann: Desk) -> Desk:
        """A record in which each of TOLD makes sense."""
        ann.write("port", 1, why="seen")
        ann.begin("s")
        ann.begin("t")
        ann.read("port", session="s")
        ann.outcome("s", ref="first")
        return ann

    def fields(self, verb: str, which: dict[str, Any]) -> dict[str, Any]:
        return {"ref" if verb == "commit_outcome" else "request_id": "once", **which}

    @pytest.mark.parametrize("case", TOLD)
    def test_a_retry_gets_the_first_answer(self, book: Book, told: Desk, case: str) -> None:
        """A client that lost the reply would do it twice, or be told something else than what was done."""
        verb, (body, other) = case.split(",", maxsplit=1)[0], TOLD[case]
        fields = self.fields(verb, body)
        first = as_bytes(told.do(verb, **fields))
        counts = told.do("status")["counts"]
        trust = as_bytes(told.claims("port"))
        book.clock.tick(days=40)
        reopened = person(book.open())
        told.write("port", "something newer")
        for desk in (told, reopened, told):
            assert first == as_bytes(desk.do(verb, **fields))
            with refused("request_conflict", saying="once"):
                desk.do(verb, **fields | other)
        assert counts | {"versions": counts["versions"] + 1} == told.do("status")["counts"]
        assert trust == as_bytes(told.claims("port")[1:])

    @pytest.mark.parametrize("field", OTHER_WRITES)
    def test_every_field_of_a_write_is_part_of_its_body(self, told: Desk, field: str) -> None:
        """A change in this field would be answered as if it had been stored."""
        body = {"entity": ENTITY, "key": "new", "value": 1, "why": "seen", "request_id": "once"}
        if field == "worked":
            body["kind"] = "experience"
        told.do("write", **body)
        with refused("request_conflict"):
            told.do("write", **body | {field: OTHER_WRITES[field]})

    @pytest.mark.parametrize("field", OTHER_OUTCOMES)
    def test_every_field_of_an_outcome_is_part_of_its_body(self, told: Desk, field: str) -> None:
        """A change in this field would be answered as if it had been stored."""
        body = {"session": "s", "type": "success", "ref": "once"}
        told.do("commit_outcome", **body)
        with refused("request_conflict"):
            told.do("commit_outcome", **body | {field: OTHER_OUTCOMES[field]})

    @pytest.mark.parametrize("case", TOLD)
    def test_eight_at_once_count_as_one(self, book: Book, told: Desk, case: str) -> None:
        """Retries that overtake one another would each be counted."""
        verb, (body, _) = case.split(",", maxsplit=1)[0], TOLD[case]
        fields = self.fields(verb, body)
        before = told.do("status")["counts"]
        desks = [told, person(book.open())] * 4

        def send(desk: Desk) -> set[bytes]:
            return {as_bytes(desk.do(verb, **fields)) for _ in range(6)}

        answers = told_at_once([partial(send, desk) for desk in desks])
        assert 1 == len(set.union(*answers))
        after = told.do("status")["counts"]
        grown = {name: after[name] - count for name, count in before.items() if after[name] != count}
        assert all(more == 1 for more in grown.values()), grown
        moves = told.claim("port")["moves"]
        assert (2 if verb in ("commit_outcome", "revise_outcome") else 1) == len(moves)

    def test_outcomes_that_arrive_many_times_move_once(self, book: Book, ann: Desk) -> None:
        """Confidence would be what the network made of it, not what a replay gives."""
        print(f"seed {SEED}")
        luck = random.Random(SEED)
        keys = [f"k{n}" for n in range(5)]
        for key in keys:
            ann.write(key, 1)
        ann.begin("s")
        kinds = [luck.choice(sorted(trust.MULTIPLIERS)) for _ in range(60)]
        sent = [n for n in range(60) for _ in range(luck.randint(1, 6))]
        luck.shuffle(sent)
        desks = [ann, person(book.open())] * 4

        def deliver(n: int) -> int:
            for ref in sent[n::8]:
                desks[n].outcome("s", kinds[ref], ref=f"o{ref}", used=[desks[n].named(key) for key in keys])
            return len(sent[n::8])

        assert len(sent) == sum(told_at_once([partial(deliver, n) for n in range(8)]))
        for key in keys:
            moves = ann.claim(key)["moves"]
            assert sorted(f"o{n}" for n in range(60)) == sorted(move["ref"] for move in moves)
            replay = trust.fold(0.5, [trust.MULTIPLIERS[move["type"]] for move in moves])
            assert pytest.approx(replay, abs=1e-12) == ann.read(key)["confidence"]

    def test_a_refused_request_keeps_nothing(self, told: Desk) -> None:
        """An id would be spent on a request that was never done."""
        with refused("unknown_entry"):
            told.outcome("s", ref="once", used=["nobody has this"])
        with refused("version_conflict"):
            told.write("port", 9, request_id="once", if_version=7)
        assert 2 == told.write("port", 9, request_id="once")["version"]
        assert ["port"] == [move["key"] for move in told.outcome("s", ref="once")["moved"]]

    def test_an_id_belongs_to_its_verb(self, told: Desk) -> None:
        """Two things that have nothing to do with one another would get in each other's way."""
        for case in ("write", "record_action", "record_context", "attempt", "revise_outcome", "commit_outcome"):
            told.do(case, **self.fields(case, TOLD[case][0]))

    def test_starting_a_session_again_finds_it(self, book: Book, told: Desk) -> None:
        """A client that lost the reply could not go on with its own session."""
        first = told.do("start_session", session="café", agent="café", task="t", entity=ENTITY)
        again = person(book.open()).do("start_session", session="cafe\u0301", agent="cafe\u0301", task="t", entity=ENTITY)
        assert (False, True) == (first["existed"], again["existed"])
        assert {**first, "existed": True} == again
        assert "café" == told.do("record_action", session="cafe\u0301", tool="x")["session"]
        with refused("request_conflict"):
            told.do("start_session", session="café", agent="another")

    def test_ending_a_session_again_changes_nothing(self, book: Book, told: Desk) -> None:
        """A run would seem to have ended when its client retried."""
        first = told.do("end_session", session="s")
        book.clock.tick(days=1)
        assert first == told.do("end_session", session="s")

    def test_without_an_id_each_is_its_own(self, told: Desk) -> None:
        """Two runs that ended alike would be counted as one."""
        answers = [told.outcome("s") for _ in range(3)]
        assert 3 == len({answer["ref"] for answer in answers})
        assert 4 == len(told.claim("port")["moves"])

    def test_a_batch_undoes_its_failures_alone(self, service: Service, told: Desk) -> None:
        """One bad request would take down everybody's who arrived with it, or be stored with them."""
        bodies: list[tuple[str, dict[str, Any]]] = [
            ("write", {"entity": ENTITY, "key": "a", "value": 1}),
            ("write", {"entity": ENTITY, "key": "b", "value": 1, "if_version": 5}),
            ("commit_outcome", {"session": "s", "type": "success", "ref": "bad", "used": ["nobody has this"]}),
            ("commit_outcome", {"session": "s", "type": "success", "ref": "good", "used": ["port"]}),
            ("write", {"entity": ENTITY, "key": "a", "value": 2}),
            ("write", {"entity": ENTITY, "key": "a", "value": 3, "request_id": "same"}),
            ("write", {"entity": ENTITY, "key": "a", "value": 3, "request_id": "same"}),
        ]
        answers = service.commit([service.plan(told.caller, verb, fields) for verb, fields in bodies])
        codes = [getattr(answer, "code", None) for answer in answers]
        assert [None, "version_conflict", "unknown_entry", None, None, None, None] == codes
        assert answers[5] == answers[6]
        assert [1, 2, 3] == [version["value"] for version in told.history("a")]
        with refused("not_found"):
            told.read("b")
        with refused("not_found"):
            told.do("trace", ref="bad")
        assert ["good"] == [move["ref"] for move in told.claim("port")["moves"]][1:]
