"""Conformance: what an outcome moves, by how much, and what it must leave alone."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from herdbook.base.errors import HerdbookError
from herdbook.record import trust
from herdbook.service.door import Service
from herdbook.testing.record_base import Contract
from herdbook.testing.record_book import ENTITY, Book, Desk, as_bytes, box, person, refused

SEED = 20_260_101
UNKNOWN: dict[str, Any] = {
    "a key nobody has": {"entity": ENTITY, "key": "nobody"},
    "a path nobody has": {"entity": "acme/nobody", "key": "port"},
    "a version there is not": {"entity": ENTITY, "key": "port", "version": 99},
    "a key that was not served": "port",
}


class TrustContract(Contract):
    """Confidence is the clamped fold of what happened; evidence is what tells the helpful entry from its neighbours."""

    def test_an_outcome_moves_all_that_was_served(self, ann: Desk) -> None:
        """What was relied on without being named would never be judged."""
        for key in ("a", "b", "c"):
            ann.write(key, 1)
        ann.begin("s")
        ann.read("a", session="s")
        ann.read("b", session="s")
        answer = ann.outcome("s", "failure", ref="o")
        assert [
            {"entity": ENTITY, "key": key, "version": 1, "before": 0.5, "factor": 0.9, "after": 0.45, "how": "served"}
            for key in ("a", "b")
        ] == answer["moved"]
        assert [0.45, 0.45, 0.5] == [ann.read(key)["confidence"] for key in ("a", "b", "c")]
        assert {"type": "failure", "ref": "o"} == {name: ann.read("a")["last_outcome"][name] for name in ("type", "ref")}

    def test_used_moves_only_what_was_used(self, ann: Desk) -> None:
        """A note would be judged for having been on the table."""
        ann.write("a", 1)
        ann.write("b", 1)
        ann.begin("s")
        ann.brief(session="s")
        answer = ann.outcome("s", used=["a"])
        assert [("a", "used")] == [(move["key"], move["how"]) for move in answer["moved"]]
        assert [0.515, 0.5] == [ann.read(key)["confidence"] for key in ("a", "b")]
        assert [] == ann.outcome("s", used=[])["moved"]

    @pytest.mark.parametrize("kind", trust.MULTIPLIERS)
    def test_each_type_has_its_multiplier(self, ann: Desk, kind: str) -> None:
        """A failure would count as another one."""
        ann.write("a", 1, confidence=0.4)
        ann.run("s", kind, used=["a"])
        assert 0.4 * trust.MULTIPLIERS[kind] == ann.read("a")["confidence"]

    def test_confidence_is_the_clamped_fold(self, ann: Desk) -> None:
        """Successes beyond certainty would be saved up against later failures."""
        ann.write("a", 1, confidence=0.9)
        kinds = ["success"] * 6 + ["critical_failure"] * 2 + ["success"]
        for n, kind in enumerate(kinds):
            ann.run(f"s{n}", kind, used=["a"])
        factors = [trust.MULTIPLIERS[kind] for kind in kinds]
        assert pytest.approx(trust.fold(0.9, factors), abs=1e-12) == ann.read("a")["confidence"]
        claim = ann.claim("a")
        assert list(range(1, 10)) == [move["n"] for move in claim["moves"]]
        for before, after in itertools.pairwise(claim["moves"]):
            assert before["after"] == after["before"]

    def test_an_outcome_judges_the_version_that_was_read(self, ann: Desk) -> None:
        """Whoever supersedes in time would be blamed for, or praised with, what came before."""
        ann.write("a", 1)
        ann.begin("s")
        ann.read("a", session="s")
        ann.write("a", 2)
        assert [1] == [move["version"] for move in ann.outcome("s", "failure")["moved"]]
        assert [1] == [move["version"] for move in ann.outcome("s", "failure", used=["a"])["moved"]]
        assert [1] == [move["version"] for move in ann.outcome("s", "failure", used=[ann.named("a")])["moved"]]
        named = ann.named("a") | {"version": 2}
        assert [2] == [move["version"] for move in ann.outcome("s", "failure", used=[named])["moved"]]
        assert [0.45, 0.5 * 0.9**3] == [pytest.approx(claim["confidence"]) for claim in ann.claims("a")]

    def test_an_entry_that_was_not_served_is_used_as_it_is(self, ann: Desk) -> None:
        """A name without a version would mean the first one."""
        ann.write("a", 1)
        ann.write("a", 2)
        ann.begin("s")
        assert [2] == [move["version"] for move in ann.outcome("s", used=[ann.named("a")])["moved"]]

    def test_one_outcome_moves_a_claim_once(self, ann: Desk) -> None:
        """A note that is shown five times would count five times."""
        ann.write("a", 1)
        ann.begin("s")
        ann.read("a", session="s")
        ann.write("a", 1, why="said otherwise")
        for _ in range(3):
            ann.read("a", session="s")
            ann.brief(session="s")
            ann.do("search", query="a", entity=ENTITY, session="s")
        assert [2] == [move["version"] for move in ann.outcome("s")["moved"]]
        both = [ann.named("a") | {"version": 1}, ann.named("a") | {"version": 2}, "a"]
        assert [2] == [move["version"] for move in ann.outcome("s", used=both)["moved"]]
        assert 2 == len(ann.claim("a")["moves"])

    @pytest.mark.parametrize("what", UNKNOWN)
    def test_an_unknown_entry_is_refused_and_nothing_moves(self, ann: Desk, what: str) -> None:
        """An outcome would be counted for part of what it says, and the rest dropped without a word."""
        ann.write("good", 1)
        ann.write("port", 1)
        ann.begin("s")
        ann.read("good", session="s")
        before = as_bytes([ann.claim("good"), ann.claim("port"), ann.do("status")["counts"]])
        item = UNKNOWN[what]
        with refused("unknown_entry", saying=item if isinstance(item, str) else item["key"]):
            ann.outcome("s", ref="o", used=["good", item])
        with refused("unknown_entry"):
            ann.do("attempt", session="s", result="failure", used=["good", item])
        after = as_bytes([ann.claim("good"), ann.claim("port"), ann.do("status")["counts"]])
        assert before.replace(b'"recalls": 1', b"") == after.replace(b'"recalls": 1', b"")
        with refused("not_found"):
            ann.do("trace", ref="o")

    def test_a_plain_key_of_two_paths_is_refused(self, ann: Desk) -> None:
        """Which of two entries failed would be guessed."""
        for entity in ("acme", ENTITY):
            ann.write("port", entity, entity=entity)
        ann.begin("s")
        for entity in ("acme", ENTITY):
            ann.read("port", entity=entity, session="s")
        with refused("unknown_entry", saying="several paths"):
            ann.outcome("s", used=["port"])
        assert ["acme"] == [move["entity"] for move in ann.outcome("s", used=[{"entity": "acme", "key": "port"}])["moved"]]

    @pytest.mark.parametrize("kind", ["p1_incident", "SUCCESS", "ok", "", "success ", "foreign"])
    def test_an_unknown_outcome_is_refused_by_name(self, ann: Desk, kind: str) -> None:
        """An incident would be stored as whatever comes nearest."""
        ann.begin("s")
        ann.outcome("s", ref="o")
        for verb, fields in (("commit_outcome", {"session": "s", "ref": "p"}), ("revise_outcome", {"ref": "o"})):
            with pytest.raises(HerdbookError) as caught:
                ann.do(verb, type=kind, **fields)
            assert "unknown_outcome_type" == caught.value.code
            assert all(name in caught.value.message for name in trust.OUTCOME_TYPES)
        assert 1 == ann.do("status")["counts"]["outcomes"]

    def test_outcomes_may_come_late_and_several(self, book: Book, ann: Desk) -> None:
        """What became known a week after the run would be lost."""
        ann.write("a", 1)
        ann.run("s", used=["a"], ref="o1")
        ann.do("end_session", session="s")
        book.clock.tick(days=7)
        ann.outcome("s", "critical_failure", ref="o2", used=[ann.named("a")])
        assert ["o1", "o2"] == [outcome["ref"] for outcome in ann.do("trace", ref="s")["outcomes"]]
        assert pytest.approx(0.5 * 1.03 * 0.85) == ann.read("a")["confidence"]

    def test_evidence_counts_once_an_identity_an_entry_and_a_day(self, book: Book, ann: Desk, service: Service) -> None:
        """Whoever retries a hundred times would vote a hundred times."""
        for key in ("a", "b"):
            ann.write(key, 1)
        for n in range(20):
            ann.run(f"s{n}", used=["a"])
        assert (20, 1.0) == (len(ann.claim("a")["moves"]), ann.claim("a")["held"])
        ann.run("other entry", used=["b", "a"])
        assert 1.0 == ann.claim("b")["held"]
        box(service, "box-c").run("other identity", used=["a"])
        box(service, "box-d").run("same identity, other box", used=["a"])
        assert 2.0 == ann.claim("a")["held"]
        book.clock.tick(days=1)
        ann.run("another day", used=["a"])
        assert 3.0 == ann.claim("a")["held"]

    def test_griefing_costs_one_failure_a_day(self, ann: Desk, service: Service) -> None:
        """One angry box would bury what everybody else knows."""
        ann.write("a", 1)
        ann.do("attest", ref=ann.run("s", used=["a"]), result="success")
        angry = box(service, "box-x", identity="angry")
        for n in range(40):
            angry.run(f"g{n}", "critical_failure", used=["a"])
        claim = ann.claim("a")
        assert (1.0, 1.0) == (claim["held"], claim["failed"])
        assert pytest.approx(0.5 * 1.03 * 0.85**40) == claim["confidence"]
        assert "contested" != claim["standing"]

    def test_a_condition_that_did_not_occur_gives_no_credit(self, book: Book, ann: Desk) -> None:
        """A note about load would be praised for runs without load."""
        ann.write("a", 1, applies_when="under-load")
        ann.write("b", 1, applies_when="cafe\u0301")
        ann.run("s1", used=["a", "b"])
        ann.run("s2", used=["a", "b"], observed=["rain"])
        assert [0.0, 0.0] == [ann.claim(key)["held"] for key in ("a", "b")]
        ref = ann.run("s3", used=["a", "b"], observed=["under-load", "cafe\u0301"])
        assert [1.0, 1.0] == [ann.claim(key)["held"] for key in ("a", "b")]
        ann.do("attest", ref=ref, result="success")
        assert [1.0, 1.0] == [ann.claim(key)["held"] for key in ("a", "b")]
        ann.do("attest", ref=ann.run("s4", used=["a", "b"], observed=["café"]), result="success")
        assert [1.0, 2.0] == [ann.claim(key)["held"] for key in ("a", "b")]
        assert 4 == len(ann.claim("a")["moves"]), "confidence moves as the seeds say, whatever the condition"

    def test_a_failed_attempt_is_charged_once_though_the_run_ends_well(self, ann: Desk) -> None:
        """What had to be tried and thrown away would be praised with what worked."""
        for key in ("bad", "good", "tried"):
            ann.write(key, 1)
        ann.begin("s")
        ann.do("attempt", session="s", result="failure", used=[ann.named("bad")])
        ann.do("attempt", session="s", result="failure", used=[ann.named("bad")])
        ann.do("attempt", session="s", result="success", used=[ann.named("tried")])
        answer = ann.outcome("s", used=[ann.named("good")])
        assert {"bad": "attempt", "good": "used"} == {move["key"]: move["how"] for move in answer["moved"]}
        assert [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0)] == [
            (ann.claim(key)["held"], ann.claim(key)["failed"]) for key in ("bad", "good", "tried")
        ]
        assert 0.5 == ann.read("bad")["confidence"], "an attempt charges evidence only"
        ann.outcome("s", used=[])
        ann.do("attempt", session="s", result="failure", used=[])
        ann.outcome("s", "failure", used=[])
        assert 1.0 == ann.claim("bad")["failed"]
        assert ann.read("good")["evidence"] > ann.read("bad")["evidence"]

    def test_tries_that_failed_by_chance_leave_what_they_used_where_it_was(self, book: Book, ann: Desk) -> None:
        """A neutral note would sink where tries often fail, as they charge it and the rate it is measured by would not know."""
        for key in ("neutral", "good"):
            ann.write(key, 1)
        for n in range(12):
            session = ann.begin(f"tried-{n}")
            used = [ann.named("neutral")] if n % 2 else [ann.named("neutral"), ann.named("good")]
            if n % 2:
                ann.do("attempt", session=session, result="failure", used=used)
            ref = ann.outcome(session, used=used)["ref"]
            ann.do("attest", ref=ref, result="success")
        assert pytest.approx(13 / 20) == ann.do("why", entity=ENTITY, key="good")["base_rate"]
        assert 0.01 > abs(ann.read("neutral")["evidence"]), "six of its eighteen tries failed, as tries here do"
        assert 0.05 < ann.read("good")["evidence"], "runs that used it needed no second try"
        ann.outcome(ann.begin("fails"), "failure", used=[ann.named("neutral")])
        assert "contested" != ann.claim("neutral")["standing"], "it held after the last try that failed: this is one failure"

    def test_five_that_are_always_read_together_are_told_apart(self, book: Book, ann: Desk) -> None:
        """The helpful one could not be told from its neighbours."""
        print(f"seed {SEED}")
        luck = random.Random(SEED)
        ann.write("e0", 0, applies_when="it-fired")
        for n in range(1, 5):
            ann.write(f"e{n}", n)
        for n in range(30):
            fired = luck.random() < 0.5
            served = [f"e{k}" for k in range(5)]
            ann.run(f"s{n}", "success" if fired else "failure", served=served, observed=["it-fired"] if fired else [])
            book.clock.tick(days=1)
        evidence = [ann.read(f"e{k}")["evidence"] for k in range(5)]
        assert evidence[0] > max(evidence[1:]) + 0.05, evidence

    @pytest.mark.parametrize("attested", ["attested", ""])
    def test_sixty_bystanders_stay_near_where_they_started(self, book: Book, ann: Desk, attested: str) -> None:
        """A note that only stood beside others would be raised or ruined by other people's luck."""
        print(f"seed {SEED}")
        luck = random.Random(SEED)
        keys = [f"n{n}" for n in range(60)]
        for key in keys:
            ann.write(key, 1)
        for n in range(200):
            session = ann.begin(f"s{n}")
            for key in luck.sample(keys, 6):
                ann.read(key, session=session)
            ended = "success" if luck.random() < 0.6 else "failure"
            ref = ann.outcome(session, ended)["ref"]
            if attested:
                ann.do("attest", ref=ref, result=ended)
            else:
                book.clock.tick(days=1)
        entries = [ann.read(key) for key in keys]
        assert 0.2 > max(abs(entry["evidence"]) for entry in entries)
        assert 0.03 > abs(sum(entry["evidence"] for entry in entries) / 60)
        assert {"unproven"} == {entry["standing"] for entry in entries}

    def test_what_held_and_starts_failing_is_contested(self, ann: Desk, box_a: Desk, service: Service) -> None:
        """The next box would be told that it held fourteen times, and not that it failed the last two."""
        box_a.begin("author")
        box_a.write("a", 1, session="author")
        for n in range(14):
            ann.do("attest", ref=box(service, f"box-{n}").run(f"s{n}", used=["a"]), exit_code=0)
        assert ("corroborated", True) == (ann.standing("a"), ann.read("a")["acting"])
        refs = [box(service, f"box-f{n}").run(f"f{n}", "failure", used=["a"]) for n in range(2)]
        for ref in refs:
            ann.do("attest", ref=ref, exit_code=1)
        assert ("contested", False) == (ann.standing("a"), ann.read("a")["acting"])
        [shown] = ann.brief()["contested"]
        assert ("a", True, True) == (shown["key"], "14" in shown["note"], "2" in shown["note"])
        ann.do("attest", ref=box(service, "box-z").run("again", used=["a"]), exit_code=0)
        assert "corroborated" == ann.standing("a")

    def test_a_late_attestation_does_not_make_an_old_failure_new(self, ann: Desk) -> None:
        """What failed before it held would be counted as failing now, because its exit code came late."""
        ann.write("a", 1)
        refs = [ann.run(f"s{n}", kind, used=["a"]) for n, kind in enumerate(("failure", "failure", "success"))]
        for ref in reversed(refs):
            ann.do("attest", ref=ref, result="success" if ref == refs[2] else "failure")
        claim = ann.claim("a")
        assert (1.0, 2.0, "unproven") == (claim["held"], claim["failed"], claim["standing"])

    def test_two_desks_agree(self, book: Book, ann: Desk) -> None:
        """Trust would depend on who asks."""
        ann.write("a", 1)
        ann.run("s", used=["a"])
        other = person(book.open(), "bob")
        assert as_bytes(ann.claims("a")) == as_bytes(other.claims("a"))
        other.run("t", "failure", used=["a"])
        assert pytest.approx(0.5 * 1.03 * 0.9) == ann.read("a")["confidence"]
