"""The slow loop's verbs, on a real record through the client."""

from __future__ import annotations

from pathlib import Path

import pytest

import herdbook
from herdbook.client import Client, HerdbookError
from herdbook.service.callers import box_caller
from herdbook.service.local import LocalTransport
from herdbook.slowloop.calibrate import half_life

ENTITY = "acme/ci"


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setenv("HERDBOOK_HOME", str(tmp_path))
    return herdbook.open(tmp_path / "record.db", agent="ann")


def another(book: Client) -> Client:
    return Client(book.transport, agent="ann")


def test_what_the_record_is_worth_needs_a_control_arm(book: Client) -> None:
    """A record that everybody was told would be praised for whatever happened."""
    book.write(ENTITY, "tz", "UTC", why="dates")
    for number in range(3):
        run = another(book)
        run.brief(ENTITY, task="make it pass")
        run.attempt("failure", ["tz"])
        run.commit_outcome("success" if number else "failure", used=["tz"])
    silent = another(book)
    silent.commit_outcome("success")
    answer = book.call("prove", {"entity": ENTITY})
    assert (3, 3, 0) == (answer["runs"], answer["told"], answer["control"]), "a run without a briefing is not compared"
    assert "not enough data" == answer["uplift"]["success"]["verdict"]
    assert "herdbook tune control=0.1" in answer["says"][0]
    assert answer["tokens"]["a_run"] > 0
    assert 3 == book.call("prove", {"entity": "acme"})["runs"], "what is below a path belongs to it"
    assert 0 == book.call("prove", {"entity": "acme/c"})["runs"], "a path that only begins alike does not"


def test_a_box_learns_nothing_of_the_fleet(book: Client) -> None:
    """What every run of everybody came to would be readable from any box."""
    assert isinstance(book.transport, LocalTransport)
    boxed = Client(LocalTransport(book.transport.service, box_caller("b1", identity="ann")), agent="b")
    with pytest.raises(HerdbookError) as refused:
        boxed.call("prove", {"entity": ENTITY})
    assert "forbidden" == refused.value.code


def lived(book: Client, count: int) -> None:
    """Runs in which one entry helps and another misleads."""
    book.write(ENTITY, "tz", "UTC", why="dates are compared at midnight")
    book.write(ENTITY, "pool", 50, why="sessions are capped")
    for number in range(count):
        run = another(book)
        run.brief(ENTITY, task="make it pass")
        good = number % 3 > 0
        used = [{"entity": ENTITY, "key": "tz" if good else "pool"}]
        if not good:
            run.attempt("failure", used)
        run.commit_outcome(f"o-{number}", "success" if good else "failure", used=used)
        run.attest(f"o-{number}", exit_code=0 if good else 1)


def test_a_ranker_is_fitted_kept_promoted_and_taken_back(book: Client) -> None:
    """A ranker could not be tried without being trusted, or not be got rid of again."""
    lived(book, 40)
    fitted = book.call("retrain", {"entity": ENTITY, "method": "logistic", "weight": 0.6})
    assert fitted["ranker"], fitted["says"]
    [kept] = book.call("rankers", {"shadow": True})["rankers"]
    assert (fitted["ranker"], [], None) == (kept["ranker"], kept["ranks_at"], kept["refused"])
    assert 0 == kept["shadow"]["runs"], "nothing has been shown since it was made"
    promoted = book.call("promote", {"ranker": fitted["ranker"], "entity": ENTITY, "why": "tried"})
    assert {"ranker": fitted["ranker"], "ranker_weight": 0.6} == promoted["set"]
    assert [ENTITY] == book.call("rankers", {})["rankers"][0]["ranks_at"]
    run = another(book)
    run.brief(ENTITY, task="make it pass")
    run.commit_outcome("later", "success", used=["tz"])
    [last] = [each for each in book.call("exposures", {"entity": ENTITY})["runs"] if each["outcome"]["ref"] == "later"]
    assert fitted["ranker"] in last["servings"][0]["policy"], "the briefing says which ranker had a word"
    assert 1 == book.call("rankers", {"shadow": True})["rankers"][0]["shadow"]["runs"]
    back = book.call("rollback", {"what": "ranker", "entity": ENTITY})
    assert {"ranker": None, "ranker_weight": None} == back["set"]
    assert [] == book.call("rankers", {})["rankers"][0]["ranks_at"]


def test_the_same_runs_give_the_same_ranker(book: Client) -> None:
    """Nobody could check what a ranker was made of by making it again."""
    lived(book, 40)
    ids = {book.call("retrain", {"method": "logistic", "weight": 0.3})["ranker"] for _ in range(2)}
    assert 1 == len(ids)


def test_a_path_with_few_runs_learns_from_all(book: Client) -> None:
    """A new entity would have no ranker until it had twenty samples of its own, or one fitted to three runs."""
    lived(book, 40)
    fitted = book.call("retrain", {"entity": "acme/new", "method": "logistic"})
    assert fitted["entity"] is None
    assert fitted["says"][0].startswith("There is too little at acme/new")


def test_a_ranker_that_was_changed_is_not_promoted(book: Client, tmp_path: Path) -> None:
    """Whoever can write the file could decide what every agent reads first."""
    import sqlite3

    lived(book, 40)
    name = book.call("retrain", {"method": "logistic", "weight": 0.3})["ranker"]
    with sqlite3.connect(tmp_path / "record.db") as raw:
        raw.execute("DROP TRIGGER ranker_is_immutable_v1")
        raw.execute("UPDATE ranker SET artefact = replace(artefact, '\"bias\":', '\"bias\":1')")
    assert book.call("rankers", {})["rankers"][0]["refused"] is not None
    with pytest.raises(HerdbookError) as refused:
        book.call("promote", {"ranker": name})
    assert "seal_broken" == refused.value.code


def test_calibration_reports_and_sets_only_what_may_act(book: Client) -> None:
    """A few runs would change what every outcome does to trust."""
    lived(book, 12)
    told = book.call("calibrate", {"entity": ENTITY, "promote": True})
    assert (12, False, {}) == (told["runs"], told["promoted"], told["values"])
    assert 0 < sum(each["count"] for each in told["reliability"]["bins"])
    assert told["reliability"]["svg"].startswith("<svg")
    with pytest.raises(HerdbookError) as refused:
        book.call("rollback", {"what": "calibration", "entity": ENTITY})
    assert "invalid_request" == refused.value.code


def test_a_ranker_that_is_not_there_is_not_put_in_force(book: Client) -> None:
    """A misspelt id would be taken, and every briefing from then on would say that its ranker is missing."""
    for act, fields in (("tune", {"values": {"ranker": "zzz"}}), ("promote", {"ranker": "zzz"})):
        with pytest.raises(HerdbookError, match="there is no ranker 'zzz'") as refused:
            book.call(act, {"entity": ENTITY, **fields})
        assert "not_found" == refused.value.code
    assert {"ranker": "none"} == book.call("tune", {"entity": ENTITY, "values": {"ranker": "none"}})["set"]


def test_what_calibration_promotes_is_in_force_and_can_be_taken_back(book: Client) -> None:
    """A half-life that was learnt would be reported, called promoted, and never fade anything."""
    keys = [f"port-{number}" for number in range(half_life.ACT_MIN)]
    for number, key in enumerate(keys):
        book.write(ENTITY, key, 8000 + number, why=f"service {number} says so in its log")
    for kind in ("success", "failure", "failure"):
        run = another(book)
        run.brief(ENTITY)
        run.commit_outcome(kind, used=keys)
    offered = book.call("calibrate", {"entity": ENTITY})
    assert (False, half_life.ACT_MIN) == (offered["promoted"], offered["half_life"]["events"])
    days = offered["values"]["half_life_days"]
    assert 7.5 == days, "nothing was true for longer than this test runs, and a quarter of the default is the least that acts"
    assert f"Promotion sets half_life_days={days:g}." == offered["says"][-1]

    def in_force() -> float:
        return next(
            each["value"] for each in book.call("tuning", {"entity": ENTITY})["tuning"] if "half_life_days" == each["name"]
        )

    assert 30.0 == in_force()
    assert book.call("calibrate", {"entity": ENTITY, "promote": True})["promoted"]
    assert days == in_force()
    book.call("rollback", {"what": "calibration", "entity": ENTITY})
    assert 30.0 == in_force()


def test_taking_back_goes_further_back_each_time(book: Client) -> None:
    """The second rollback would bring back what the first had taken away."""
    for days in (60.0, 30.0, 10.0):
        book.call("tune", {"entity": ENTITY, "values": {"half_life_days": days}})
    back = [book.call("rollback", {"what": "calibration", "entity": ENTITY})["set"]["half_life_days"] for _ in range(2)]
    book.call("tune", {"entity": ENTITY, "values": {"half_life_days": 20}})
    back += [book.call("rollback", {"what": "calibration", "entity": ENTITY})["set"]["half_life_days"] for _ in range(2)]
    assert [30.0, 60.0, 60.0, None] == back
    with pytest.raises(HerdbookError) as refused:
        book.call("rollback", {"what": "calibration", "entity": ENTITY})
    assert "taken back" in refused.value.message


def test_calibration_is_taken_back_in_one_step(book: Client) -> None:
    """A wrong number, once set, would have to be remembered to be undone."""
    book.call("tune", {"entity": ENTITY, "values": {"half_life_days": 60}})
    book.call("tune", {"entity": ENTITY, "values": {"half_life_days": 10, "multiplier_failure": 0.8}})
    back = book.call("rollback", {"what": "calibration", "entity": ENTITY})
    assert {"half_life_days": 60.0, "multiplier_failure": None} == back["set"]
