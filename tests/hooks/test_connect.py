"""`herdbook connect`: other programs' files, changed once, and put back to the byte."""

from __future__ import annotations

import importlib
import json
import os
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.__main__ import COMMANDS
from herdbook.base import current_run
from herdbook.surfaces.cli.parser import command_parser, read
from herdbook.surfaces.hooks.agents import AGENTS
from herdbook.surfaces.hooks.files import Unreadable, block_edit, json_edit

THEIRS = {
    ".mcp.json": '{\n    "mcpServers": {"other": {"command": "x"}},\n    "z": [1,  2]\n}',
    ".claude/settings.json": '{"permissions": {}, "hooks": {"SessionStart": [{"hooks": [{"command": "mine"}]}]}}\n',
    ".codex/config.toml": 'model = "o"\n[mcp_servers.other]\ncommand = "x"',
    ".codex/hooks.json": '{"hooks": {}}',
    ".cursor/mcp.json": "{}",
    ".cursor/hooks.json": '{"version": 1, "hooks": {"stop": [{"command": "mine"}]}}\n',
    ".codeium/windsurf/mcp_config.json": '{"mcpServers": {}}\r\n',
    ".windsurf/hooks.json": "",
    ".vscode/mcp.json": '{"servers": {}, "inputs": []}\n',
    ".github/hooks/herdbook.json": '{"version": 1}',
    ".gemini/settings.json": '{\n\t"theme": "dark",\n\t"hooks": {"AfterTool": []}\n}\n',
    ".git/hooks/post-commit": "#!/bin/bash\necho mine",
}


def files(folder: Path) -> dict[str, bytes]:
    kept = (".local",)
    found = [path for path in folder.rglob("*") if path.is_file() and path.relative_to(folder).parts[0] not in kept]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.fixture
def connect(said, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)

    def run(*argv: str) -> Any:
        return said("connect", *argv)

    return run


@pytest.mark.parametrize("theirs", [{}, THEIRS], ids=["nothing there", "files of theirs"])
@pytest.mark.parametrize("agent", AGENTS)
def test_every_file_is_put_back_to_the_byte(agent, theirs, connect, tmp_path) -> None:
    """Whoever only tried us would be left with files that are no longer theirs."""
    for name, text in theirs.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    before = files(tmp_path)
    assert 0 == connect(agent, "--entity", "acme/ci", "--dry-run").code
    assert before == files(tmp_path)
    assert 0 == connect(agent, "--entity", "acme/ci").code
    connected = files(tmp_path)
    assert before != connected
    assert "as it should be" in connect(agent, "--entity", "acme/ci").out
    assert connected == files(tmp_path)
    connect(agent, "--entity", "acme/other")
    assert connected != files(tmp_path)
    assert 0 == connect(agent, "--remove").code
    assert before == files(tmp_path)
    assert 0 == connect(agent, "--remove").code
    assert before == files(tmp_path)


@pytest.mark.parametrize("agent", AGENTS)
def test_what_is_theirs_stays_while_ours_is_there(agent, connect, tmp_path) -> None:
    """Connecting one tool would disconnect another."""
    for name, text in THEIRS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    connect(agent, "--entity", "acme/ci")
    for name, data in files(tmp_path).items():
        text, theirs = data.decode(), THEIRS[name]
        if name.endswith(".json") and theirs.strip():
            assert contains(json.loads(text), json.loads(theirs)), name
        elif name.endswith(".toml"):
            assert contains(tomllib.loads(text), tomllib.loads(theirs)), name
        else:
            assert theirs.strip() in text


def contains(whole: Any, part: Any) -> bool:
    if isinstance(part, dict):
        return all(name in whole and contains(whole[name], value) for name, value in part.items())
    if isinstance(part, list):
        return all(each in whole for each in part)
    return bool(whole == part)


def test_what_somebody_has_added_since_stays(connect, tmp_path) -> None:
    """Putting back what was would undo somebody's work."""
    connect("claude-code", "--entity", "acme/ci")
    path = tmp_path / ".claude" / "settings.json"
    changed = json.loads(path.read_text()) | {"model": "opus"}
    changed["hooks"]["SessionStart"].append({"hooks": [{"type": "command", "command": "mine"}]})
    path.write_text(json.dumps(changed))
    assert "changed since: only what is ours was taken out" in connect("claude-code", "--remove").out
    kept = {"model": "opus", "hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "mine"}]}]}}
    assert kept == json.loads(path.read_text())


@pytest.mark.parametrize("text", ["// a comment\n{}", "[]", '{"a": 1,}', "nonsense"])
def test_a_file_we_cannot_read_is_left_alone(text, connect, tmp_path) -> None:
    """A file with comments would lose them, or all of it."""
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode" / "mcp.json").write_text(text)
    assert 1 == connect("copilot", "--entity", "a").code
    assert text == (tmp_path / ".vscode" / "mcp.json").read_text()


def test_permissions_and_links_stay(connect, tmp_path) -> None:
    """A private file would become readable, a link to somebody's dotfiles a file of its own."""
    (tmp_path / "dotfiles").mkdir()
    real = tmp_path / "dotfiles" / "mcp.json"
    real.write_text("{}")
    real.chmod(0o600)
    (tmp_path / ".mcp.json").symlink_to(real)
    connect("claude-code", "--entity", "a")
    assert (True, 0o600) == ((tmp_path / ".mcp.json").is_symlink(), real.stat().st_mode & 0o777)
    assert "herdbook" in real.read_text()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab é", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["hooks", "mcpServers", "a", "SessionStart"]), inner)
    ),
    max_leaves=8,
)


@given(theirs=st.dictionaries(st.sampled_from(["hooks", "mcpServers", "a"]), JSON), indent=st.sampled_from([None, 2, 4]))
def test_ours_in_and_out_leaves_theirs(theirs, indent) -> None:
    """Some shape of a file would come back with something missing, or with something of ours."""
    ours = {"mcpServers": {"herdbook": {"command": "herdbook", "args": ["mcp"]}},
            "hooks": {"SessionStart": [{"hooks": [{"command": "herdbook hook claude-code"}]}]}}  # fmt: skip
    edit = json_edit(Path("x.json"), ours)
    text = json.dumps(theirs, indent=indent)
    once = edit.put(text)
    assert once == edit.put(once)
    left = edit.take(once)
    assert "herdbook" not in left
    kept = {name: value for name, value in theirs.items() if name == "a"}
    assert kept == {name: value for name, value in json.loads(left).items() if name == "a"}


def test_a_block_is_put_once_and_taken_out() -> None:
    """A table of settings would be there twice, and the program refuse its own file."""
    edit = block_edit(Path("c.toml"), "[mcp_servers.herdbook]\n", taken="[mcp_servers.herdbook]")
    once = edit.put("a = 1\n")
    assert (once, "a = 1\n") == (edit.put(once), edit.take(once))
    with pytest.raises(Unreadable, match="already"):
        edit.put("[mcp_servers.herdbook]\n")


@pytest.mark.slow
def test_the_hook_of_git_runs_and_holds_up_no_commit(connect, tmp_path) -> None:
    """A commit would fail, or wait, because of us."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    subprocess.run([*git, "init", "-q", "."], cwd=tmp_path, check=True)
    connect("git", "--entity", "acme/ci")
    assert os.access(tmp_path / ".git" / "hooks" / "post-commit", os.X_OK)
    env = {**os.environ, "HERDBOOK_URL": "http://127.0.0.1:9"}
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], cwd=tmp_path, check=True, env=env, timeout=30)


@pytest.mark.slow
def test_a_commit_is_told_by_the_hook_as_it_is_written(connect, said, tmp_path) -> None:
    """The hook's own command line would be one we do not read, and no commit in any trace."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    subprocess.run([*git, "init", "-q", "."], cwd=tmp_path, check=True)
    connect("git", "--entity", "acme/ci")
    hook = tmp_path / ".git" / "hooks" / "post-commit"
    hook.write_text(hook.read_text().replace(" --entity", " --deadline 40 --entity"))  # a busy machine is slow to start it
    said("brief", "acme/ci", "--session", "codex-1")
    current_run.remember(tmp_path / ".local/share/herdbook", str(tmp_path), {"session": "codex-1", "begun": True})
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], cwd=tmp_path, check=True, timeout=60)
    head = subprocess.run([*git, "rev-parse", "HEAD"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()
    trace = json.loads(said("trace", "codex-1", "--json").out)
    assert [("git commit", {"commit": head})] == [(each["tool"], each["args"]) for each in trace["actions"]]


@pytest.mark.parametrize("agent", sorted(set(AGENTS) - {"git"}))
def test_every_command_that_is_written_is_one_we_read(agent, connect, tmp_path) -> None:
    """Hooks would end in a mistake that no agent shows, and tools would never start."""
    connect(agent, "--entity", "acme/a b")
    written = [text.decode() for name, text in files(tmp_path).items()]
    lines = [words for text in written for words in commands(tomllib.loads(text) if text[:1] in "#[" else json.loads(text))]
    assert {"hook", "mcp"} == {words[0] for words in lines}
    for name, *words in lines:
        reader = command_parser(name, summary="")
        importlib.import_module(COMMANDS[name].module).add_arguments(reader)
        assert "acme/a b" == read(reader, words).entity


def commands(found: Any) -> Iterator[list[str]]:
    """What is behind `herdbook`, or behind `python -m herdbook`, in every command of a file."""
    if isinstance(found, dict) and isinstance(found.get("args"), list):
        words = found["args"]
        yield words[words.index("herdbook") + 1 :] if "herdbook" in words else words
    elif isinstance(found, dict | list):
        for each in found.values() if isinstance(found, dict) else found:
            yield from commands(each)
    elif isinstance(found, str) and " hook " in found:
        words = shlex.split(found)
        yield words[words.index("hook") :]


@pytest.mark.parametrize("agent, told", [("claude-code", True), ("git", False)])
def test_tools_that_cannot_start_are_said(agent, told, connect, monkeypatch) -> None:
    """An agent would be connected to a server that ends at once, and nobody would know why it has no tools."""
    monkeypatch.setattr("herdbook.surfaces.hooks.connect.find_spec", lambda name: None)
    assert told == ("pip install 'herdbook[mcp]'" in connect(agent, "--entity", "acme/checkout").out)
