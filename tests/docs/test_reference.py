"""Everything that has a name has its place in the reference."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from docs import generate
from herdbook import client
from herdbook.base import settings
from herdbook.service import requests
from herdbook.service.opening import open_service
from herdbook.service.verbs import VERBS
from herdbook.surfaces.mcp.tools import offered
from herdbook.surfaces.rest import auth
from tests.docs import pages
from tests.tidy import tree

SOURCES = "\n".join(source.text for source in tree.package())


@pytest.mark.slow
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


@pytest.mark.slow
def test_every_command_teaches_with_an_example() -> None:
    """A help text without an example would leave its reader to guess what to type."""
    without = [name for name in generate.commands() if f"herdbook {name}" not in generate.help_of(name).split("\n", 1)[1]]
    assert [] == without


def test_every_verb_has_a_heading() -> None:
    """A verb without a heading could be used only by those who read the code."""
    assert set(VERBS) <= set(pages.headings(pages.text_of("docs/reference/verbs.md")))


def test_every_tool_has_a_heading() -> None:
    """A tool without a heading would be known only to the agents that list it."""
    assert [each.tool.name for each in offered()] == pages.headings(pages.text_of("docs/reference/mcp.md"))[1:]


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
    # What holds a hook's secret is called as somebody's watch.toml says: it is no setting of ours.
    named = {name for name in re.findall(r"\bHERDBOOK_(?!HOOK_)[A-Z_]+\b", SOURCES) if not name.endswith("_")}
    documented = set(re.findall(r"`(HERDBOOK_[A-Z_]+)`", pages.text_of("docs/reference/settings.md")))
    assert documented == named
    assert {each.env for each in settings.SETTINGS} <= documented


def test_every_metric_has_a_row_and_every_row_a_metric() -> None:
    """A figure nobody explains would be graphed and misread."""
    exposed = set(re.findall(r"^# TYPE (\w+) ", generate.metrics_text(), re.MULTILINE))
    documented = set(re.findall(r"\| `(\w+)` \|", pages.text_of("docs/reference/metrics.md")))
    assert documented == exposed
    assert "herdbook_requests_total" in exposed


@pytest.mark.parametrize("route", ["/healthz", "/readyz", "/metrics", "/openapi.json", "/client.py"])
def test_every_other_route_is_described(route: str) -> None:
    """A route beside the verbs would be known only to those who read the code."""
    assert f"`GET {route}`" in pages.text_of("docs/reference/verbs.md")


def names_of_verbs() -> list[list[str]]:
    """The rows of the table that says what each verb is called where."""
    section = pages.text_of("docs/reference/verbs.md").partition("## One verb, four names")[2].partition("\n## ")[0]
    return [line.split("|")[1:-1] for line in section.splitlines() if line.startswith(("| `", "| none"))]


SPEAK_NO_VERB = {"backup", "bench", "db", "demo", "fanout", "gateway", "init", "mcp", "restore", "serve", "watch"}


OTHER_PROGRAMS_SPEAK = {"connect", "hook"}  # for an agent, by its own events


def public_methods() -> set[str]:
    members = inspect.getmembers(client.Client, inspect.isfunction)
    return {name for name, _ in members if not name.startswith("_")} - {"send", "catch_up"}


def test_the_table_of_names_is_whole() -> None:
    """A reader who knows a verb by one name would not find it under another."""
    verbs, methods, commands, in_boxes = [" ".join(column) for column in zip(*names_of_verbs(), strict=True)]
    assert sorted(VERBS) == sorted(re.findall(r"`(\w+)`", verbs))
    assert public_methods() - {"call"} == set(re.findall(r"`(\w+)\(\)`", methods))
    assert set(generate.commands()) - SPEAK_NO_VERB - OTHER_PROGRAMS_SPEAK == set(re.findall(r"`herdbook ([\w-]+)", commands))
    assert sorted(client.COMMANDS) == sorted(re.findall(r"`([\w-]+)`", in_boxes))


def test_every_method_and_argument_is_described() -> None:
    """A method or an argument without a row would be found only by those who read the client."""
    text = pages.text_of("docs/reference/python.md")
    shown = {(name, word) for name, rest in re.findall(r"`(\w+)(\([^`]*\))`", text) for word in ["", *re.findall(r"\w+", rest)]}
    there = {(name, word) for name in public_methods() for word in ["", *arguments_of(getattr(client.Client, name))]}
    assert set() == there - shown
    assert set(re.findall(r"`(\w+)`", text)) >= arguments_of(client.Client)


def arguments_of(function: Any) -> set[str]:
    """Those that have a name a caller can use."""
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {name for name, each in inspect.signature(function).parameters.items() if each.kind not in variable} - {"self"}


@pytest.mark.parametrize("name", ["Number", "Positive", "Page", "Tokens", "Lease", "ExitCode"])
def test_every_type_is_defined(name: str) -> None:
    """A field's type would be a word that is explained nowhere."""
    bounds = get_args(getattr(requests, name))[1]
    assert f"| {name} | a whole number from {bounds.ge} to {bounds.le}" in pages.text_of("docs/reference/verbs.md")


def examples_by_hand() -> Iterator[tuple[str, Any, Any]]:
    """(verb, body, answer) of each `curl` and the answer shown after it."""
    text = pages.text_of("docs/reference/verbs.md")
    for verb, body, answer in re.findall(r"/v1/(\w+) -H [^{]*-d '(.+?)'\n```\n\n```json\n(.+?)```", text, re.DOTALL):
        yield verb, json.loads(body), json.loads(answer)


def test_examples_by_hand_answer_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader who sends what is shown would get something else."""
    monkeypatch.setattr("herdbook.fastloop.embedding.models.installed", lambda *modules: False)
    service = open_service(settings.load({"HERDBOOK_HOME": str(tmp_path)}))
    caller = auth.door(service, None, identity="you", on_unix=False).admit({b"host": b"localhost"})
    shown = list(examples_by_hand())
    assert ["write", "start_session", "brief", "commit_outcome"] == [verb for verb, _, _ in shown]
    for verb, body, answer in shown:
        assert plain(answer) == plain(service.perform(caller, verb, body))
    service.close()


def plain(answer: Any) -> Any:
    """Without times and what depends on them, and with no more than the beginning of the text."""
    if isinstance(answer, list):
        return [plain(each) for each in answer]
    if not isinstance(answer, dict):
        return answer
    cut = {"at": None, "started_at": None, "effective_confidence": None, "markdown": None, "tokens": None}
    return {name: cut.get(name, plain(value)) for name, value in answer.items()}
