"""Conformance: what rankers and effects are learnt from is kept as it was, and what may be tuned holds where it was set."""

from __future__ import annotations

from typing import Any

import pytest

from herdbook.fastloop import features
from herdbook.record import vectors
from herdbook.service.door import Service
from herdbook.testing.record_base import Contract
from herdbook.testing.record_book import ENTITY, Book, Desk, box, person, refused

TOP = ENTITY.partition("/")[0]


class LearningContract(Contract):
    """Exposures with their features and outcomes in bulk; settings of ranking, credit and experiments as data."""

    def runs(self, desk: Desk, **more: Any) -> list[dict[str, Any]]:
        runs: list[dict[str, Any]] = desk.do("exposures", **more)["runs"]
        return runs

    def feature(self, read: dict[str, Any], name: str) -> float:
        value: float = read["features"][features.NAMES.index(name)]
        return value

    def test_a_run_is_told_with_all_it_was_shown_and_used(self, ann: Desk) -> None:
        """Nothing could be learnt from what happened."""
        ann.write("pool", 50)
        ann.write("tz", "UTC")
        ann.begin("s")
        briefing = ann.brief(session="s")
        ann.do("attempt", session="s", result="failure", used=["tz"])
        ann.outcome("s", ref="o", used=["pool"], task_input="size the pool", observed=["load"])
        [run] = self.runs(ann)
        assert ("s", "size the pool", "o", True, ["load"]) == (
            run["session"],
            run["task"],
            run["outcome"]["ref"],
            run["outcome"]["success"],
            run["outcome"]["observed"],
        )
        [serving] = run["servings"]
        assert (ENTITY, "briefing", "on", 2) == tuple(serving[name] for name in ("asked", "how", "arm", "candidates"))
        expected = [(entry["key"], entry["rank"]) for entry in briefing["entries"]]
        assert expected == [(read["key"], read["rank"]) for read in run["reads"]]
        assert {"pool": "declared", "tz": "attempt"} == {read["key"]: read["used"] for read in run["reads"] if read["used"]}
        assert [len(features.NAMES)] == [*{len(read["features"]) for read in run["reads"]}]
        assert {serving["serving"]} == {read["serving"] for read in run["reads"]}

    def test_a_run_charges_what_failed_in_it_once_however_often_it_tried(self, service: Service, ann: Desk) -> None:
        """One run could sink an entry by trying it ten times against what was broken for a reason of its own."""
        ann.write("tz", "UTC")
        ann.write("pool", 50)
        evidence = [0.0]
        for nth, tries in enumerate((5, 1)):
            desk = box(service, f"box-{nth}")
            desk.begin(f"s{nth}")
            desk.brief(session=f"s{nth}")
            for _ in range(tries):
                desk.do("attempt", session=f"s{nth}", result="failure", used=["tz"])
            moved = desk.outcome(f"s{nth}", ref=f"o{nth}", used=["pool"])["moved"]
            assert [("tz", "attempt"), ("pool", "used")] == sorted(((m["key"], m["how"]) for m in moved), key=lambda m: m[1])
            ann.do("attest", ref=f"o{nth}", exit_code=0)
            evidence.append(ann.do("read", entity=ENTITY, key="tz")["evidence"])
        assert 0.0 > evidence[1] > evidence[2], "but each run does"
        assert 5 == len(ann.do("trace", ref="o0")["attempts"]), "all tries are in the record"

    def asked_run(self, service: Service, ann: Desk, nth: int, task: str, used: list[str], *, exit_code: int = 0) -> None:
        """A box is asked something, uses these, and its host tells how it ended."""
        desk = box(service, f"box-{nth}")
        desk.do("start_session", session=f"s{nth}", agent="agent", task=task)
        desk.brief(session=f"s{nth}", task=task)
        desk.outcome(f"s{nth}", "success" if exit_code == 0 else "failure", ref=f"o{nth}", used=[desk.named(key) for key in used])
        ann.do("attest", ref=f"o{nth}", exit_code=exit_code)

    def lift(self, desk: Desk, key: str, task: str) -> float:
        """How much more often than usual runs with such a task used an entry; nothing where it is not about the task at all."""
        entries = desk.brief(task=task, explain=True, tokens=4000)["entries"]
        return float(sum(entry["explain"]["legs"]["precedent"]["score"] for entry in entries if entry["key"] == key))

    def test_what_runs_with_such_a_task_used_comes_first_when_it_is_asked_again(self, ann: Desk, service: Service) -> None:
        """A note that shares no word with the task it solves would be found by nobody."""
        for key in ("alpha", "beta", "gamma"):
            ann.write(key, 1)
        for nth in range(6):
            task, used = ("totals are off by 3 cents", "alpha") if nth % 2 else ("staging refuses 9 sessions", "beta")
            self.asked_run(service, ann, nth, task, [used, "gamma"])
        again = ann.brief(task="Totals are off by 7 cents", explain=True)["entries"]
        assert "alpha" == max(again, key=lambda entry: entry["explain"]["score"])["key"]
        assert self.lift(ann, "alpha", "totals are off by 1 cents") > 0.4
        assert 0.0 == self.lift(ann, "beta", "totals are off by 1 cents")
        assert self.lift(ann, "gamma", "totals are off by 1 cents") < 0.3  # used whatever the task: not for this one
        assert 0.0 == self.lift(ann, "alpha", "the parser overflows")

    def test_what_a_failed_run_used_is_no_precedent_and_a_revision_takes_it_back(self, ann: Desk, service: Service) -> None:
        """What misled a run would be served again to the next one with the same task."""
        ann.write("alpha", 1)
        ann.write("totals", 1)
        self.asked_run(service, ann, 0, "totals are off by one cent", ["alpha"], exit_code=1)
        assert ["totals"] == [entry["key"] for entry in ann.brief(task="totals are off by one cent")["entries"]]
        self.asked_run(service, ann, 1, "totals are off by one cent", ["alpha"])
        assert self.lift(ann, "alpha", "totals are off by one cent") > 0.1
        ann.do("revise_outcome", ref="o1", type="failure", request_id="r1")
        assert ["totals"] == [entry["key"] for entry in ann.brief(task="totals are off by one cent")["entries"]]

    def test_a_box_that_claims_use_all_day_is_one_precedent(self, ann: Desk, service: Service) -> None:
        """Whoever wants a note read would only have to say often enough that it was used."""
        ann.write("alpha", 1)
        ann.write("totals", 1)
        task = "totals are off by one cent"
        desk = box(service, "griefer", identity="intruder")
        for nth in range(30):
            desk.do("start_session", session=f"g{nth}", agent="agent", task=task)
            desk.outcome(f"g{nth}", ref=f"g{nth}", used=[desk.named("alpha")])
        assert self.lift(ann, "alpha", task) < 0.35

    def test_what_is_no_longer_asked_is_forgotten(
        self, book: Book, ann: Desk, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A path that is asked something new every day would grow without bound."""
        monkeypatch.setattr("herdbook.record.precedents.KEPT_MAX", 3)
        ann.write("alpha", 1)
        words = ("walrus", "ocelot", "magpie", "badger", "jackal")
        for nth, word in enumerate(words):
            book.clock.tick(seconds=60)
            self.asked_run(service, ann, nth, f"{word} {word}s do not compile", ["alpha"])
        kept = {row[2] for row in service.record.parts_asked(ann.caller.tenant, [ENTITY])}
        assert {"", *(f"{word} {word}s do not compile" for word in words[2:])} == kept

    def test_features_are_as_they_were(self, ann: Desk) -> None:
        """A ranker would learn from numbers that already hold the answer."""
        ann.write("pool", 50, confidence=0.6)
        for run in ("r1", "r2"):
            ann.begin(run)
            ann.brief(session=run)
            ann.outcome(run, ref=f"o-{run}", used=["pool"])
            ann.do("attest", ref=f"o-{run}", exit_code=0)
        first, second = (run["reads"][0] for run in self.runs(ann))
        assert (0.6, 0, 0.0) == tuple(self.feature(first, name) for name in ("confidence", "moves", "held"))
        assert (0.618, 1, 1.0) == tuple(self.feature(second, name) for name in ("confidence", "moves", "held"))

    def test_only_runs_with_an_outcome_are_told_a_page_at_a_time(self, ann: Desk, service: Service) -> None:
        """A run that is not over would count as one that came to nothing, or a page would be told twice."""
        ann.write("a", 1)
        for n in range(5):
            ann.begin(f"s{n}")
            ann.brief(session=f"s{n}")
            if n != 3:
                ann.outcome(f"s{n}", "failure" if n == 2 else "success", ref=f"o{n}")
        found: list[str] = []
        page: dict[str, Any] = {"next": None}
        while not found or page["next"]:
            page = ann.do("exposures", limit=2, after=page["next"])
            found += [run["session"] for run in page["runs"]]
        assert ["s0", "s1", "s2", "s4"] == found
        assert [] == self.runs(person(service, tenant=2))
        with refused("invalid_request", saying="first page"):
            ann.do("exposures", after="-1")

    def test_a_run_is_told_as_it_ended_at_last(self, ann: Desk) -> None:
        """A fix that did not hold would be learnt as one that did."""
        ann.write("a", 1)
        ann.begin("s")
        ann.brief(session="s")
        ann.outcome("s", ref="o1", used=["a"])
        ann.outcome("s", ref="o2", used=["a"])
        ann.do("revise_outcome", ref="o2", type="critical_failure")
        assert [("o2", "critical_failure", False)] == [
            (run["outcome"]["ref"], run["outcome"]["type"], run["outcome"]["success"]) for run in self.runs(ann)
        ]

    def test_runs_are_told_by_the_path_they_asked_about(self, ann: Desk) -> None:
        """A ranker for one entity would be trained on another."""
        for entity in (ENTITY, f"{ENTITY}/below", f"{ENTITY}0"):
            ann.write("a", 1, entity=entity)
            ann.begin(entity)
            ann.brief(entity=entity, session=entity)
            ann.outcome(entity)
        assert [ENTITY, f"{ENTITY}/below"] == [run["session"] for run in self.runs(ann, entity=ENTITY)]
        assert 3 == len(self.runs(ann, entity=TOP))

    def held(self, desk: Desk, entity: str | None, name: str = "holdback") -> tuple[Any, Any]:
        answer = desk.do("tuning", entity=entity)
        [found] = [each for each in answer["tuning"] if each["name"] == name]
        return found["value"], found["set_at"]

    def test_the_nearest_setting_holds(self, book: Book, ann: Desk) -> None:
        """An experiment would run where nobody asked for it, or not where somebody did."""
        ann.do("tune", values={"holdback": 0.05})
        ann.do("tune", entity=ENTITY, values={"holdback": 0.2}, why="to see which notes help")
        again = person(book.open())
        assert (0.2, ENTITY) == self.held(again, f"{ENTITY}/below")
        assert (0.05, "everywhere") == self.held(again, TOP)
        again.do("tune", entity=ENTITY, values={"holdback": None})
        assert (0.05, "everywhere") == self.held(ann, ENTITY)
        assert [0.2, None] == [each["value"] for each in ann.do("tuning", entity=ENTITY, history=True)["history"]]
        assert (0.0, None) == self.held(person(book.open(), tenant=2), ENTITY)

    @pytest.mark.parametrize(
        "values",
        [
            {},
            {"holdback": 0.9},
            {"holdback": float("nan")},
            {"holdback": "0.1"},
            {"hold": 0.1},
            {"fusion": "best"},
            {"fusion": 1.0},
        ],
        ids=repr,
    )
    def test_what_cannot_hold_is_refused_by_name(self, ann: Desk, values: dict[str, Any]) -> None:
        """A slip of the pen would be an experiment."""
        with refused("invalid_value", saying=next(iter(values), "nothing is set")):
            ann.do("tune", entity=ENTITY, values=values)
        assert (0.0, None) == self.held(ann, ENTITY)

    def test_a_setting_sent_again_is_set_once(self, ann: Desk) -> None:
        """A retry would undo what was set in between."""
        first = ann.do("tune", entity=ENTITY, values={"holdback": 0.1}, request_id="r")
        ann.do("tune", entity=ENTITY, values={"holdback": 0.3})
        assert first == ann.do("tune", entity=ENTITY, values={"holdback": 0.1}, request_id="r")
        assert (0.3, ENTITY) == self.held(ann, ENTITY)
        with refused("request_conflict"):
            ann.do("tune", entity=ENTITY, values={"holdback": 0.2}, request_id="r")

    def test_a_tuned_multiplier_moves_trust(self, ann: Desk) -> None:
        """What calibration found would change nothing."""
        ann.do("tune", entity=ENTITY, values={"multiplier_success": 1.2})
        ann.write("a", 1)
        ann.run("s1", used=["a"])
        assert 0.6 == pytest.approx(ann.read("a")["confidence"])
        ann.do("tune", entity=ENTITY, values={"multiplier_success": None})
        ann.run("s2", used=["a"])
        assert 0.618 == pytest.approx(ann.read("a")["confidence"])

    def test_tuned_credit_is_given_where_it_was_set(self, ann: Desk) -> None:
        """A weight could be set, and would do nothing."""
        for key in ("used", "shown"):
            ann.write(key, 1)
        ann.do("tune", entity=ENTITY, values={"credit_used": 0.6, "credit_shown": 0.1})
        ann.run("s1", used=["used"], ref="o1")
        ann.run("s2", served=["shown"], ref="o2")
        assert (0.6, 0.1) == (ann.claim("used")["held"], ann.claim("shown")["held"])
        ann.do("attest", ref="o2", exit_code=0)
        assert 0.1 == ann.claim("shown")["held"]

    def test_what_was_shown_and_then_opened_is_credited_more(self, ann: Desk) -> None:
        """What somebody looked at twice would count no more than what merely stood in a briefing; or as much as what was used."""
        for key in ("opened", "shown", "only-read"):
            ann.write(key, key)
        ann.begin("s")
        ann.read("only-read", session="s")
        ann.do("search", query="opened shown", session="s")
        ann.read("opened", session="s")
        ann.outcome("s", ref="o")
        held = {key: ann.claim(key)["held"] for key in ("opened", "shown", "only-read")}
        assert {"opened": 0.5, "shown": 0.2, "only-read": 0.2} == held
        ann.do("tune", entity=ENTITY, values={"credit_opened": 0.7})
        ann.read("shown", session="s")  # after the outcome was told
        ann.do("attest", ref="o", exit_code=0)
        assert (0.7, 0.2) == tuple(ann.claim(key)["held"] for key in ("opened", "shown"))

    def test_vectors_are_kept_by_space_and_followed_as_they_come(self, ann: Desk) -> None:
        """One model's vectors would be taken for another's, or a scan would miss what came late."""
        for key in ("a", "b", "a"):
            ann.write(key, ann.do("list")["paths"])
        store = ann.service.record.store
        current = vectors.waiting(store, 1, "m", after=0, limit=9)
        assert 2 == len(current)
        store.write(lambda tx: vectors.keep(tx, 1, "m", [(current[1], b"second")]), tenant=1)
        store.write(lambda tx: vectors.keep(tx, 1, "m", [(current[0], b"first"), (current[1], b"again")]), tenant=1)
        assert {current[0]: b"first", current[1]: b"second"} == vectors.load(store, 1, "m", current)
        assert ({}, {}) == (vectors.load(store, 1, "n", current), vectors.load(store, 2, "m", current))
        first = vectors.page(store, 1, "m", after=0, limit=1)
        rest = vectors.page(store, 1, "m", after=first[0][2], limit=9)
        assert [(current[1], b"second"), (current[0], b"first")] == [(version, blob) for version, blob, _ in first + rest]
        assert ([], (2, 2)) == (vectors.waiting(store, 1, "m", after=0, limit=9), vectors.counts(store, 1, "m"))
        ann.write("b", "superseded")
        assert [current[1]] == vectors.current(store, 1, current)
        store.write(lambda tx: vectors.drop_others(tx, 1, "n"), tenant=1)
        assert {} == vectors.load(store, 1, "m", current)

    def test_a_box_tunes_nothing_and_sees_nobody_s_runs(self, service: Service) -> None:
        """What a box says would decide how its own words rank."""
        inside = box(service, "b1")
        for verb, fields in (("tune", {"values": {"holdback": 0.1}}), ("exposures", {})):
            with refused("forbidden"):
                inside.do(verb, **fields)
