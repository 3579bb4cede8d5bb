"""What a store promises about runs in bulk: none missed, none twice, of one snapshot, and only the tenant's own."""

from __future__ import annotations

from typing import Any

import pytest

from herdbook.base.ids import ROW_ID_MAX
from herdbook.record import newest
from herdbook.testing.record_base import Contract
from herdbook.testing.record_book import ENTITY, Book, Desk, person, refused

PAGE = 3


def pages(desk: Desk, **fields: Any) -> list[dict[str, Any]]:
    """Every run, page by page."""
    page = desk.do("runs", limit=PAGE, **fields)
    found = list(page["runs"])
    while page["next"] is not None:
        rest = {name: page[name] for name in ("snapshot", "until")}
        page = desk.do("runs", limit=PAGE, after=page["next"], **rest, **fields)
        found += page["runs"]
    return found


def ended(desk: Desk, **fields: Any) -> list[str]:
    """The refs of all outcomes, newest first, page by page."""
    page = desk.do("outcomes", limit=PAGE, **fields)
    found = [each["ref"] for each in page["outcomes"]]
    while page["next"] is not None:
        page = desk.do("outcomes", limit=PAGE, after=page["next"], **fields)
        found += [each["ref"] for each in page["outcomes"]]
    return found


class RunsContract(Contract):
    """Reading what every run came to."""

    def test_the_newest_outcome_comes_first(self, book: Book, ann: Desk) -> None:
        """Whoever comes back to a record, and knows no ref, would find nothing to begin with."""
        for number in range(2 * PAGE + 1):
            about = ("acme/ci", "acme/ci/web", "acme/cinema", None)[number % 4]
            ann.do(
                "start_session",
                session=f"s{number}",
                agent="fixer",
                task=f"task {number}",
                **({"entity": about} if about else {}),
            )
            ann.outcome(f"s{number}", "failure" if number % 3 else "success", ref=f"o{number}")
            book.clock.tick(seconds=-5)  # the order is that of commits, whatever the clock says
        assert [f"o{number}" for number in reversed(range(2 * PAGE + 1))] == ended(ann)
        assert ["o5", "o4", "o1", "o0"] == ended(ann, entity="acme/ci")
        assert ["o6", "o3", "o0"] == ended(ann, type="success")
        assert [] == ended(ann, entity="acme/nowhere")
        ann.do("attest", ref="o6", exit_code=0)
        ann.do("revise_outcome", ref="o6", type="critical_failure", why="it came down in the night")
        ann.write("k", 1)
        first = ann.do("outcomes", type="critical_failure")["outcomes"][0]
        told = {name: first[name] for name in ("ref", "session", "entity", "task", "type", "effective_type", "agent", "attested")}
        assert {
            "ref": "o6", "session": "s6", "entity": "acme/cinema", "task": "task 6", "type": "success",
            "effective_type": "critical_failure", "agent": "fixer", "attested": True,
        } == told  # fmt: skip
        assert ["o3", "o0"] == ended(ann, type="success")

    def test_a_box_finds_its_own_outcomes(self, ann: Desk, box_a: Desk, box_b: Desk) -> None:
        """A box could look through what everybody else was asked to do."""
        for desk, name in ((box_a, "a"), (box_b, "b")):
            desk.begin(name)
            desk.outcome(name, ref=f"o-{name}")
        assert (["o-a"], ["o-b"], ["o-b", "o-a"]) == (ended(box_a), ended(box_b), ended(ann))

    def test_a_box_looks_through_no_runs_but_its_own(self, ann: Desk, box_a: Desk, box_b: Desk) -> None:
        """One box that asks about a path where many ran would keep everybody waiting while it finds its few."""
        for desk, name in ((box_a, "a"), (box_b, "b"), (ann, "c"), (box_a, "d")):
            desk.do("start_session", session=name, agent="x", **({} if name == "d" else {"entity": "acme/ci"}))
            desk.outcome(name, ref=f"o-{name}")
        for path in ("acme", "acme/ci"):
            looked = newest.walked(ann.service.record, box_a.caller.stamp, ROW_ID_MAX, path)
            assert ["o-a"] == [row[1] for row in looked]
            assert ["o-a"] == ended(box_a, entity=path)
        assert [] == ended(box_a, entity="acme/c")
        assert ["o-d", "o-a"] == ended(box_a)

    def test_what_was_erased_is_no_outcome(self, ann: Desk) -> None:
        """A list of runs would still name the one that somebody had to be forgotten in."""
        for name in ("a", "b"):
            ann.begin(name)
            ann.outcome(name, ref=f"o-{name}")
        ann.do("erase", kind="session", subject="a", why="asked for")
        assert ["o-b"] == ended(ann)

    def test_a_page_ends_where_enough_was_looked_through(self, ann: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        """To look for what is rare would go through the whole record in one answer."""
        monkeypatch.setattr(newest, "LOOKED_THROUGH_MAX", 4)
        monkeypatch.setattr(newest, "AT_ONCE", 3)
        for number in range(9):
            ann.begin(f"s{number}")
            ann.outcome(f"s{number}", "success" if number == 1 else "failure", ref=f"o{number}")
        page = ann.do("outcomes", type="success")
        assert ([], True) == (page["outcomes"], page["next"] is not None)
        assert ["o1"] == ended(ann, type="success")
        for wrong in ("x", "-1", "1" * 30, ""):
            with refused("invalid_request"):
                ann.do("outcomes", after=wrong)

    def test_every_run_comes_once(self, ann: Desk) -> None:
        """A training set would lack runs, or weigh some twice."""
        names = [ann.begin(f"run-{number}") for number in range(2 * PAGE)]
        assert names == [run["session"] for run in pages(ann)]

    def test_a_run_comes_whole(self, ann: Desk) -> None:
        """What was asked, known, done or came of it would be missing from what is learned."""
        ann.write("tz", {"env": {"TZ": "UTC"}})
        session = ann.begin("run")
        ann.read("tz", session=session)
        ann.do("record_context", session=session, name="system", text="be brief")
        ann.do("record_action", session=session, tool="pytest", args={"q": True}, result="1 passed", ok=True)
        ann.outcome(session, ref="ref", task_input="make it pass")
        ann.do("attest", ref="ref", exit_code=0)
        [run] = pages(ann)
        assert ("be brief", "system") == (run["contexts"][0]["text"], run["contexts"][0]["name"])
        action = {name: run["actions"][0][name] for name in ("tool", "args", "result", "ok")}
        assert {"tool": "pytest", "args": {"q": True}, "result": "1 passed", "ok": True} == action
        read = {name: run["reads"][0][name] for name in ("entity", "key", "version", "value")}
        assert {"entity": ENTITY, "key": "tz", "version": 1, "value": {"env": {"TZ": "UTC"}}} == read
        [outcome] = run["outcomes"]
        assert ("ref", "success", "success", "make it pass") == (
            outcome["ref"],
            outcome["type"],
            outcome["attested"],
            outcome["task_input"],
        )
        assert run["broken"] is False

    def test_what_comes_later_is_of_another_snapshot(self, ann: Desk) -> None:
        """Two pages of one export would tell of different records."""
        for number in range(PAGE + 1):
            ann.begin(f"run-{number}")
        first = ann.do("runs", limit=PAGE)
        ann.outcome(f"run-{PAGE}")
        rest = ann.do("runs", limit=PAGE, after=first["next"], snapshot=first["snapshot"], until=first["until"])
        assert [[]] == [run["outcomes"] for run in rest["runs"]]
        assert 1 == len(pages(ann)[-1]["outcomes"])

    def test_a_path_has_the_runs_below_it(self, ann: Desk) -> None:
        """An export of one product would hold another's runs, or lack its own."""
        for number, entity in enumerate(("acme", "acme/ci", "acme-two", "acme/ci/linux")):
            ann.do("start_session", session=f"run-{number}", agent="agent", entity=entity)
        assert ["run-1", "run-3"] == [run["session"] for run in pages(ann, entity="acme/ci")]

    def test_another_tenants_runs_are_not_there(self, book: Book, ann: Desk) -> None:
        """One customer's work would train another's model."""
        ann.outcome(ann.begin("run"))
        book.tenant_maker(2)
        assert [] == pages(person(ann.service, tenant=2))

    def test_a_box_does_not_see_them(self, box_a: Desk) -> None:
        """What runs in one box would read every other run."""
        with refused("forbidden"):
            box_a.do("runs")

    def test_a_revision_shows_beside_what_was_said_first(self, ann: Desk) -> None:
        """What turned out to be a failure would be taught as a success."""
        ann.outcome(ann.begin("run"), ref="ref")
        ann.do("revise_outcome", ref="ref", type="failure")
        [outcome] = pages(ann)[0]["outcomes"]
        assert ("success", "failure") == (outcome["type"], outcome["effective_type"])
