"""What hostile or mistaken input does to the watcher: a sentence or a failed watch, never a stack trace or words put in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from herdbook.base.errors import Broken, InvalidRequest
from herdbook.watch import alerts, config, notify, pull_request, told
from herdbook.watch.findings import KnownClass

FINDING: dict[str, Any] = {
    "session": "s1",
    "quiet": True,
    "unreadable": {},
    "findings": [],
    "written": [],
    "changed": {},
    "pages": 1,
    "seconds": 0.5,
    "reverts": [],
    "commits": [],
}


@pytest.mark.parametrize(
    "more",
    [
        {"session": "another"},
        {"quiet": "yes"},
        {"findings": [{"service": "api"}]},
        {"findings": 3},
        {"reverts": [7]},
        {"changed": {"acme/app": [{}]}},
        {"seconds": None},
    ],
    ids=str,
)
def test_a_finding_of_another_shape_or_session_is_a_failed_watch(more: dict[str, Any]) -> None:
    """A box that was taken over would end the worker, or speak in the trace of another run."""
    assert FINDING == told.finding(FINDING, session="s1")
    with pytest.raises(Broken, match="the box's finding is"):
        told.finding({**FINDING, **more}, session="s1")


@pytest.mark.parametrize(
    "line",
    [
        "services = 3",
        "agent = 7",
        "agent = [1, 2]",
        "gates = 3",
        "deploy = 3",
        "hooks = 'x'",
        "connections = 1",
        "cloud_tasks = 1",
        "deploy = {watch_seconds = 'long'}",
        "deploy = {watch_seconds = true}",
        "deploy = {budget_seconds = 900.5}",
        "deploy = {poll_seconds = 0}",
        "deploy = {promotion = 1}",
        "services = {api = {source = 'file', path = 3}}",
    ],
)
def test_settings_of_another_kind_are_refused_in_a_sentence(tmp_path: Path, line: str) -> None:
    """A slip in watch.toml would be answered with a stack trace."""
    (tmp_path / "watch.toml").write_text(f'org = "acme"\n{line}\n')
    with pytest.raises(InvalidRequest, match="must be"):
        config.load(tmp_path / "watch.toml")


@pytest.mark.parametrize("source", sorted(config.SOURCES))
def test_a_sources_missing_or_misspelt_line_is_named_before_anything_runs(tmp_path: Path, source: str) -> None:
    """It would end the worker in the middle of a watch, again and again."""
    needed, _ = config.SOURCES[source]
    lines = "".join(f"{name} = 'x'\n" for name in needed[:-1])
    file = tmp_path / "watch.toml"
    file.write_text(f'org = "acme"\n[services.api]\nsource = "{source}"\n{lines}')
    with pytest.raises(InvalidRequest, match=f"needs the line '{needed[-1]}'"):
        config.load(file)
    file.write_text(file.read_text() + f"{needed[-1]} = 'x'\nlabels = 'y'\n")
    with pytest.raises(InvalidRequest, match="unknown line 'labels'"):
        config.load(file)


def test_a_component_in_another_script_is_looked_at() -> None:
    """Its alerts would be refused, and nobody would look."""
    names = [alerts.generic({"component": each})[0].component for each in ("поиск", "検索", "поиск")]
    assert (names[0], True) == (names[2], names[0] != names[1])
    with pytest.raises(InvalidRequest):
        alerts.generic({"component": " -- "})


def test_a_logged_link_or_mention_is_not_one_in_a_message() -> None:
    """Who can write a log line could send people somewhere in the watcher's name."""
    said = notify.plain("<!channel> @here see https://evil.example <a|b>")
    assert not any(each in said for each in ("<", ">", "@", "://"))


def test_an_agents_words_close_and_mention_nothing_in_a_draft() -> None:
    """What an agent read in a log would close issues, or call people, by way of a draft's body."""
    finding = {"label": "x", "service": "api", "signals": {}, "diagnosis": "~~~~\nFixes #1 @team"}
    verdict = {"reason": "r", "entries": [], "outcomes": []}
    body = pull_request.text(finding, verdict, "deploy-1", how="h", reads=[])
    assert "~~~~\n~ ~ ~ ~\nFixes #1 @team\n~~~~" in body


@pytest.mark.parametrize("path", [".github/workflows/x.yml", "a/../../x", "/etc/x", ".GIT/hooks/x", "a//b", "a/./b", "x\n", ""])
def test_an_agent_proposes_no_file_that_machinery_runs_with_secrets(path: str) -> None:
    """Who can write a log line, and so an agent's files, could have a workflow run with the repository's secrets."""
    asked = pull_request.draft(
        {"service": "api", "label": "x", "signals": {}, "files": {path: "evil", "src/app.py": "A = 1"}, "diagnosis": ""},
        {"reason": "r", "entries": [], "outcomes": []},
        KnownClass("acme/deploy", "regression-x", 1, "product_regression", ("boom",)),
        job={"key": "deploy-1", "body": {}}, repository="acme/app", base="main", reads=[], changed=[],
    )  # fmt: skip
    assert {"src/app.py": "A = 1"} == asked["files"]
