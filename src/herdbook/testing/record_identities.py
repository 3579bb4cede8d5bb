"""Conformance: who may reach what. What belongs to somebody else and what is not there are answered alike."""

from __future__ import annotations

from typing import Any

import pytest

from herdbook.service.callers import Caller
from herdbook.service.door import Service
from herdbook.service.verbs import VERBS
from herdbook.testing.record_base import Contract
from herdbook.testing.record_book import ENTITY, Book, Desk, as_bytes, box, person, refusal, refused

WITH_SESSION: dict[str, dict[str, Any]] = {
    "end_session": {},
    "brief": {"entity": ENTITY},
    "read": {"entity": ENTITY, "key": "a"},
    "search": {"query": "a"},
    "write": {"entity": ENTITY, "key": "b", "value": 1},
    "record_action": {"tool": "x"},
    "record_context": {"name": "x", "text": "y"},
    "attempt": {"result": "failure", "used": ["a"]},
    "commit_outcome": {"type": "success", "used": ["a"]},
}
ASKED: dict[str, dict[str, Any]] = {
    "read": {"entity": ENTITY, "key": "a"},
    "read, a version": {"entity": ENTITY, "key": "a", "version": 1},
    "history": {"entity": ENTITY, "key": "a"},
    "diff": {"entity": ENTITY, "key": "a"},
    "why": {"entity": ENTITY, "key": "a"},
    "trace": {"ref": "o"},
    "trace, a session": {"ref": "s"},
    "attest": {"ref": "o", "exit_code": 0},
    "revise_outcome": {"ref": "o", "type": "failure"},
    "end_session": {"session": "s"},
    "box_beat": {"box": "canary-box"},
    "box_close": {"box": "canary-box"},
}


class IdentitiesContract(Contract):
    """Tenants do not see one another; sessions belong to whoever began them, and to their box."""

    @pytest.mark.parametrize("verb", WITH_SESSION)
    def test_a_session_belongs_to_who_began_it(self, ann: Desk, box_a: Desk, box_b: Desk, service: Service, verb: str) -> None:
        """Somebody would read, write or end in another's run, or learn that there is one."""
        ann.write("a", 1)
        box_a.begin("s-1")
        box_a.read("a", session="s-1")
        stranger = person(service, "stranger")
        for desk in (box_b, stranger):
            answers = [refusal(desk.do, verb, session=name, **WITH_SESSION[verb]) for name in ("s-1", "s-2")]
            assert "not_found" == answers[0]["error"]["code"]
            assert as_bytes(answers[0]).replace(b"s-1", b"s-2") == as_bytes(answers[1])
        told = box_a.do("trace", ref="s-1")
        assert (1, None, []) == (len(told["reads"]), told["ended_at"], told["outcomes"])
        box_a.do(verb, session="s-1", **WITH_SESSION[verb])

    def test_every_verb_with_a_session_is_covered(self) -> None:
        """A new verb would be forgotten above."""
        with_session = {name for name, verb in VERBS.items() if "session" in verb.request.__struct_fields__}
        assert with_session - {"start_session", "attest", "model_call"} == set(WITH_SESSION)  # they begin one, or name it only

    def test_a_box_sees_its_own_runs_only(self, ann: Desk, box_a: Desk, box_b: Desk) -> None:
        """A box would read what another one was told to do."""
        box_a.begin("s-1")
        box_a.outcome("s-1", ref="o-1")
        for name in ("s-1", "o-1"):
            foreign = refusal(box_b.do, "trace", ref=name)
            missing = refusal(box_b.do, "trace", ref=name.replace("1", "2"))
            assert as_bytes(foreign).replace(b"-1", b"-2") == as_bytes(missing)
            assert "s-1" == ann.do("trace", ref=name)["session"] == box_a.do("trace", ref=name)["session"]

    def test_a_box_of_another_identity_is_another_box(self, service: Service, box_a: Desk) -> None:
        """Whoever gives a box the same name would read its runs, and commit their outcomes."""
        box_a.begin("s-1")
        name = box_a.caller.box
        assert name is not None
        twin = box(service, name, identity="another fleet")
        with refused("not_found"):
            twin.do("trace", ref="s-1")
        with refused("not_found"):
            twin.outcome("s-1")

    def test_an_attestor_may_say_whose_outcome_it_saw(self, ann: Desk, box_a: Desk, box_b: Desk) -> None:
        """A box that took a ref first would have its own run vouched for."""
        box_a.begin("s-1")
        box_a.outcome("s-1", ref="deploy")
        with refused("request_conflict"):
            ann.do("attest", ref="deploy", exit_code=0, box=box_b.caller.box)
        with refused("request_conflict"):
            ann.do("attest", ref="deploy", exit_code=0, session="s-2")
        told = ann.do("attest", ref="deploy", exit_code=0, box=box_a.caller.box, session="s-1")
        assert ("s-1", box_a.caller.box) == (told["session"], told["box"])

    def test_a_session_name_is_not_taken_over(self, box_a: Desk, box_b: Desk) -> None:
        """Starting a session under a known name would join another box's run."""
        box_a.begin("s")
        with refused("request_conflict"):
            box_b.begin("s")

    def test_a_box_has_one_row_and_one_end(self, book: Book, ann: Desk) -> None:
        """A box that died would seem alive, or a name would be given to two boxes."""
        row = {"box": "b", "provider": "p", "isolation": "namespace", "label": "l", "owner": "host 1", "lease_seconds": 60}
        first = ann.do("box_open", **row)
        assert ("open", True) == (first["state"], first["live"])
        assert first == ann.do("box_open", **row)
        with refused("request_conflict"):
            ann.do("box_open", **row | {"owner": "host 2"})
        book.clock.tick(seconds=61)
        assert [("open", False)] == [(found["state"], found["live"]) for found in ann.do("box_list", live=True)["boxes"]]
        assert ann.do("box_beat", box="b", lease_seconds=60)["live"]
        closed = ann.do("box_close", box="b", detail="done")
        book.clock.tick(seconds=1)
        assert ("closed", False, "done") == (closed["state"], closed["live"], closed["detail"])
        assert closed == ann.do("box_close", box="b", detail="again") == ann.do("box_beat", box="b")
        assert [] == ann.do("box_list", live=True)["boxes"]
        with refused("request_conflict"):
            ann.do("box_open", **row)
        with refused("not_found"):
            ann.do("box_beat", box="c")

    def test_what_a_competing_box_writes_is_a_draft_until_it_has_won(self, ann: Desk, box_a: Desk, box_b: Desk) -> None:
        """Seven boxes that were wrong would be read beside the one that was right, whichever server they came by."""
        row = {"provider": "p", "isolation": "namespace", "label": "l", "owner": "o"}
        for desk in (box_a, box_b):
            assert ann.do("box_open", box=desk.caller.box, competes=True, **row)["competes"]
            desk.begin(f"s-{desk.caller.box}")
            values: list[Any] = ["first", None, []]
            for value in values:
                told = desk.write("found", value, session=f"s-{desk.caller.box}", request_id=f"{desk.caller.box} {value}")
                assert (0, True) == (told["version"], told["draft"])
            desk.write("no", {}, session=f"s-{desk.caller.box}", kind="experience", worked=False)
            with refused("invalid_request", saying="within a session"):
                desk.write("found", 1)
            with refused("invalid_request", saying="is kept for"):
                desk.do("record_action", session=f"s-{desk.caller.box}", tool="herdbook.draft", args={"entity": "forged"})
        with refused("not_found"):
            ann.read("found")
        assert ann.read("no")["worked"] is False, "a dead end is told at once"
        assert ["s-box-a"] == ann.do("box_runs", box=box_a.caller.box)["sessions"]
        told = ann.do("box_promote", box=box_a.caller.box)["told"]
        versions = [(each["version"], each["request_id"]) for each in told]
        assert [(1, "box-a first"), (2, "box-a None"), (3, "box-a []")] == versions
        assert ([], box_a.caller.box) == (ann.read("found")["value"], ann.read("found")["box"])
        assert [] == ann.do("box_promote", box=box_a.caller.box)["told"], "told once"
        assert 4 == box_a.write("found", "after", session="s-box-a")["version"], "it has won: what it writes counts"
        assert 0 == box_b.write("found", "loser", session="s-box-b")["version"]
        with refused("not_found"):
            ann.do("box_promote", box="nobody")
        with refused("forbidden"):
            box_b.do("box_promote", box=box_b.caller.box)

    def test_a_box_is_known_by_its_claim(self, ann: Desk) -> None:
        """A box behind a connector would call in the name of another one whose id it has read somewhere."""
        row = {"box": "b", "provider": "p", "isolation": "namespace", "label": "l", "owner": "o"}
        ann.do("box_open", **row, claim="a" * 64)
        ann.do("box_open", **row | {"box": "plain"})
        asked = [("b", "a" * 64), ("b", "b" * 64), ("plain", "a" * 64), ("none", "a" * 64)]
        assert [1, 0, 0, 0] == [len(ann.do("box_list", box=box, claim=claim)["boxes"]) for box, claim in asked]
        assert "a" * 64 not in str(ann.do("box_list")), "nobody is told"
        ann.do("box_beat", box="b", claim="c" * 64)
        ann.do("box_beat", box="b")
        assert [0, 1] == [len(ann.do("box_list", box="b", claim=claim * 64)["boxes"]) for claim in "ac"]
        with refused("invalid_request", saying="name the box"):
            ann.do("box_list", claim="a" * 64)
        with refused("request_conflict"):
            ann.do("box_open", **row, claim="a" * 64)

    def test_scopes_are_denied_unless_given(self, service: Service) -> None:
        """A key that may only read would write."""
        for scope in ("read", "write", "attest", "host"):
            desk = Desk(service, Caller(1, "x", frozenset({"read", "write", "attest", "host"}) - {scope}, "rest"))
            for name, verb in VERBS.items():
                if verb.scope == scope:
                    with refused("forbidden", saying=scope):
                        desk.do(name)

    @pytest.fixture
    def other(self, book: Book, ann: Desk) -> Desk:
        """Somebody of another tenant, with a record as full as the first one's, under the same names."""
        book.tenant_maker(2)
        desks = (ann, person(ann.service, tenant=2))
        for number, desk in enumerate(desks, start=1):
            desk.write("a", f"canary-{number}", request_id="r")
            desk.write("a", f"canary-{number}-new")
            desk.begin("s")
            desk.read("a", session="s")
            desk.outcome("s", ref="o", task_input=f"canary-{number}")
        desks[1].write("theirs", "canary-2", entity="theirs/only")
        desks[1].begin("s-theirs")
        desks[1].outcome("s-theirs", ref="o-theirs")
        desks[1].do("box_open", box="canary-box", provider="p", isolation="namespace", label="l", owner="o")
        return desks[1]

    def test_two_tenants_do_not_see_one_another(self, ann: Desk, other: Desk) -> None:
        """What one customer knows would be told to another."""
        asked: list[tuple[str, dict[str, Any]]] = [
            ("brief", {"entity": ENTITY}), ("read", {"entity": ENTITY, "key": "a"}), ("search", {"query": "canary"}),
            ("search", {"query": "canary", "entity": ENTITY}), ("history", {"entity": ENTITY, "key": "a"}), ("list", {}),
            ("why", {"entity": ENTITY, "key": "a"}), ("trace", {"ref": "o"}), ("trace", {"ref": "s"}), ("box_list", {}),
            ("diff", {"entity": ENTITY, "key": "a"}), ("status", {}),
        ]  # fmt: skip
        for verb, fields in asked:
            mine, theirs = as_bytes(ann.do(verb, **fields)), as_bytes(other.do(verb, **fields))
            assert b"canary-2" not in mine
            assert b"canary-1" not in theirs
            assert b"canary-box" not in mine
        assert 0.515 == ann.read("a")["confidence"] == other.read("a")["confidence"]
        assert 1 == ann.do("status")["counts"]["outcomes"]
        assert 2 == other.do("status")["counts"]["outcomes"]

    @pytest.mark.parametrize("case", ASKED)
    def test_the_other_tenants_and_the_missing_are_answered_alike(self, ann: Desk, other: Desk, case: str) -> None:
        """Asking would tell that somebody else has it."""
        verb, names = case.split(",", maxsplit=1)[0], {"o": "o-theirs", "s": "s-theirs", "a": "theirs", ENTITY: "theirs/only"}
        fields = {name: names.get(value, value) if isinstance(value, str) else value for name, value in ASKED[case].items()}
        missing = {name: self.missing(value) for name, value in fields.items()}
        foreign = as_bytes(refusal(ann.do, verb, **fields))
        absent = as_bytes(refusal(ann.do, verb, **missing))
        for name, value in fields.items():
            if isinstance(value, str):
                foreign = foreign.replace(value.encode(), str(missing[name]).encode())
        assert foreign == absent
        assert b"not_found" in foreign

    def missing(self, value: Any) -> Any:
        return value.replace("theirs", "others").replace("canary", "absent") if isinstance(value, str) else value

    def test_a_foreign_entry_cannot_be_used_linked_or_moved(self, ann: Desk, other: Desk) -> None:
        """An outcome would reach into another tenant's trust."""
        before = as_bytes(other.claims("theirs", entity="theirs/only"))
        theirs = {"entity": "theirs/only", "key": "theirs"}
        ann.begin("mine")
        asked: list[tuple[str, dict[str, Any]]] = [
            ("commit_outcome", {"session": "mine", "type": "success", "used": [theirs]}),
            ("write", {"entity": ENTITY, "key": "x", "value": 1, "links": [{"rel": "derived_from", **theirs}]}),
            ("attempt", {"session": "mine", "result": "failure", "used": [theirs]}),
        ]
        for verb, fields in asked:
            with refused("unknown_entry"):
                ann.do(verb, **fields)
        assert before == as_bytes(other.claims("theirs", entity="theirs/only"))

    def test_an_id_is_unique_within_its_tenant_only(self, ann: Desk, other: Desk) -> None:
        """A conflict would tell one tenant which ids another uses."""
        assert "canary-1-new" == ann.read("a")["value"]
        other.write("b", 1, request_id="shared-id")
        assert 1 == ann.write("c", 2, request_id="shared-id")["version"]
        assert "o-theirs" == ann.outcome("s", ref="o-theirs")["ref"]
