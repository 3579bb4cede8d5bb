"""The cost of a build falls: ten builds in ten fresh boxes, with and without a record."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.docs import pages

FOLDER = pages.ROOT / "examples" / "ci-quirks"


@pytest.mark.slow
def test_the_cost_of_a_build_falls() -> None:
    """The tenth box would pay again for what the first has found out, which is the whole point."""
    answer = subprocess.run([sys.executable, str(FOLDER / "ten_builds.py")], capture_output=True, text=True, timeout=110)
    assert (0, "") == (answer.returncode, answer.stderr)
    rows = [tuple(map(int, row)) for row in re.findall(r"^ +(\d+) +(\d+) #+ +(\d+) #+$", answer.stdout, re.MULTILINE)]
    assert 10 == len(rows)
    fresh = {1: 5, 4: 7, 7: 9}  # a build that brings something new costs the search for it; the others run once
    assert [(build, fresh.get(build, 1)) for build in range(1, 11)] == [(build, cost) for build, _, cost in rows]
    assert answer.stdout.split() == shown().split()


def shown() -> str:
    return (FOLDER / "README.md").read_text(encoding="utf-8").partition("```text\n")[2].partition("```")[0]
