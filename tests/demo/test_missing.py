"""What is inherited has to be there: where it is not, the second agent fails loudly, and never searches again."""

from __future__ import annotations

from pathlib import Path

import pytest

from herdbook.client import Client
from herdbook.surfaces.demo.acts import Failed
from herdbook.surfaces.demo.events import Committed
from herdbook.surfaces.demo.stage import Turn
from tests.demo.wiring import play, stage

pytestmark = pytest.mark.slow

PATH = "acme/checkout"
STOPPED = 3  # neither a green nor a red suite


def assert_stopped(turn: Turn, *, missing: str, because: str) -> None:
    assert STOPPED == turn.exit_code
    assert [] == turn.runs
    assert [] == turn.all(Committed)
    assert f"{missing} is missing ({because})" in turn.problem
    assert "The suite was not run" in turn.problem


def test_a_removed_key_is_named(tmp_path: Path) -> None:
    """The second agent would find the lost setting by trying, and make a broken record look whole."""
    with stage(tmp_path) as on:
        acts = play(on, PATH)
        a, b = acts.enter("a"), acts.enter("b")
        acts.turn(2, a, "search")
        kept = on.book.read(PATH, "rounding-mode")
        writer = Client(on.book.transport, agent="agent-a", spool="")
        writer.write("acme-without", "rounding-mode", kept["value"], why=kept["why"])
        on.book.attest(writer.commit_outcome("success", task_input="copy all but one entry")["ref"], exit_code=0)
        turn = on.act(3, b, "inherit", "acme-without", on_event=acts.say.event)
        assert_stopped(turn, missing="retry-budget", because="nobody has written it")
        assert "rounding-mode is missing" not in turn.problem


def test_what_nobody_vouches_for_is_no_key(tmp_path: Path) -> None:
    """An agent would act on a guess that no outcome stands behind."""
    with stage(tmp_path) as on:
        acts = play(on, PATH)
        a, b = acts.enter("a"), acts.enter("b")
        found = acts.turn(2, a, "search")
        on.book.revise_outcome(found.all(Committed)[0].ref, "failure", why="the wrong branch was checked out")
        with pytest.raises(Failed, match="retry-budget is missing") as failed:
            acts.once(3, b)
        assert 3 == failed.value.number
        assert_stopped(acts.played.turns[-1], missing="rounding-mode", because="unproven")


def test_an_outage_is_no_ignorance(tmp_path: Path) -> None:
    """A box that cannot reach the record would be told that nothing is known, and search."""
    with stage(tmp_path) as on:
        acts = play(on, PATH)
        a = acts.enter("a")
        on.host._held[a.box.id].close_socket()
        turn = on.act(1, a, "search", PATH, on_event=acts.say.event)
        assert (STOPPED, []) == (turn.exit_code, turn.runs)
        assert "cannot be reached" in turn.problem
