"""The numbers are measured: another suite, and the acts follow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from herdbook.base.errors import InvalidRequest
from tests.demo.wiring import UNSAFE, Told, demo, wired

pytestmark = pytest.mark.slow

Suite = Callable[..., Path]

MODE_ONLY = """
import os, unittest
class T(unittest.TestCase):
    def test_mode(self):
        self.assertEqual("half_even", os.environ["ROUNDING_MODE"])
"""


def played(tmp_path: Path, suite: Path) -> Told:
    return demo(tmp_path / "home", "--provider", UNSAFE, "--suite", str(suite), "--json")


def budgets(act: dict[str, Any]) -> list[str]:
    return [run["settings"]["RETRY_BUDGET"] for run in act["runs"]]


def test_another_rounding_rule(tmp_path: Path, suite: Suite) -> None:
    """The demo would print the attempts it expects instead of those it made."""
    told = played(tmp_path, suite(EXPECTED_TOTAL_CENTS=5279))
    assert (0, 2, 1) == (told.code, told.json["attempts_cold"], told.json["attempts_inherited"])
    (second,) = told.acts(2)
    found = {one["key"]: one for one in second["wrote"]}
    assert {"ROUNDING_MODE": "half_up"} == found["rounding-mode"]["value"]["env"]
    assert "nothing else was compared" in found["rounding-mode"]["why"]  # it was the first value tried
    assert ["3", "4", "5"] == budgets(told.acts(4)[0])
    assert [{"ROUNDING_MODE": "half_up", "RETRY_BUDGET": "5"}] * 2 == [act["runs"][0]["settings"] for act in told.acts(6)]


def test_another_budget(tmp_path: Path, suite: Suite) -> None:
    """The values would be the demo's instead of the suite's."""
    told = played(tmp_path, suite(TURNED_AWAY_AT_REST=4, TURNED_AWAY_UNDER_LOAD=7))
    assert (0, 6, 1) == (told.code, told.json["attempts_cold"], told.json["attempts_inherited"])
    assert ["5"] == budgets(told.acts(3)[0])
    assert ["5", "6", "7", "8"] == budgets(told.acts(4)[0])
    assert ["5", "8"] == [one["value"]["env"]["RETRY_BUDGET"] for one in told.json["history"]]
    assert "a budget of 5 by agent-a" in told.json["history"][1]["why"]
    assert "still fails with 5, 6 or 7, and 8 is the least that passes" in told.json["history"][1]["why"]


def test_no_harder_under_load(tmp_path: Path, suite: Suite) -> None:
    """A version would be written although nothing was found out."""
    told = played(tmp_path, suite(TURNED_AWAY_UNDER_LOAD=2))
    assert (0, 5) == (told.code, told.json["attempts_cold"])
    (fourth,) = told.acts(4)
    assert (["3"], []) == (budgets(fourth), fourth["wrote"])
    assert [1] == [one["version"] for one in told.json["history"]]


def test_a_suite_that_never_gets_green(tmp_path: Path, suite: Suite) -> None:
    """A failure would be told as a success, or written down as a finding."""
    told = played(tmp_path, suite(TURNED_AWAY_AT_REST=99))
    assert (1, 2, 6) == (told.code, told.json["failed"]["act"], told.json["attempts_cold"])
    assert "still red after 6 runs (test_charge_settles)" in told.json["failed"]["message"]
    (second,) = told.acts(2)
    assert ([], "failure", 1) == (second["wrote"], second["outcome"]["type"], second["exit_code"])
    assert ("failure", 1) == (second["attested"]["result"], second["attested"]["exit_code"])
    assert {True} == {box["destroyed"] for box in told.json["boxes"]}


def test_a_suite_that_finds_no_budget_under_load(tmp_path: Path, suite: Suite) -> None:
    """The search under load would never end, or supersede what holds with what does not."""
    told = played(tmp_path, suite(TURNED_AWAY_UNDER_LOAD=99))
    assert (1, 4) == (told.code, told.json["failed"]["act"])
    (fourth,) = told.acts(4)
    assert ([], "failure") == (fourth["wrote"], fourth["attested"]["result"])


def test_somebodys_own_suite(tmp_path: Path) -> None:
    """Only our own project could be tried: a plain directory of tests, which is no package, has to do."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "test_mode.py").write_text(MODE_ONLY)
    told = played(tmp_path, own)
    assert (0, 4, 1) == (told.code, told.json["attempts_cold"], told.json["attempts_inherited"])
    assert ["test_mode"] == told.acts(2)[0]["runs"][0]["failing"]


def test_a_directory_without_tests_is_refused(tmp_path: Path) -> None:
    """Boxes would be made for nothing, and the mistake told as a red suite."""
    with pytest.raises(InvalidRequest, match=r"test\*\.py"):
        demo(tmp_path / "home", "--provider", UNSAFE, "--suite", str(tmp_path))
    with wired(tmp_path / "home") as wiring:
        assert not Path(str(wiring.settings.record)).exists()
