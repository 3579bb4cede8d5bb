"""What the documentation shows is run as it stands, and has to do what the page says.

A `console` block that begins with `$ herdbook` is run line by line, all blocks of a page in one empty home, in order. Where
output is shown it has to match, `...` standing for anything; `# exits 4` behind a command says that it is to be refused. A
`python` block is run as a program of its own. A block that cannot be run says why: `<!-- not run: reason -->` in the line above
it.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs import pages

EXITS = re.compile(r"\s+# exits (\d+)$")
LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NOT_RUN_MAX = 6
PAGES = [page for page in pages.pages() if any(block.language in ("console", "python") for block in pages.blocks(page))]


def is_console(block: pages.Block) -> bool:
    return block.language == "console" and block.body.startswith("$ herdbook") and block.is_run


def steps(body: str) -> Iterator[tuple[str, int, str]]:
    """(command, exit code, expected output) of each `$ ` line; a backslash at its end continues it."""
    for step in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        lines = step.splitlines()
        length = next(number for number, line in enumerate(lines, 1) if not line.endswith("\\"))
        command = "\n".join(lines[:length])
        exits = EXITS.search(command)
        yield EXITS.sub("", command), int(exits[1]) if exits else 0, "\n".join(lines[length:]).strip()


def run(arguments: list[str], home: Path) -> tuple[int, str]:
    plain = {**os.environ, "HOME": str(home), "NO_COLOR": "1", "COLUMNS": "110", "TERM": "dumb", "LC_ALL": "C.UTF-8"}
    plain.pop("XDG_DATA_HOME", None)
    answer = subprocess.run(
        arguments,
        cwd=home,
        env=plain,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=100,
        check=False,
    )
    return answer.returncode, answer.stdout.decode()


def run_console(block: pages.Block, home: Path) -> None:
    for command, expected_code, expected in steps(block.body):
        code, output = run(["bash", "-c", command], home)
        assert expected_code == code, f"{block.name}: $ {command}\n{output}"
        if expected:
            matches = doctest.OutputChecker().check_output(expected + "\n", output, LOOSE)
            assert matches, f"{block.name}: $ {command}\nexpected:\n{expected}\n\ngot:\n{output}"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(pages.ROOT).as_posix())
def test_what_a_page_shows_is_so(page: Path, tmp_path: Path) -> None:
    """A reader who types what the page says would see something else."""
    for block in pages.blocks(page):
        if is_console(block):
            run_console(block, tmp_path)
        elif block.language == "python" and block.is_run:
            code, output = run([sys.executable, "-W", "error", "-c", block.body], tmp_path)
            assert 0 == code, f"{block.name}:\n{output}"


def test_few_blocks_are_not_run() -> None:
    """Examples that are excused one by one would end up excused altogether."""
    shown = [block for page in pages.pages() for block in pages.blocks(page) if block.language in ("console", "python")]
    skipped = [block.name for block in shown if not block.is_run or (block.language == "console" and not is_console(block))]
    assert NOT_RUN_MAX >= len(skipped), skipped


def test_steps_are_read_as_written() -> None:
    """The examples would be run otherwise than a reader would type them."""
    body = "$ herdbook write a b 1 \\\n    --why x\nwritten\n$ herdbook read a c  # exits 4\n"
    assert [("herdbook write a b 1 \\\n    --why x", 0, "written"), ("herdbook read a c", 4, "")] == list(steps(body))
