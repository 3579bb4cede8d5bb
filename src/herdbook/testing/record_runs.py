"""What a store promises about runs in bulk: none missed, none twice, of one snapshot, and only the tenant's own."""

from __future__ import annotations

from typing import Any

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


class RunsContract(Contract):
    """Reading what every run came to."""

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
