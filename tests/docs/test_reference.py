"""Everything that has a name has its place in the reference."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from docs import generate
from herdbook.base import settings
from herdbook.service.verbs import VERBS
from herdbook.surfaces.rest.metrics import Metrics
from tests.docs import pages
from tests.tidy import tree

SOURCES = "\n".join(source.text for source in tree.package())


def test_made_pages_are_current() -> None:
    """The reference would describe an older program than the one it comes with."""
    command = [sys.executable, "docs/generate.py", "--check"]
    answer = subprocess.run(command, cwd=pages.ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert (0, "") == (answer.returncode, answer.stdout), answer.stderr


def test_every_command_has_a_heading() -> None:
    """A command without a heading could not be found or linked to."""
    expected = [f"herdbook {name}" for name in generate.commands()]
    assert [] != expected
    assert expected == [heading for heading in pages.headings(pages.text_of("docs/reference/cli.md")) if heading != "Commands"]


def test_every_command_teaches_with_an_example() -> None:
    """A help text without an example would leave its reader to guess what to type."""
    without = [name for name in generate.commands() if f"herdbook {name}" not in generate.help_of(name).split("\n", 1)[1]]
    assert [] == without


def test_every_verb_has_a_heading() -> None:
    """A verb without a heading could be used only by those who read the code."""
    assert set(VERBS) <= set(pages.headings(pages.text_of("docs/reference/verbs.md")))


def test_every_error_code_has_a_row() -> None:
    """A code without a row would leave a caller with a word and no next step."""
    text = pages.text_of("docs/reference/errors.md")
    assert [] == [code for code in generate.errors() if f"| `{code}` |" not in text]


def test_every_error_says_what_to_do() -> None:
    """An error without a next step would only say that something is wrong."""
    silent = [kind.__name__ for kind in generate.errors().values() if not re.search(r"[:;] .+\.$", generate.message_of(kind))]
    assert [] == silent


def test_every_setting_has_a_row_and_every_row_a_setting() -> None:
    """A setting nobody can look up would be set by accident; a documented one that does nothing would be believed."""
    named = {name for name in re.findall(r"\bHERDBOOK_[A-Z_]+\b", SOURCES) if not name.endswith("_")}
    documented = set(re.findall(r"`(HERDBOOK_[A-Z_]+)`", pages.text_of("docs/reference/settings.md")))
    assert documented == named
    assert {each.env for each in settings.SETTINGS} <= documented


def test_every_metric_has_a_row_and_every_row_a_metric() -> None:
    """A figure nobody explains would be graphed and misread."""
    exposed = set(re.findall(r"^# TYPE (\w+) ", Metrics().text(waiting=0), re.MULTILINE))
    documented = set(re.findall(r"\| `(\w+)` \|", pages.text_of("docs/reference/metrics.md")))
    assert documented == exposed
    assert "herdbook_requests_total" in exposed


@pytest.mark.parametrize("route", ["/healthz", "/readyz", "/metrics", "/openapi.json", "/client.py"])
def test_every_other_route_is_described(route: str) -> None:
    """A route beside the verbs would be known only to those who read the code."""
    assert f"`GET {route}`" in pages.text_of("docs/reference/verbs.md")
