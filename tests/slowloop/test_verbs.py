"""The slow loop's verbs, on a real record through the client."""

from __future__ import annotations

from pathlib import Path

import pytest

import herdbook
from herdbook.client import Client, HerdbookError
from herdbook.service.callers import box_caller
from herdbook.service.local import LocalTransport

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
