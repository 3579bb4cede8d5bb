"""What the documentation shows is run as it stands, and has to do what the page says.

A `console` block that begins as one of BEGINS is run line by line, all blocks of a page in one empty home, in order; what a line
exports holds for the rest of the page. Where output is shown it has to match, `...` standing for anything; `# exits 4` behind a
command says that it is to be refused. A `python` block is run as a program of its own. A block that cannot be run says why:
`<!-- not run: reason -->` in the line above it.
"""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs import pages

EXITS = re.compile(r"\s+# exits (\d+)$")
LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NOT_RUN_MAX = 6
BEGINS = ("$ herdbook", "$ export HERDBOOK_", "$ sqlite3 ", '$ rm -r "$HERDBOOK_HOME"')
Environment = dict[str, str]


def is_console(block: pages.Block) -> bool:
    return block.language == "console" and block.body.startswith(BEGINS) and block.is_run


def pages_to_run() -> Iterator[object]:
    """Pages with something to run; one that makes boxes, or needs the sqlite3 program, only where there is such a thing."""
    for page in pages.pages():
        shown = "".join(block.body for block in pages.blocks(page) if block.language in ("console", "python"))
        marks = [pytest.mark.isolation] if "herdbook.boxes" in shown else []
        if "$ sqlite3 " in shown:
            marks.append(pytest.mark.skipif(shutil.which("sqlite3") is None, reason="there is no sqlite3 program here"))
        if shown:
            yield pytest.param(page, marks=marks, id=page.relative_to(pages.ROOT).as_posix())


def steps(body: str) -> Iterator[tuple[str, int, str]]:
    """(command, exit code, expected output) of each `$ ` line; a backslash at its end continues it."""
    for step in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        lines = step.splitlines()
        length = next(number for number, line in enumerate(lines, 1) if not line.endswith("\\"))
        command = "\n".join(lines[:length])
        exits = EXITS.search(command)
        yield EXITS.sub("", command), int(exits[1]) if exits else 0, "\n".join(lines[length:]).strip()


def reader(home: Path) -> Environment:
    """The environment of somebody who has just opened a terminal."""
    plain = {**os.environ, "HOME": str(home), "NO_COLOR": "1", "COLUMNS": "110", "TERM": "dumb", "LC_ALL": "C.UTF-8"}
    plain.pop("XDG_DATA_HOME", None)
    return plain


def run(arguments: list[str], home: Path, environment: Environment) -> tuple[int, str]:
    answer = subprocess.run(
        arguments,
        cwd=home,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=100,
        check=False,
    )
    return answer.returncode, answer.stdout.decode()


def typed(command: str, home: Path, environment: Environment) -> tuple[int, str]:
    """One line in the reader's shell; what it exports or unsets goes into `environment`."""
    left = home / ".environment"
    code, output = run(["bash", "-c", f"trap 'env -0 > {left}' EXIT\n{command}"], home, environment)
    variables = (pair.partition("=") for pair in left.read_text(encoding="utf-8").split("\0") if pair)
    environment.clear()
    environment.update({name: value for name, _, value in variables})
    return code, output


def run_console(block: pages.Block, home: Path, environment: Environment) -> None:
    for command, expected_code, expected in steps(block.body):
        code, output = typed(command, home, environment)
        assert expected_code == code, f"{block.name}: $ {command}\n{output}"
        if expected:
            matches = doctest.OutputChecker().check_output(expected + "\n", output, LOOSE)
            assert matches, f"{block.name}: $ {command}\nexpected:\n{expected}\n\ngot:\n{output}"


def run_page(page: Path, home: Path) -> None:
    environment = reader(home)
    for block in pages.blocks(page):
        if is_console(block):
            run_console(block, home, environment)
        elif block.language == "python" and block.is_run:
            code, output = run([sys.executable, "-W", "error", "-c", block.body], home, environment)
            assert 0 == code, f"{block.name}:\n{output}"


@pytest.mark.slow
@pytest.mark.parametrize("page", [*pages_to_run()])
def test_what_a_page_shows_is_so(page: Path, tmp_path: Path) -> None:
    """A reader who types what the page says would see something else."""
    run_page(page, tmp_path)


@pytest.mark.slow
@pytest.mark.isolation
def test_the_tutorial_goes_on_from_the_demo(tmp_path: Path) -> None:
    """Who ran the demo first, as the page proposes, has a record already and would see something else."""
    code, output = run([sys.executable, "-m", "herdbook", "demo"], tmp_path, reader(tmp_path))
    assert 0 == code, output
    run_page(pages.ROOT / "docs/tutorial/first-steps.md", tmp_path)


def test_few_blocks_are_not_run() -> None:
    """Examples that are excused one by one would end up excused altogether."""
    shown = [block for page in pages.pages() for block in pages.blocks(page) if block.language in ("console", "python")]
    skipped = [block.name for block in shown if not block.is_run or (block.language == "console" and not is_console(block))]
    assert NOT_RUN_MAX >= len(skipped), skipped


def test_steps_are_read_as_written() -> None:
    """The examples would be run otherwise than a reader would type them."""
    body = "$ herdbook write a b 1 \\\n    --why x\nwritten\n$ herdbook read a c  # exits 4\n"
    assert [("herdbook write a b 1 \\\n    --why x", 0, "written"), ("herdbook read a c", 4, "")] == list(steps(body))


def test_what_is_exported_holds_for_the_page(tmp_path: Path) -> None:
    """A page that works in a throwaway home would be run in the reader's own."""
    environment = reader(tmp_path)
    assert (3, "") == typed("export HERDBOOK_HOME=/nowhere; exit 3", tmp_path, environment)
    assert (0, "/nowhere\n") == typed('echo "$HERDBOOK_HOME"', tmp_path, environment)
    assert (0, "") == typed("unset HERDBOOK_HOME", tmp_path, environment)
    assert "HERDBOOK_HOME" not in environment
