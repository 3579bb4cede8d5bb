"""A process that ends while its model is being loaded, or at work behind an answer, ends as any other does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ENDED_SOON = """
import sys, time
from herdbook.base.settings import load
from herdbook.service.learning.embedding import warm
from herdbook.service.opening import open_service
service = open_service(load())
warm(service)
time.sleep(float(sys.argv[1]))
service.close()
"""


@pytest.mark.slow
@pytest.mark.parametrize("seconds", ["0.1", "0.3", "0.5"])
def test_a_process_that_ends_while_its_model_loads_is_not_aborted(tmp_path: Path, seconds: str) -> None:
    """`herdbook serve`, stopped a moment after it began, would end with signal 6 and a word of the C++ runtime."""
    environment = os.environ | {"HERDBOOK_HOME": str(tmp_path), "HERDBOOK_EMBED": "auto"}
    ended = subprocess.run(
        [sys.executable, "-c", ENDED_SOON, seconds], env=environment, capture_output=True, text=True, check=False
    )
    assert (0, "") == (ended.returncode, ended.stderr)


NEVER_CLOSED = """
import sys, herdbook
book = herdbook.open(sys.argv[1] + "/record.db")
for number in range(60):
    book.write("acme/ci", f"key-{number}", "words about the thing " * 20, why="so")
left_out = book.brief("acme/ci", task="a question")["ranking"]["left_out"]
assert "44 of 60" in left_out["semantic"], left_out
"""


@pytest.mark.slow
def test_a_process_that_ends_while_its_model_is_at_work_is_not_aborted(tmp_path: Path) -> None:
    """A script that closes nothing would end with signal 6, one time in three, after all it did went well."""
    environment = os.environ | {"HERDBOOK_HOME": str(tmp_path), "HERDBOOK_EMBED": "auto"}
    ended = subprocess.run(
        [sys.executable, "-c", NEVER_CLOSED, str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert (0, "") == (ended.returncode, ended.stderr)
