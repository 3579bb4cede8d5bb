"""The cost of a build falls: builds in fresh, isolated boxes, with and without a record."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.docs import pages

FOLDER = pages.ROOT / "examples" / "ci-quirks"
pytestmark = [pytest.mark.isolation, pytest.mark.timeout(900)]


def costs(*arguments: str) -> tuple[list[tuple[int, int, int]], str]:
    """(build, runs without a record, runs with one) as they are drawn, and what was printed."""
    command = [sys.executable, str(FOLDER / "ten_builds.py"), "--provider", "bubblewrap", *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=850)
    assert (0, "") == (answer.returncode, answer.stderr)
    rows = [tuple(map(int, row)) for row in re.findall(r"^ +(\d+) +(\d+) #+ +(\d+) #+$", answer.stdout, re.MULTILINE)]
    return [(build, without, within) for build, without, within in rows], answer.stdout


@pytest.mark.slow
def test_the_first_build_learns_and_the_second_passes_at_once_in_a_clean_box() -> None:
    """A box that nobody has used would pay again for what another one has found out."""
    assert [(1, 5, 5), (2, 5, 1)] == costs("--builds", "2")[0]


@pytest.mark.long
def test_the_cost_of_a_build_falls() -> None:
    """The tenth box would pay again for what the first has found out, which is the whole point."""
    found, said = costs()
    fresh = {1: 5, 4: 7, 7: 9}  # a build that brings something new costs the search for it; the others run once
    assert [(build, fresh.get(build, 1)) for build in range(1, 11)] == [(build, cost) for build, _, cost in found]
    assert said.split() == shown().split()


def shown() -> str:
    return (FOLDER / "README.md").read_text(encoding="utf-8").partition("```text\n")[2].partition("```")[0]
