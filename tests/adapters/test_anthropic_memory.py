"""Anthropic's memory tool, all its commands, through the SDK's own dispatch; every change is a version."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from anthropic.lib.tools import ToolError

import herdbook
from herdbook.surfaces.adapters.anthropic_memory import HerdbookMemoryTool


@pytest.fixture
def tool(tmp_path: Path) -> Iterator[HerdbookMemoryTool]:
    with herdbook.open(tmp_path / "record.db", agent="support") as book:
        yield HerdbookMemoryTool(book, entity="acme/support")


def call(tool: HerdbookMemoryTool, command: str, **fields: object) -> str:
    answer = tool.call({"command": command, **fields})
    assert isinstance(answer, str)
    return answer


def test_all_commands_work_and_each_change_is_a_version(tool) -> None:
    """The model could not use a command it was told about, or what it overwrites would be gone."""
    assert "successfully" in call(tool, "create", path="/memories/a/notes.md", file_text="one\ntwo\n")
    assert "     1\tone\n     2\ttwo" in call(tool, "view", path="/memories/a/notes.md")
    assert "edited" in call(tool, "str_replace", path="/memories/a/notes.md", old_str="two", new_str="2")
    assert "edited" in call(tool, "insert", path="/memories/a/notes.md", insert_line=1, insert_text="half\n")
    assert call(tool, "view", path="/memories/a/notes.md", view_range=[2, 3]).endswith("     2\thalf\n     3\t2")
    assert "/memories/a/notes.md" in call(tool, "view", path="/memories")
    assert "renamed" in call(tool, "rename", old_path="/memories/a", new_path="/memories/b")
    assert "/memories/b/notes.md" in call(tool, "view", path="/memories/b")
    assert "deleted" in call(tool, "delete", path="/memories/b")
    assert "Files in /memories:" == call(tool, "view", path="/memories")
    versions = tool.book.history("acme/support", "a/notes.md")["versions"]
    assert ["one\ntwo\n", "one\n2\n", "one\nhalf\n2\n", None] == [version["value"] for version in versions]
    assert {"support"} == {version["author"] for version in versions}
    moved = tool.book.history("acme/support", "b/notes.md")["versions"][0]
    assert [("derived_from", "a/notes.md")] == [(link["rel"], link["key"]) for link in moved["links"]]


@pytest.mark.parametrize(
    "command, fields, said",
    [
        ("view", {"path": "/memories/none"}, "does not exist"),
        ("view", {"path": "/etc/passwd"}, "must start with /memories"),
        ("view", {"path": "/memories/../etc/passwd"}, "would escape"),
        ("view", {"path": "/memories/%2e%2e/x"}, "would escape"),
        ("view", {"path": "/memories/there", "view_range": [0, 9]}, "view_range"),
        ("create", {"path": "/memories/there", "file_text": "x"}, "already exists"),
        ("create", {"path": "/memories", "file_text": "x"}, "name a file"),
        ("create", {"path": "/memories/a\u202eb", "file_text": "x"}, "202E"),
        ("create", {"path": "/memories/large", "file_text": "x" * 80_000}, "limit"),
        ("str_replace", {"path": "/memories/there", "old_str": "none", "new_str": "x"}, "did not appear"),
        ("str_replace", {"path": "/memories/there", "old_str": "a", "new_str": "x"}, "appears 2 times"),
        ("insert", {"path": "/memories/there", "insert_line": 99, "insert_text": "x"}, "Invalid insert_line"),
        ("delete", {"path": "/memories/none"}, "does not exist"),
        ("delete", {"path": "/memories"}, "cannot be deleted"),
        ("rename", {"old_path": "/memories/none", "new_path": "/memories/x"}, "does not exist"),
        ("rename", {"old_path": "/memories/there", "new_path": "/memories/there"}, "already exists"),
    ],
)
def test_a_mistake_is_told_to_the_model(command, fields, said, tool) -> None:
    """The model would see a traceback, reach out of its folder, or take a failure for success."""
    call(tool, "create", path="/memories/there", file_text="banana"[:4])
    with pytest.raises(ToolError, match=said):
        call(tool, command, **fields)


def test_an_outage_is_said(tool) -> None:
    """The model would conclude that it has never kept anything."""
    away = HerdbookMemoryTool(herdbook.Client(url="http://127.0.0.1:9", timeout_seconds=0.2), entity="a")
    with pytest.raises(ToolError, match="the record is unavailable"):
        call(away, "view", path="/memories/x")
