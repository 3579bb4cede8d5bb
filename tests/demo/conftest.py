"""One run of the demo, watched by many tests; and copies of its suite to change."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.demo import wiring


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the run of `told` keeps its record."""
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="session")
def told(home: Path) -> wiring.Told:
    """The demo as it ships, in isolated boxes."""
    return wiring.demo(home, "--provider", "bubblewrap", "--json")


@pytest.fixture
def suite(tmp_path: Path) -> Callable[..., Path]:
    """A copy of the suite with some of its numbers changed."""

    def changed(**numbers: int) -> Path:
        copy = tmp_path / "suite"
        shutil.copytree(wiring.SUITE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        left = set(numbers)
        for path in copy.glob("*.py"):
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            for at, line in enumerate(lines):
                name = line.split(" =")[0]
                if name in numbers:
                    lines[at] = f"{name} = {numbers[name]}\n"
                    left.discard(name)
            path.write_text("".join(lines), encoding="utf-8")
        assert set() == left
        return copy

    return changed
