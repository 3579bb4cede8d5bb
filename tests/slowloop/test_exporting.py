"""The verb `export_training_data`: a bounded look at the set that `herdbook export training` writes."""

from __future__ import annotations

import pytest

from herdbook.base import limits
from herdbook.base.errors import InvalidRequest
from tests.slowloop.conftest import Fleet

LOOK, GOOD = ("look", {"path": "tests"}), ("set_env", {"TZ": "UTC"})


def test_rows_are_given_up_to_the_limit_and_the_rest_is_counted(fleet: Fleet) -> None:
    """Whoever looked at ten rows would think that there are ten."""
    for number in range(5):
        fleet.run(f"won-{number}", LOOK, GOOD, task=f"make {chr(97 + number)} pass")
    fleet.run("lost", LOOK, kind="failure")
    answer = fleet.desk.do("export_training_data", entity="acme", limit=2)
    assert (2, 8, 6) == (len(answer["rows"]), answer["rows_left_out"], answer["runs"])
    assert {"not_a_success": {"runs": 1, "named": ["lost"]}} == answer["left_out"]
    assert "make a pass" in str(answer["rows"][0])
    assert 0 == fleet.desk.do("export_training_data", entity="other")["runs"]


def test_an_answer_stays_small_and_more_runs_than_are_read_are_said(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """One call could fill an agent's context, or read a record of a million runs to its end."""
    for number in range(4):
        fleet.run(f"won-{number}", LOOK, ("say", {"text": "word " * 200}), task=f"make {chr(97 + number)} pass")
    monkeypatch.setattr(limits, "EXPORTED_ANSWER_BYTES_MAX", 2_000)
    monkeypatch.setattr("herdbook.slowloop.export.collect.PAGE_RUNS", 2)
    monkeypatch.setattr(limits, "LEARNT_RUNS_MAX", 2)
    answer = fleet.desk.do("export_training_data")
    assert (1, 3) == (len(answer["rows"]), answer["rows_left_out"])
    assert (2, True) == (answer["runs"], answer["more_runs_left_out"])


def test_secrets_are_blotted_out_and_counted(fleet: Fleet) -> None:
    """A key in an action's arguments would be taught, and shown to whoever asked."""
    token = "ghp_" + "a1B2c3D4" * 4 + "e5F6"
    fleet.run("won", ("bash", {"command": f"push --token {token}"}))
    answer = fleet.desk.do("export_training_data")
    assert token not in str(answer)
    assert answer["scrubbed"]


def test_an_unknown_kind_is_refused(fleet: Fleet) -> None:
    """A misspelt kind would give rows of another."""
    with pytest.raises(InvalidRequest):
        fleet.desk.do("export_training_data", kind="ppo")
