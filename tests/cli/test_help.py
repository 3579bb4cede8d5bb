"""Help that teaches, versions that cost nothing, and a table of commands that leaves no verb out."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from herdbook.__main__ import COMMANDS, WITHOUT_COMMAND
from herdbook.service.verbs import VERBS
from herdbook.surfaces.cli.problems import EXIT_CODES

PROMISED = (
    "init serve run brief write read search history diff outcome"
    " revise trace why ls box doctor demo attest action dead-end status"
)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_teaches_with_an_example(name, said) -> None:
    """A command whose help shows no example would leave its reader to guess what to type."""
    told = said(name, "--help")
    assert (0, "") == (told.code, told.err)
    assert f"herdbook {name}" in told.out.split("example", 1)[1]
    assert ("json" in COMMANDS[name].shared) == ("--json" in told.out)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_wastes_no_terminal(name, said, monkeypatch) -> None:
    """Lines that wrap at the edge of a terminal would make the help unreadable."""
    monkeypatch.setenv("COLUMNS", "110")
    assert [] == [line for line in said(name, "--help").out.splitlines() if len(line) > 130]


def test_every_verb_has_a_command_or_a_reason() -> None:
    """A verb would exist over REST and in Python, and nobody at a terminal could reach it."""
    spoken = {verb for command in COMMANDS.values() for verb in command.verbs}
    assert set(VERBS) == spoken | set(WITHOUT_COMMAND)
    assert set() == spoken & set(WITHOUT_COMMAND)


def test_every_promised_command_is_there() -> None:
    """A command that people were told about would be missing."""
    assert [] == [name for name in PROMISED.split() if name not in COMMANDS]


def test_herdbook_alone_shows_the_way(said) -> None:
    """Whoever types only the name would not learn what to type next."""
    told = said()
    assert (0, "") == (told.code, told.err)
    assert [] == [name for name in COMMANDS if not re.search(rf"^  {name} ", told.out, re.MULTILINE)]
    assert [] == [group for group in ("start here:", "the loop:", "looking back:", "running it:") if group not in told.out]
    assert [] == [code for code in EXIT_CODES if not re.search(rf"^  {code} ", told.out, re.MULTILINE)]
    assert told.out == said("--help").out == said("help").out


def test_help_for_a_command_can_be_asked_either_way(said) -> None:
    """`herdbook help brief` would be refused although everybody tries it."""
    assert said("brief", "--help").out == said("help", "brief").out


def test_a_mistyped_command_is_told_the_nearest(said) -> None:
    """A typing mistake would cost a look into the manual."""
    told = said("breif")
    assert 2 == told.code
    assert "did you mean brief?" in told.err


def test_shared_options_may_stand_before_the_command(door, said) -> None:
    """`herdbook --json brief` would be refused, or take the session's name for a command."""
    door.answers["history"] = {"versions": []}
    assert {"versions": []} == said("--json", "--agent", "history", "history", "a", "k").json


def test_version_says_what_matters(said) -> None:
    """A report about a failure would not say which program, schema, Python and SQLite it happened with."""
    assert re.fullmatch(r"herdbook \d\S+ \(schema \d+, Python 3\.\d+\.\d+, SQLite 3\.\d+\.\d+\)\n", said("--version").out)
    assert {"herdbook", "schema", "python", "sqlite"} == set(said("--version", "--json").json)


@pytest.mark.parametrize("argv", [["--version"], ["--help"], ["brief", "--help"], ["trace", "--help"]])
def test_nothing_heavy_is_loaded_for_help(argv) -> None:
    """Every help and version would pay for a web server it does not start."""
    heavy = "tomllib msgspec starlette uvicorn httptools asyncio ssl logging http.client hypothesis"
    code = f"import sys; from herdbook.__main__ import main; main({argv!r}); print(*set('{heavy}'.split()) & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "" == answer.stdout.splitlines()[-1]


def test_the_loop_is_shown_in_five_lines(said) -> None:
    """The one thing to understand about herdbook would be buried in a list of commands."""
    shown = said("--help").out.split("the loop, in five lines:\n")[1].split("\n\n")[0].splitlines()
    assert 5 == len(shown)
    assert [] == [line for line in shown if not line.startswith("  herdbook ")]
