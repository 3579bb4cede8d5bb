"""Conformance: what was shown is known, exactly and for ever; time and traces."""

from __future__ import annotations

from typing import Any

import pytest

from herdbook.service.door import Service
from herdbook.testing.record_base import Contract
from herdbook.testing.record_book import ENTITY, Book, Desk, as_bytes, person

HALF_LIFE_DAYS = 30 * (1 + 2.3978952727983707) * 2  # a fact, ten reads (log1p(10)), an outcome: the seeds' 204 days


class ReadingContract(Contract):
    """Reads are logged with exact version, rank and probability, visible to every process at once, and counted once."""

    def reads(self, desk: Desk, session: str) -> list[dict[str, Any]]:
        reads: list[dict[str, Any]] = desk.do("trace", ref=session)["reads"]
        return reads

    def test_what_was_shown_is_logged_exactly(self, book: Book, ann: Desk) -> None:
        """Nobody could say afterwards what a run had known."""
        for key in ("kettle", "lamp"):
            ann.write(key, 1)
        ann.write("kettle", "kettle boils")
        ann.begin("s")
        ann.read("kettle", session="s")
        ann.read("kettle", version=1, session="s")
        briefing = ann.brief(session="s")
        ann.do("search", query="boils", entity=ENTITY, session="s")
        ann.do("search", query="boils", session="s")
        expected = [("kettle", 2, 1, "read"), ("kettle", 1, 1, "read")]
        expected += [(entry["key"], entry["version"], entry["rank"], "briefing") for entry in briefing["entries"]]
        expected += [("kettle", 2, 1, "search")] * 2
        found = self.reads(ann, "s")
        assert expected == [(read["key"], read["version"], read["rank"], read["how"]) for read in found]
        assert {(True, 1.0)} == {(read["served"], read["probability"]) for read in found}

    def test_only_what_stands_in_the_text_counts_as_shown(self, ann: Desk) -> None:
        """An entry that fell to the budget would be judged by runs that never saw it."""
        for n in range(40):
            ann.write(f"k{n}", f"a sentence that takes some room, number {n}")
        ann.begin("s")
        briefing = ann.brief(session="s", tokens=200)
        assert 0 < len(briefing["entries"]) < 40
        assert {e["key"] for e in briefing["entries"]} == {read["key"] for read in self.reads(ann, "s")}

    def test_what_is_not_tracked_is_said_and_not_logged(self, ann: Desk) -> None:
        """A look at the record would count as somebody's run."""
        ann.write("a", 1)
        ann.begin("s")
        for answer in (ann.read("a"), ann.brief(), ann.do("search", query="a")):
            assert answer["tracked"] is False
        ann.history("a")
        ann.do("diff", entity=ENTITY, key="a")
        assert ann.read("a", session="s")["tracked"] is True
        assert 1 == len(self.reads(ann, "s"))
        assert 1 == ann.read("a")["recalls"]

    def test_a_read_is_seen_by_every_process_at_once(self, book: Book, ann: Desk) -> None:
        """An outcome that another server receives would move nothing."""
        ann.write("a", 1)
        ann.begin("s")
        other = person(book.open())
        ann.read("a", session="s")
        assert [("a", "served")] == [(move["key"], move["how"]) for move in other.outcome("s")["moved"]]

    def test_a_read_is_counted_once(self, book: Book, ann: Desk) -> None:
        """A read that several processes come across would lengthen the half-life several times."""
        ann.write("a", 1)
        ann.begin("s")
        others = [person(book.open()) for _ in range(2)]
        for _ in range(5):
            ann.read("a", session="s")
            for n, desk in enumerate(others):
                desk.write(f"other{n}", 1)
        assert 5 == ann.read("a")["recalls"] == len(self.reads(others[0], "s"))
        assert 5 == len(self.reads(person(book.open()), "s"))

    def test_what_was_served_last_is_meant(self, ann: Desk) -> None:
        """A key would mean the version that was read first."""
        ann.write("a", 1)
        ann.begin("s")
        ann.read("a", session="s")
        ann.write("a", 2)
        ann.read("a", session="s")
        assert [2] == [move["version"] for move in ann.outcome("s", used=["a"])["moved"]]

    def test_the_seeds_example_holds_from_end_to_end(self, book: Book, ann: Desk) -> None:
        """Confidence would fade at another pace than everybody was told."""
        ann.write("a", 1)
        ann.begin("s")
        for _ in range(10):
            ann.read("a", session="s")
        ann.outcome("s")
        entry = ann.read("a")
        assert (10, 1, 0.515, 0.515) == (*map(entry.get, ("recalls", "moves", "confidence", "effective_confidence")),)
        assert 204 == round(HALF_LIFE_DAYS)
        book.clock.tick(days=HALF_LIFE_DAYS)
        entry = ann.read("a")
        assert pytest.approx(0.2575, abs=1e-9) == entry["effective_confidence"]
        assert (0.515, pytest.approx(HALF_LIFE_DAYS, abs=1e-3)) == (entry["confidence"], entry["age_days"])

    def test_a_clock_set_back_changes_no_order_and_makes_no_age(self, book: Book, ann: Desk) -> None:
        """After a clock error, the old would hide the new, or the new would be older than itself."""
        ann.write("a", "before")
        ann.write("b", 1)
        ann.write("b", 1)
        ann.begin("s")
        ann.read("a", session="s")
        ann.outcome("s", ref="o1")
        book.clock.tick(days=-365)
        ann.write("a", "after")
        ann.write("b", 1)
        ann.read("a", session="s")
        ann.outcome("s", "failure", ref="o2")
        assert [1, 2] == [version["version"] for version in ann.history("a")]
        assert "after" == ann.read("a")["value"]
        for entry in [*ann.brief()["entries"], *ann.history("a"), ann.read("b")]:
            assert entry["age_days"] >= 0
            assert 0 <= entry["effective_confidence"] <= entry["confidence"]
        assert ["o1", "o2"] == [outcome["ref"] for outcome in ann.do("trace", ref="s")["outcomes"]]
        assert "verified" == ann.do("trace", ref="s")["seal"]

    def test_an_age_of_four_hundred_days_is_only_old(self, book: Book, ann: Desk) -> None:
        """A clock that jumped ahead would make numbers that nothing can be done with."""
        ann.write("a", 1, kind="belief")
        ann.write("proven", 1)
        ann.do("attest", ref=person(ann.service, "bob").run("s", used=["proven"]), exit_code=0)
        book.clock.tick(days=400)
        entry = ann.read("a")
        assert 0 < entry["effective_confidence"] < 1e-7
        briefing = ann.brief()
        assert (["proven"], 1) == ([e["key"] for e in briefing["entries"]], briefing["left_out"]["faded"])
        assert 1 == len(ann.history("a")), "what has faded leaves briefings, never the history"

    def test_a_trace_tells_the_run(self, ann: Desk, box_a: Desk) -> None:
        """A postmortem would have to guess."""
        ann.do(
            "box_open",
            box="box-a",
            provider="bubblewrap",
            isolation="namespace",
            label="acme/checkout",
            owner="host",
            lease_seconds=60,
        )
        ann.write("a", 1)
        box_a.do("start_session", session="s", agent="alf", task="make it green", entity=ENTITY)
        box_a.read("a", session="s")
        box_a.do("record_context", session="s", name="prompt", text="be careful")
        box_a.do("attempt", session="s", result="failure", used=["a"], note="no")
        box_a.do("record_action", session="s", tool="pytest", args=["-x"], result={"exit": 0}, ok=True)
        box_a.write("found", 2, session="s")
        answer = box_a.outcome("s", ref="o", task_input="make it green", artifacts={"log": "l"}, observed=["x"])
        assert (True, []) == (answer["trainable"], answer["missing"])
        box_a.do("end_session", session="s")
        told = ann.do("trace", ref="o")
        assert told == ann.do("trace", ref="s") == box_a.do("trace", ref="o")
        assert ("alf", "fleet", "box", "box-a", "bubblewrap", "namespace", "make it green", ENTITY) == (
            *map(told.get, ("agent", "identity", "channel", "box", "provider", "isolation", "task", "entity")),
        )
        assert [1, 1, 1, 1, 1, 1] == [
            len(told[part]) for part in ("reads", "contexts", "actions", "attempts", "writes", "outcomes")
        ]
        assert ("verified", True, []) == (told["seal"], told["trainable"], told["missing"])
        [outcome] = told["outcomes"]
        assert ("make it green", ["x"], {"log": "l"}, False) == (
            *map(outcome.get, ("task_input", "observed", "artifacts", "attested")),
        )

    @pytest.mark.parametrize(
        "task, action, missing",
        [(None, "", ["task_input", "actions"]), ("t", "", ["actions"]), (None, "pytest", ["task_input"]), ("t", "pytest", [])],
    )
    def test_what_keeps_a_run_from_training_is_named(self, ann: Desk, task: str | None, action: str, missing: list[str]) -> None:
        """A thousand runs would turn out to be useless a year later."""
        ann.begin("s")
        assert ["outcome", "task_input", "actions"] == ann.do("trace", ref="s")["missing"]
        if action:
            ann.do("record_action", session="s", tool=action)
        answer = ann.outcome("s", **({"task_input": task} if task else {}))
        assert (missing, not missing) == (answer["missing"], answer["trainable"])
        told = ann.do("trace", ref="s")
        assert (missing, not missing) == (told["missing"], told["trainable"])

    def test_a_trace_stays_verified_however_long_it_gets(self, book: Book, ann: Desk) -> None:
        """An honest run would be called forged."""
        ann.write("a", 1)
        ann.begin("s")
        assert "none" == ann.do("trace", ref="s")["seal"]
        other = person(book.open())
        for n, desk in enumerate([ann, other, ann, other]):
            desk.read("a", session="s")
            desk.do("record_action", session="s", tool=f"tool-{n}", ok=None)
            desk.do("record_context", session="s", name="n", text="t\nu")
            desk.do("attempt", session="s", result="failure", used=["a"])
            desk.write("b", n, session="s")
            desk.outcome("s", "success", ref=f"o{n}")
            assert "verified" == ann.do("trace", ref="s")["seal"]
            desk.do("attest", ref=f"o{n}", exit_code=n % 2)
            assert "verified" == other.do("trace", ref="s")["seal"]
            desk.do("revise_outcome", ref=f"o{n}", type="minor_failure", why="w")
            assert "verified" == ann.do("trace", ref="s")["seal"]
        ann.read("a", session="s")
        ann.do("record_action", session="s", tool="after the last outcome")
        ann.do("end_session", session="s")
        assert "verified" == person(book.open()).do("trace", ref="s")["seal"]

    def test_pages_hold_everything_once(self, ann: Desk) -> None:
        """An entry between two pages would be seen by nobody, or twice."""
        names = [
            ("acme", "k"),
            ("acme/a", "k1"),
            ("acme/a", "k2"),
            ("acme/a/b", "k"),
            ("acme-x", "k"),
            ("acme0", "k"),
            ("支付", "钥匙"),
        ]
        for entity, key in names:
            ann.write(key, 1, entity=entity)
        below = [name for name in sorted(names) if name[0].split("/")[0] == "acme"]
        for limit in (1, 2, 3, 100):
            assert sorted(names) == self.pages(ann, limit=limit)
            assert below == self.pages(ann, entity="acme", limit=limit)

    def pages(self, desk: Desk, **fields: Any) -> list[tuple[str, str]]:
        """Everything on every page, in order."""
        found: list[tuple[str, str]] = []
        while True:
            page = desk.do("list", **fields)
            found += [(path["entity"], entry["key"]) for path in page["paths"] for entry in path["entries"]]
            if page["next"] is None:
                return found
            fields["after"] = page["next"]

    def test_what_changed_is_shown(self, ann: Desk) -> None:
        """Two versions could only be compared by eye."""
        ann.write("a", {"port": 22}, why="the default")
        ann.write("a", {"port": 49222}, why="moved off the default")
        diff = ann.do("diff", entity=ENTITY, key="a")
        assert ["value", "why"] == [change["field"] for change in diff["changed"]]
        assert "-" in diff["text"]
        assert "49222" in diff["text"]
        assert {"port": 22} == diff["changed"][0]["old"]

    def test_what_was_superseded_is_not_found_again(self, ann: Desk, service: Service) -> None:
        """Somebody who asks which port to use would be told the old one."""
        ann.write("ssh-port", 22, why="sshd listens on 22")
        ann.do("search", query="which port does ssh use")
        person(service, "bob").write("ssh-port", 49222, why="moved off the default")
        for scope in ({}, {"entity": ENTITY}):
            found = ann.do("search", query="which port does ssh use", **scope)["results"]
            assert [49222] == [entry["value"] for entry in found]
        assert [(22, "ann"), (49222, "bob")] == [(v["value"], v["author"]) for v in ann.history("ssh-port")]

    def test_asking_changes_nothing(self, ann: Desk) -> None:
        """Looking at the record would change what it says."""
        ann.write("a", 1)
        ann.run("s", used=["a"])
        before = as_bytes(ann.claims("a"))
        for verb, fields in (
            ("brief", {"entity": ENTITY}),
            ("history", {"entity": ENTITY, "key": "a"}),
            ("status", {}),
            ("list", {}),
        ):
            ann.do(verb, **fields)
        assert before == as_bytes(ann.claims("a"))
