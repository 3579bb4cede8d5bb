"""The demo as it ships: what each act has to show, in boxes that are isolated."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from herdbook.boxes.providers import by_name
from herdbook.surfaces.demo.command import FLOAT_DIGITS
from tests.demo.wiring import Told, wired

pytestmark = [pytest.mark.isolation, pytest.mark.slow]

TAX, CHARGE = "test_total_includes_tax", "test_charge_settles"


def tried(act: dict[str, Any]) -> list[tuple[str, str, bool]]:
    return [(run["settings"]["ROUNDING_MODE"], run["settings"]["RETRY_BUDGET"], run["passed"]) for run in act["runs"]]


def test_it_ends_well_and_soon(told: Told) -> None:
    """The demo would fail, or outlast the patience of who watches it."""
    assert (0, None) == (told.code, told.json["failed"])
    assert 0 < told.json["seconds"] < 60


def test_act_1_nothing_is_known(told: Told) -> None:
    """A demo that starts warm would prove nothing."""
    assert [("agent-a", []), ("agent-b", [])] == [(act["agent"], act["known"]) for act in told.acts(1)]


def test_act_2_the_first_agent_searches(told: Told) -> None:
    """The cold agent would not run the matrix in order, or not stop where it is green."""
    (act,) = told.acts(2)
    matrix = [("half_up", "1"), ("half_up", "3"), ("half_up", "5"), ("half_even", "1"), ("half_even", "3")]
    assert [(*cell, cell == matrix[-1]) for cell in matrix] == tried(act)
    assert [[CHARGE, TAX], [TAX], [TAX], [CHARGE], []] == [run["failing"] for run in act["runs"]]
    assert 5 == told.json["attempts_cold"]


def test_act_2_writes_what_it_found_with_reasons(told: Told) -> None:
    """What was found would be lost with the box, or be a magic number to who reads it."""
    (act,) = told.acts(2)
    found = {one["key"]: (one["value"]["env"], one["value"]["settles"], one["version"]) for one in act["wrote"]}
    assert {
        "rounding-mode": ({"ROUNDING_MODE": "half_even"}, [TAX], 1),
        "retry-budget": ({"RETRY_BUDGET": "3"}, [CHARGE], 1),
    } == found
    whys = {one["key"]: one["why"] for one in act["wrote"]}
    assert TAX in whys["rounding-mode"]
    assert "half_up" in whys["rounding-mode"]
    assert CHARGE in whys["retry-budget"]
    assert ("success", True) == (act["outcome"]["type"], act["outcome"]["trainable"])


def test_the_hosts_word_gives_standing(told: Told) -> None:
    """Entries would stand because a box says so."""
    (act,) = told.acts(2)
    assert ("success", 0) == (act["attested"]["result"], act["attested"]["exit_code"])
    changes = {change["key"]: (change["before"], change["after"]) for change in act["attested"]["standing"]}
    assert {"rounding-mode": ("unproven", "observed"), "retry-budget": ("unproven", "observed")} == changes


def test_act_3_the_second_agent_needs_one_run(told: Told) -> None:
    """Box two would be no better at its job than box one: the claim of the whole thing."""
    (act,) = told.acts(3)
    assert [("half_even", "3", True)] == tried(act)
    assert 1 == told.json["attempts_inherited"]


def test_act_3_shows_whose_work_it_stands_on(told: Told) -> None:
    """An inherited setting would be nobody's."""
    (first,), (act,) = told.acts(2), told.acts(3)
    seen = {(one["key"], one["author"], one["box"], one["standing"], one["acting"]) for one in act["known"]}
    assert {(key, "agent-a", first["box"], "observed", True) for key in ("rounding-mode", "retry-budget")} == seen
    assert act["box"] != first["box"]
    moves = {move["key"]: (move["before"], move["after"]) for move in act["outcome"]["moved"]}
    assert {key: (0.5, pytest.approx(0.5 * 1.03)) for key in ("rounding-mode", "retry-budget")} == moves


def test_act_4_supersedes_what_does_not_hold_under_load(told: Told) -> None:
    """The second agent could not correct the first, or would do it beside the key instead of in it."""
    (act,) = told.acts(4)
    assert act["load"]
    assert [("half_even", "3", False), ("half_even", "4", False), ("half_even", "5", True)] == tried(act)
    (wrote,) = act["wrote"]
    assert ("retry-budget", 2, 1, {"RETRY_BUDGET": "5"}) == (
        wrote["key"], wrote["version"], wrote["supersedes"], wrote["value"]["env"],
    )  # fmt: skip
    assert "Supersedes version 1, a budget of 3 by agent-a" in wrote["why"]
    assert ("success", 0) == (act["attested"]["result"], act["attested"]["exit_code"])


def test_act_5_the_first_agent_sees_it(told: Told) -> None:
    """What one box learns would not reach the other while both run."""
    (first,), (fourth,), (act,) = told.acts(2), told.acts(4), told.acts(5)
    assert ("agent-a", first["box"], []) == (act["agent"], act["box"], act["runs"])
    known = {one["key"]: (one["version"], one["author"], one["box"], one["acting"]) for one in act["known"]}
    assert (2, "agent-b", fourth["box"], True) == known["retry-budget"]


def test_the_history_has_two_authors_two_boxes_one_key(told: Told) -> None:
    """Superseding would have overwritten, or lost who said what, where, why and when."""
    history = told.json["history"]
    assert [(1, "agent-a", "3"), (2, "agent-b", "5")] == [
        (one["version"], one["agent"], one["value"]["env"]["RETRY_BUDGET"]) for one in history
    ]
    assert 2 == len({one["box"] for one in history})
    assert all(one["why"] for one in history)
    assert all(before["at"] < after["at"] for before, after in pairwise(history))


def test_a_third_box_starts_where_the_others_ended(told: Told) -> None:
    """What was learned would have died with the boxes."""
    at_rest, under_load = told.acts(6)
    assert ([("half_even", "5", True)], False) == (tried(at_rest), at_rest["load"])
    assert ([("half_even", "5", True)], True) == (tried(under_load), under_load["load"])
    assert at_rest["box"] not in {act["box"] for number in range(1, 6) for act in told.acts(number)}


def test_the_boxes_were_isolated_and_are_gone(told: Told, home: Path) -> None:
    """Boxes would be left behind, or never have been any."""
    assert 3 == len({box["id"] for box in told.json["boxes"]})
    assert {("bubblewrap", "namespace", True)} == {
        (box["provider"], box["isolation"], box["destroyed"]) for box in told.json["boxes"]
    }
    with wired(home) as wiring:
        rows = wiring.open_record().box_list(label="herdbook-demo")["boxes"]
        assert {(box["id"], "closed") for box in told.json["boxes"]} == {(row["box"], row["state"]) for row in rows}
        assert [] == list(by_name("bubblewrap", wiring.boxes_dir).list())


def test_what_is_left_is_the_record(told: Told, home: Path) -> None:
    """The numbers would be the demo's own instead of the record's."""
    with wired(home) as wiring:
        book = wiring.open_record()
        versions = book.history(told.json["entity"], "retry-budget")["versions"]
        assert [(one["version"], one["why"]) for one in told.json["history"]] == [
            (one["version"], one["why"]) for one in versions
        ]
        claims = {
            (key, tuple(claim["versions"])): (claim["initial"], round(claim["confidence"], FLOAT_DIGITS))
            for key in ("rounding-mode", "retry-budget")
            for claim in book.why(told.json["entity"], key)["claims"]
        }
        assert {
            (one["entry"], tuple(one["versions"])): (one["before"], one["after"]) for one in told.json["confidence"]
        } == claims


def test_a_run_can_be_put_together_again(told: Told, home: Path) -> None:
    """Nobody could find out what the second agent read before it acted."""
    (act,) = told.acts(3)
    with wired(home) as wiring:
        trace = wiring.open_record().trace(act["outcome"]["ref"])
    assert ("agent-b", act["box"], "namespace") == (trace["agent"], trace["box"], trace["isolation"])
    assert {("retry-budget", 1), ("rounding-mode", 1)} == {(read["key"], read["version"]) for read in trace["reads"]}
    assert (1, 1, True) == (len(trace["actions"]), len(trace["attempts"]), trace["trainable"])


def test_only_what_failed_is_charged(told: Told) -> None:
    """The rounding mode would be blamed for the budget's failures."""
    tallies = {(one["entry"], tuple(one["versions"])): one["failed"] for one in told.json["confidence"]}
    assert {("rounding-mode", (1,)): 0, ("retry-budget", (1,)): 1, ("retry-budget", (2,)): 0} == tallies
