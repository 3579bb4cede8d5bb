"""The project that is pushed into the boxes: what it takes to get it green, at rest and under load."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from herdbook.surfaces.demo.stage import OWN
from tests.demo.wiring import SUITE

TAX, CHARGE = "test_total_includes_tax", "test_charge_settles"
ALL = {TAX, CHARGE, "test_subtotal_adds_up", "test_declined_card_is_asked_once"}


def failing(where: Path, *arguments: str, **settings: str) -> tuple[int, set[str]]:
    """The exit code and the names of failing tests, as an agent sees them."""
    plain = {name: text for name, text in os.environ.items() if name not in ("ROUNDING_MODE", "RETRY_BUDGET", "LOAD")}
    command = [sys.executable, "-B", "-m", *(arguments or ["unittest"])]
    answer = subprocess.run(
        command, cwd=where, env={**plain, **settings}, capture_output=True, text=True, timeout=60, check=False
    )
    assert "Ran 4 tests" in answer.stderr, answer.stderr
    return answer.returncode, {name for name in ALL if f": {name} (" in answer.stderr}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("project")
    shutil.copytree(SUITE, place / "checkout")
    return place


@pytest.mark.parametrize("load", ["0", "1"])
@pytest.mark.parametrize("mode, budget", list(product(["half_up", "half_even"], ["1", "2", "3", "4", "5"])))
def test_each_setting_decides_one_test(project: Path, mode: str, budget: str, load: str) -> None:
    """The matrix would have other green cells than the two settings make, and the demo would search for something else."""
    red = {TAX} if mode == "half_up" else set()
    red |= {CHARGE} if int(budget) < (5 if load == "1" else 3) else set()
    assert (1 if red else 0, red) == failing(project, ROUNDING_MODE=mode, RETRY_BUDGET=budget, LOAD=load)


def test_without_settings_two_tests_cannot_pass(project: Path) -> None:
    """A suite that is green by itself would leave nothing to learn."""
    assert (1, {TAX, CHARGE}) == failing(project)


def test_load_can_be_asked_for_by_flag(project: Path) -> None:
    """`--load` would not load."""
    settings = {"ROUNDING_MODE": "half_even", "RETRY_BUDGET": "4"}
    assert (0, set()) == failing(project, "checkout.test_checkout", **settings)
    assert (1, {CHARGE}) == failing(project, "checkout.test_checkout", "--load", **settings)


@pytest.mark.parametrize("path", [OWN / "agent.py", *SUITE.glob("*.py")], ids=lambda path: path.name)
def test_what_is_pushed_needs_only_an_old_python(path: Path) -> None:
    """A box whose Python is older, or has nothing installed, could not run the demo."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text, feature_version=(3, 8))
    assert "from __future__ import annotations" in text or path.name == "__init__.py"  # `list[int]` is no type there yet
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level]
    assert set() == {name.split(".")[0] for name in names} - sys.stdlib_module_names - {"client", "herdbook"}


def test_the_agent_opens_no_file() -> None:
    """An agent that reads the project would find the numbers instead of learning them."""
    tree = ast.parse((OWN / "agent.py").read_text(encoding="utf-8"))
    called = {ast.unparse(node.func).rpartition(".")[2] for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert set() == called & {"open", "read", "read_text", "read_bytes", "import_module", "__import__", "exec", "eval"}
