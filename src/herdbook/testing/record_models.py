"""Conformance: which model answers under a name is appended, decided by its examination, and counted by how its runs end."""

from __future__ import annotations

from typing import Any

from herdbook.testing.record_base import Contract
from herdbook.testing.record_book import Book, Desk, person, refused

HASH = "7e" * 32
GAIN = {"mean": 0.4, "low": 0.2, "high": 0.6}
REPORT: dict[str, Any] = {
    "tasks": 40,
    "bad_acts": 5,
    "gains": {"base": GAIN, "majority": GAIN, "replay": GAIN},
    "agrees_more_with_failures": {"mean": 0.0, "low": 0.0, "high": 0.0},
}


def model(desk: Desk, name: str = "policy", **changed: Any) -> str:
    kept = desk.do("artefact_keep", kind="model", name=name, hash=HASH, metrics={"evaluation": {**REPORT, **changed}})
    return str(kept["artefact"])


def route(desk: Desk) -> dict[str, Any]:
    return desk.do("model_route", alias="fixer", upstream="laptop", name="base", request_id="r-0")


def promote(desk: Desk, artefact: str, **more: Any) -> dict[str, Any]:
    return desk.do("model_promote", artefact=artefact, alias="fixer", upstream="laptop", name="tuned", **more)


def call(desk: Desk, n: int, session: str, *turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "make it pass"}, *turns]
    return desk.do("model_call", alias="fixer", n=n, session=session, agent="fixer", messages=messages, **more)


CALL = {"id": "c1", "type": "function", "function": {"name": "set", "arguments": '{"TZ": "UTC"}'}}
CALLED = ({"role": "assistant", "content": None, "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "c1", "content": "ok"})


class ModelsContract(Contract):
    """Routes of models, and the calls they answered."""

    def test_a_model_is_promoted_and_taken_back(self, ann: Desk) -> None:
        """The one before could not be had again, or nobody could tell which it was."""
        route(ann)
        tuned = model(ann)
        told = promote(ann, tuned, request_id="r-1", why="it gains")
        assert told == promote(ann, tuned, request_id="r-1", why="it gains")
        assert (2, tuned, "base", 100.0) == (told["n"], told["model"]["artefact"], told["before"]["name"], told["percent"])
        assert "promoted" == ann.do("artefact_list", artefact=tuned)["artefacts"][0]["status"]
        back = ann.do("model_rollback", alias="fixer", why="it asks too much")
        assert ("base", None) == (back["model"]["name"], back["before"])
        assert "retired" == ann.do("artefact_list", artefact=tuned)["artefacts"][0]["status"]
        assert [1, 2, 3] == [each["n"] for each in ann.do("model_routes", alias="fixer")["routes"][0]["history"]]
        with refused("invalid_request"):
            ann.do("model_rollback", alias="fixer")

    def test_a_model_that_is_not_shown_to_be_better_gets_no_name(self, ann: Desk) -> None:
        """A model that learned nothing would answer customers; nothing may change by the refusal."""
        route(ann)
        unsure = {**GAIN, "low": -0.01}
        unsafe: list[dict[str, Any]] = [{"gains": {**REPORT["gains"], rival: unsure}} for rival in ("base", "majority", "replay")]
        unsafe += [{"tasks": 29}, {"gains": {"base": GAIN, "majority": GAIN}}]
        unsafe += [{"agrees_more_with_failures": {"mean": 0.01, "low": -0.1, "high": 0.1}}]
        for number, changed in enumerate(unsafe):
            with refused("not_promotable"):
                promote(ann, model(ann, f"policy-{number}", **changed))
        with refused("not_promotable"):
            promote(ann, ann.do("artefact_keep", kind="model", name="unexamined", hash=HASH)["artefact"])
        assert 1 == ann.do("model_routes")["routes"][0]["n"]

    def test_no_other_way_leads_to_promoted(self, ann: Desk) -> None:
        """Whoever may say what became of a model could go around its examination."""
        unexamined = ann.do("artefact_keep", kind="model", name="unexamined", hash=HASH)["artefact"]
        with refused("invalid_request"):
            ann.do("artefact_set", artefact=unexamined, status="promoted")
        with refused("invalid_request"):
            ann.do("artefact_keep", kind="model", name="born", hash=HASH, status="promoted")

    def test_a_widened_part_keeps_what_it_replaces(self, ann: Desk) -> None:
        """After ten percent and then all, going back would lead to the model itself."""
        tuned = model(ann)
        with refused("invalid_request"):
            promote(ann, tuned, percent=10)
        assert "candidate" == ann.do("artefact_list", artefact=tuned)["artefacts"][0]["status"]
        route(ann)
        promote(ann, tuned, percent=10)
        assert "base" == promote(ann, tuned)["before"]["name"]
        other = model(ann, "other")
        assert "base" != promote(ann, other, entities=["acme"])["before"]["name"]

    def test_a_call_is_kept_in_its_run_once(self, ann: Desk) -> None:
        """A trace would hold each turn as often as the conversation was sent, or not what the tools were told."""
        route(ann)
        call(ann, 1, "run-1", tools=[{"type": "function", "function": {"name": "set"}}])
        call(ann, 1, "run-1", *CALLED, answer="it passes")
        call(ann, 1, "run-1", *CALLED, answer="it passes")
        ann.outcome("run-1", "success", ref="run-1.end", task_input="make it pass")
        found = ann.do("runs")["runs"][0]
        assert [("set", {"TZ": "UTC"}, "ok")] == [(each["tool"], each["args"], each["result"]) for each in found["actions"]]
        assert ["tools", "model", "user", "assistant"] == [each["name"] for each in found["contexts"]]
        assert "make it pass" == found["task"]

    def test_whatever_a_client_sends_is_kept_as_far_as_it_can_be(self, ann: Desk) -> None:
        """One odd message would lose the whole call, after it was answered."""
        route(ann)
        odd: list[Any] = [
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}, 5, {"type": "text", "text": "look"}]},
            {"role": "user", "content": {"text": "no list"}},
            {"role": "assistant", "content": None, "tool_calls": ["no call", {"id": "c1", "custom": {"name": "x"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "\x1b[31mred\x1b[0m " + "é" * 20_000},
            {"role": "user", "content": "\ud800 and on"},
        ]
        call(ann, 1, "run-1", *odd, answer="done")
        found = ann.do("runs")["runs"][0]
        assert [*["user"] * 4, "assistant"] == [each["name"] for each in found["contexts"] if each["name"] != "model"]
        texts = [each["text"] for each in found["contexts"] if each["name"] == "user"]
        assert ["make it pass", "[image_url]\nlook", "no list", "? and on"] == texts
        [action] = found["actions"]
        assert ("None", "red é", "characters more)") == (action["tool"], action["result"][:5], action["result"][-16:])

    def test_a_secret_in_a_conversation_is_not_kept(self, ann: Desk) -> None:
        """What somebody pasted into a chat would be trained on."""
        route(ann)
        call(ann, 1, "run-1", {"role": "user", "content": "use password=hunter2hunter2"}, answer="token: abcdefgh12345678")
        assert not any("hunter2" in each["text"] or "12345678" in each["text"] for each in ann.do("runs")["runs"][0]["contexts"])

    def test_how_the_runs_of_each_ended_is_told_apart(self, ann: Desk) -> None:
        """Nobody could tell whether the new model is worth it; a run that both had a part in would count for both."""
        route(ann)
        n = promote(ann, model(ann), percent=0, entities=["acme/new"])["n"]
        for number in range(12):
            for entity, kind in (("acme/new", "success"), ("acme/old", "failure")):
                session = f"{entity}-{number}".replace("/", "-")
                call(ann, n, session, entity=entity)
                ann.outcome(session, kind, ref=f"{session}.end")
        call(ann, 1, "acme-new-0")  # by the model of before
        found = ann.do("model_routes", alias="fixer", compare=True)["routes"][0]["compared"]["models"]
        assert [(11, 11), (12, 0)] == sorted((each["runs"], each["successes"]) for each in found.values())

    def test_another_tenants_names_are_not_there(self, book: Book, ann: Desk) -> None:
        """One customer would be answered by another's model."""
        route(ann)
        book.tenant_maker(2)
        stranger = person(ann.service, "bob", tenant=2)
        assert [] == stranger.do("model_routes")["routes"]
        with refused("not_found"):
            call(stranger, 1, "run-1")
