"""What the help shows can be typed: in order, in an empty home."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
from pathlib import Path

import pytest

from herdbook import __main__ as command

pytestmark = pytest.mark.slow

# Examples that are shown and not run here, each with the reason.
NOT_RUN = {
    "backup": "it copies to a folder that is there already; docs/how-to/back-up.md is run as it stands",
    "restore": "it puts back what backup has copied; docs/how-to/back-up.md is run as it stands",
    "db": "it needs a PostgreSQL server; tests/postgres runs it",
    "embed": "it needs an embedder, and the tests run without one; tests/embedding runs it",
    "fanout": "it needs a folder of files and variants; tests/boxes and tests/cli run it",
    "gateway": "it needs a file with a secret, and its last line runs until it is stopped; tests/gateway runs it",
    "demo": "it takes seconds and a machine that can isolate boxes; tests/demo runs it",
    "mcp": "it speaks until its standard input ends, and one line is for another program; tests/mcp runs it",
    "serve": "it runs until it is stopped; tests/rest runs it",
    "run": "it runs pytest, which finds no tests in an empty home; tests/cli/test_run.py runs it",
    "doctor": "it exits with 1 where no box can be isolated, and one line needs jq",
}


def commands(text: str, prompt: str) -> list[str]:
    """The command lines of a text, in order; a backslash at a line's end continues it."""
    return re.findall(rf"^ +{re.escape(prompt)}((?:[^\n]*\\\n)*[^\n]*)", text, re.MULTILINE)


def typed(lines: list[str], home: Path) -> list[str]:
    """Type them one after the other; what each one said. The first that fails ends the test."""
    environment = {**os.environ, "HOME": str(home), "LC_ALL": "C.UTF-8", "COLUMNS": "110"}
    environment.pop("XDG_DATA_HOME", None)
    said = []
    for line in lines:
        answer = subprocess.run(
            ["bash", "-c", line], env=environment, cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
        )
        assert 0 == answer.returncode, f"{line}\n{answer.stdout}{answer.stderr}"
        said.append(answer.stdout)
    return said


def examples(name: str) -> str:
    chosen = command.COMMANDS[name]
    return str(getattr(importlib.import_module(chosen.module), "EXAMPLES", chosen.examples))


def test_the_loop_can_be_pasted(said, tmp_path) -> None:
    """The first thing a newcomer types would be refused."""
    shown = said("--help").out.split("the loop, in five lines:\n")[1].split("\n\n")[0]
    lines = ["herdbook" + rest for rest in commands(shown, "herdbook")]
    assert 5 == len(lines)
    answers = typed(lines, tmp_path)
    assert "tz" in answers[1]
    assert "0.500 → 0.515" in answers[3]
    assert "trainable" in answers[3]
    assert "failed attempt, charged" in answers[4]


@pytest.mark.parametrize("name", [name for name in command.COMMANDS if name not in NOT_RUN])
def test_the_examples_of_a_command_can_be_typed(name, tmp_path) -> None:
    """An example would name a run or an entry that is not there, and be refused."""
    lines = commands(examples(name), "$ ")
    assert lines
    assert any(line.split("|")[-1].strip().startswith(f"herdbook {name}") for line in lines)
    answers = typed(lines, tmp_path)
    assert any(answers)


def test_only_the_named_ones_are_not_run() -> None:
    """An example would be excused that could be run, or one that is gone."""
    assert [] == [name for name in NOT_RUN if not commands(examples(name), "$ ")]


@pytest.mark.parametrize("name", command.COMMANDS)
def test_what_stands_behind_an_example_is_a_comment(name) -> None:
    """Whoever pastes the line would hand the explanation over as arguments."""
    apart = [line for line in commands(examples(name), "$ ") if re.search(r"\S {2,}(?!\s*[#-])\S", line.replace("\\\n", ""))]
    assert [] == apart
