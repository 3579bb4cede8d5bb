"""What each agent tells its hooks, as one kind of event. Pure: a payload in, an event out.

The shapes are those the agents document. A payload of another shape is no event: a hook never stands in an agent's way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

Payload = Mapping[str, Any]
Kind = Literal["start", "prompt", "tool", "stop", "end"]
EXIT: Final = re.compile(r"\bexit(?:ed with)?(?: code|_code|Code)?[\"']?\s*[:=]?\s*(-?\d{1,3})\b", re.IGNORECASE)
# Commands whose result says how the work stands. Shell words before them (cd, env, VAR=1) are passed over.
CHECK: Final = re.compile(
    r"(?:^|&&|;)\s*(?:\w+=\S+\s+|env\s+|time\s+|poetry run\s+|uv run\s+|npx\s+|bundle exec\s+|python3? -m\s+)*"
    r"(?:pytest|tox|nox|unittest|(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?test|jest|vitest|go test|cargo (?:nextest|test)|"
    r"(?:make|just) (?:test|check)|mvn\s+\S*(?:test|verify)|(?:\./)?gradlew?\s+\S*test|rspec|rails test|phpunit|dotnet test|"
    r"ctest|bazel test|mix test|swift test)\b"
)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened in an agent's session."""

    kind: Kind
    session: str  # the agent's own name for it
    folder: str = ""
    task: str | None = None
    tool: str = ""
    args: Any = None
    result: Any = None
    ok: bool | None = None  # None: the agent does not say

    @property
    def command(self) -> str:
        """The shell command of a tool call, if it is one."""
        if isinstance(self.args, str):
            return self.args
        found = self.args.get("command", "") if isinstance(self.args, Mapping) else ""
        return found if isinstance(found, str) else " ".join(map(str, found)) if isinstance(found, list) else ""

    @property
    def checks(self) -> bool:
        """Whether it is a test run whose result says how the work stands. One that hides its exit code is none."""
        return (
            self.kind == "tool"
            and self.ok is not None
            and bool(CHECK.search(self.command))
            and not re.search(r"\|\|?", self.command)
        )


def text_of(payload: Payload, *names: str) -> str:
    return next((payload[name] for name in names if isinstance(payload.get(name), str) and payload[name]), "")


def claude(payload: Payload) -> Event | None:
    """Claude Code and Codex, and by other event names Gemini: `hook_event_name`, `session_id`, `cwd`, `tool_*`."""
    session, folder = text_of(payload, "session_id"), text_of(payload, "cwd")
    name = text_of(payload, "hook_event_name")
    kind = CLAUDE_EVENTS.get(name)
    if kind is None or not session:
        return None
    if kind != "tool":
        return Event(kind, session, folder, task=text_of(payload, "prompt") or None)
    result = payload.get("tool_response", payload.get("tool_output", payload.get("error")))
    told = payload.get("tool_result")  # Copilot, which runs the hooks in `.claude/settings.json` too
    if isinstance(told, Mapping):
        result = told.get("text_result_for_llm", told)
    ok = False if name == "PostToolUseFailure" else verdict(result, succeeded=True if name == "PostToolUse" else None)
    return Event(kind, session, folder, tool=text_of(payload, "tool_name"), args=payload.get("tool_input"), result=result, ok=ok)


CLAUDE_EVENTS: Final[Mapping[str, Kind]] = {
    "SessionStart": "start", "UserPromptSubmit": "prompt", "PostToolUse": "tool", "PostToolUseFailure": "tool", "Stop": "stop",
    "SessionEnd": "end", "BeforeAgent": "prompt", "AfterTool": "tool", "AfterAgent": "stop",
}  # fmt: skip


def cursor(payload: Payload) -> Event | None:
    session = text_of(payload, "conversation_id", "session_id")
    roots = payload.get("workspace_roots")
    folder = text_of(payload, "cwd") or (roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) else "")
    name = text_of(payload, "hook_event_name")
    if not session:
        return None
    if name in CURSOR_EVENTS:
        return Event(CURSOR_EVENTS[name], session, folder, task=text_of(payload, "prompt") or None)
    if name == "afterFileEdit":
        return Event("tool", session, folder, tool="edit", args={"file_path": payload.get("file_path")}, ok=True)
    if name in ("afterShellExecution", "postToolUse", "postToolUseFailure"):
        args = {"command": payload["command"]} if "command" in payload else loaded(payload.get("tool_input"))
        result = loaded(payload.get("output", payload.get("tool_output", payload.get("error_message"))))
        ok = False if name == "postToolUseFailure" else verdict(result, succeeded=True if name == "postToolUse" else None)
        return Event("tool", session, folder, tool=text_of(payload, "tool_name") or "shell", args=args, result=result, ok=ok)
    return None


CURSOR_EVENTS: Final[Mapping[str, Kind]] = {
    "sessionStart": "start", "beforeSubmitPrompt": "prompt", "stop": "stop", "sessionEnd": "end",
}  # fmt: skip


def windsurf(payload: Payload) -> Event | None:
    session, name = text_of(payload, "trajectory_id"), text_of(payload, "agent_action_name")
    info = payload.get("tool_info")
    if not session or not isinstance(info, Mapping):
        return None
    if name == "pre_user_prompt":
        return Event("prompt", session, task=text_of(info, "user_prompt") or None)
    if name == "post_cascade_response":
        return Event("stop", session)
    if name == "post_run_command":
        return Event("tool", session, text_of(info, "cwd"), tool="run_command", args={"command": info.get("command_line")})
    if name == "post_write_code":
        return Event("tool", session, tool="write_code", args={"file_path": info.get("file_path")}, ok=True)
    if name == "post_mcp_tool_use":
        args, result = info.get("mcp_tool_arguments"), info.get("mcp_result")
        return Event("tool", session, tool=text_of(info, "mcp_tool_name"), args=args, result=result)
    return None


def copilot(payload: Payload) -> Event | None:
    """Copilot's payloads do not name their event: it is told on the command line, and put here as `event`."""
    folder = text_of(payload, "cwd")
    session = text_of(payload, "sessionId", "session_id") or (f"in {folder}" if folder else "")
    name = text_of(payload, "event")
    if not session:
        return None
    if name in COPILOT_EVENTS:
        return Event(COPILOT_EVENTS[name], session, folder, task=text_of(payload, "initialPrompt", "prompt") or None)
    if name in ("postToolUse", "postToolUseFailure"):
        told = payload.get("toolResult", payload.get("error"))
        result = told.get("textResultForLlm", told) if isinstance(told, Mapping) else told
        kind = told.get("resultType") if isinstance(told, Mapping) else None
        ok = {"success": True, "failure": False}.get(str(kind)) if name == "postToolUse" else False
        ok = False if ok and verdict(result, succeeded=None) is False else ok
        args = loaded(payload.get("toolArgs"))
        return Event("tool", session, folder, tool=text_of(payload, "toolName"), args=args, result=result, ok=ok)
    return None


COPILOT_EVENTS: Final[Mapping[str, Kind]] = {
    "sessionStart": "start", "userPromptSubmitted": "prompt", "agentStop": "stop", "sessionEnd": "end",
}  # fmt: skip


def verdict(result: Any, *, succeeded: bool | None) -> bool | None:
    """Whether a tool call went well: by the exit code it shows, else by what the event itself says."""
    if isinstance(result, Mapping):
        for name in ("exit_code", "exitCode", "returncode"):
            if isinstance(result.get(name), int) and not isinstance(result[name], bool):
                return bool(result[name] == 0)
        if result.get("interrupted") is True or result.get("error"):
            return False
        result = result.get("llmContent", result.get("output", ""))
    found = EXIT.search(result[-2_000:]) if isinstance(result, str) else None
    return int(found[1]) == 0 if found else succeeded


def loaded(value: Any) -> Any:
    """Some send their objects as text."""
    if isinstance(value, str) and value[:1] in "{[":
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


READERS: Final[Mapping[str, Callable[[Payload], Event | None]]] = {
    "claude-code": claude,
    "codex": claude,
    "gemini": claude,
    "cursor": cursor,
    "windsurf": windsurf,
    "copilot": copilot,
}


def shown(agent: str, text: str) -> str:
    """A briefing as the agent takes it from the hook of a session's start."""
    if agent == "cursor":
        return json.dumps({"additional_context": text})
    if agent == "copilot":
        return json.dumps({"additionalContext": text})
    return json.dumps({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}})
