"""What each agent's configuration gets: the tools, and its hooks where it has them. Each row is what that agent documents."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from herdbook.base.repository import root_of
from herdbook.surfaces.hooks.files import Edit, block_edit, json_edit

SECONDS: Final = 5  # what an agent gives a hook; the hook itself takes two at most


def herdbook() -> list[str]:
    """How an agent starts us: by name where that is on the path, since such files are shared with others."""
    return ["herdbook"] if shutil.which("herdbook") else [sys.executable, "-m", "herdbook"]


def hook(agent: str, entity: str, *more: str) -> str:
    return shlex.join([*herdbook(), "hook", agent, *more, "--entity", entity])


def tools(entity: str, **more: Any) -> dict[str, Any]:
    command, *first = herdbook()
    return {"herdbook": {**more, "command": command, "args": [*first, "mcp", "--entity", entity]}}


def grouped(agent: str, entity: str, events: Mapping[str, str | None], *, timeout: int = SECONDS) -> dict[str, Any]:
    """Hooks as Claude Code, Codex and Gemini have them: groups with a matcher."""
    one = {"type": "command", "command": hook(agent, entity), "timeout": timeout}
    return {event: [{**({} if matcher is None else {"matcher": matcher}), "hooks": [one]}] for event, matcher in events.items()}


def claude_code(folder: Path, entity: str) -> list[Edit]:
    events = {"SessionStart": None, "UserPromptSubmit": None, "PostToolUse": "*", "PostToolUseFailure": "*", "SessionEnd": None}
    return [
        json_edit(folder / ".mcp.json", {"mcpServers": tools(entity)}),
        json_edit(folder / ".claude" / "settings.json", {"hooks": grouped("claude-code", entity, events)}),
    ]


def codex(folder: Path, entity: str) -> list[Edit]:
    events = {"SessionStart": None, "UserPromptSubmit": None, "PostToolUse": None, "Stop": None}
    command, *first = herdbook()
    args = ", ".join(toml_text(word) for word in [*first, "mcp", "--entity", entity])
    table = f"[mcp_servers.herdbook]\ncommand = {toml_text(command)}\nargs = [{args}]\n"
    return [
        block_edit(folder / ".codex" / "config.toml", table, taken="[mcp_servers.herdbook]"),
        json_edit(folder / ".codex" / "hooks.json", {"hooks": grouped("codex", entity, events)}),
    ]


def toml_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def cursor(folder: Path, entity: str) -> list[Edit]:
    one = [{"command": hook("cursor", entity)}]
    events = ("sessionStart", "beforeSubmitPrompt", "postToolUse", "postToolUseFailure", "sessionEnd")
    hooks = {"version": 1, "hooks": dict.fromkeys(events, one)}
    return [
        json_edit(folder / ".cursor" / "mcp.json", {"mcpServers": tools(entity)}),
        json_edit(folder / ".cursor" / "hooks.json", hooks),
    ]


def windsurf(folder: Path, entity: str) -> list[Edit]:
    one = [{"command": hook("windsurf", entity), "show_output": False}]
    events = ("pre_user_prompt", "post_run_command", "post_write_code", "post_mcp_tool_use", "post_cascade_response")
    home = Path(os.path.expanduser("~"))
    return [
        json_edit(home / ".codeium" / "windsurf" / "mcp_config.json", {"mcpServers": tools(entity)}),
        json_edit(folder / ".windsurf" / "hooks.json", {"hooks": dict.fromkeys(events, one)}),
    ]


def copilot(folder: Path, entity: str) -> list[Edit]:
    events = ("sessionStart", "userPromptSubmitted", "postToolUse", "postToolUseFailure", "agentStop", "sessionEnd")
    hooks = {event: [{"type": "command", "bash": hook("copilot", entity, event), "timeoutSec": SECONDS}] for event in events}
    return [
        json_edit(folder / ".vscode" / "mcp.json", {"servers": tools(entity, type="stdio")}),
        json_edit(folder / ".github" / "hooks" / "herdbook.json", {"version": 1, "hooks": hooks}),
    ]


def gemini(folder: Path, entity: str) -> list[Edit]:
    events = {"SessionStart": "*", "BeforeAgent": "*", "AfterTool": "*", "SessionEnd": "*"}
    hooks = grouped("gemini", entity, events, timeout=SECONDS * 1000)  # it counts in milliseconds
    ours = {"mcpServers": tools(entity), "hooks": hooks}
    return [json_edit(folder / ".gemini" / "settings.json", ours)]


def git(folder: Path, entity: str) -> list[Edit]:
    """After each commit, tell the run that is going on in this folder."""
    root = root_of(str(folder)) or folder
    hooks = root / ".git" / "hooks"
    # What the commit is called comes before the options: our reader of command lines takes it there everywhere.
    line = f'{shlex.join([*herdbook(), "hook", "git"])} "$(git rev-parse HEAD)" --entity {shlex.quote(entity)}'
    line += " </dev/null >/dev/null 2>&1 || true\n"
    return [block_edit(hooks / "post-commit", line, opening="#!/bin/sh\n", mode=0o755)]


AGENTS: Final[Mapping[str, Callable[[Path, str], list[Edit]]]] = {
    "claude-code": claude_code,
    "codex": codex,
    "cursor": cursor,
    "windsurf": windsurf,
    "copilot": copilot,
    "gemini": gemini,
    "git": git,
}
