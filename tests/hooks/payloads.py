"""Payloads as the agents document them, and the events they are."""

from __future__ import annotations

from typing import Any

CLAUDE = {"session_id": "abc123", "transcript_path": "/t/abc123.jsonl", "cwd": "/p", "permission_mode": "default"}
CURSOR = {
    "conversation_id": "conv-1",
    "generation_id": "gen-1",
    "model": "m",
    "cursor_version": "2.0.77",
    "workspace_roots": ["/p"],
}
WINDSURF = {"trajectory_id": "tr-1", "execution_id": "ex-1", "timestamp": "2026-01-15T10:30:00Z"}
COPILOT = {"sessionId": "cop-1", "timestamp": 1704614400000, "cwd": "/p"}
BASH_OUTPUT = {"stdout": "ok", "stderr": "", "interrupted": False, "isImage": False}

# (agent, the event's name where its payload does not say it, payload, what it is: kind, session, task, tool, command, ok)
DOCUMENTED: list[tuple[str, str | None, dict[str, Any], tuple[Any, ...]]] = [
    ("claude-code", None,
     {**CLAUDE, "hook_event_name": "SessionStart", "source": "startup"},
     ("start", "abc123", None, "", "", None)),
    (
        "claude-code",
        None,
        {**CLAUDE, "hook_event_name": "UserPromptSubmit", "prompt": "fix it"},
        ("prompt", "abc123", "fix it", "", "", None),
    ),
    (
        "claude-code",
        None,
        {**CLAUDE, "hook_event_name": "PostToolUse", "tool_name": "Bash",
         "tool_input": {"command": "pytest -q", "description": "d"},
         "tool_response": BASH_OUTPUT, "tool_use_id": "toolu_1"},
        ("tool", "abc123", None, "Bash", "pytest -q", True),
    ),
    (
        "claude-code",
        None,
        {**CLAUDE, "hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "tool_input": {"command": "pytest -q"},
         "error": "Command failed with exit code 1", "is_interrupt": False},
        ("tool", "abc123", None, "Bash", "pytest -q", False),
    ),
    (
        "claude-code",
        None,
        {**CLAUDE, "hook_event_name": "PostToolUse", "tool_name": "Write", "tool_input": {"file_path": "/p/a", "content": "x"},
         "tool_response": {"filePath": "/p/a", "success": True}},
        ("tool", "abc123", None, "Write", "", True),
    ),
    (
        "claude-code",  # as Copilot tells the hooks that are Claude Code's
        None,
        {"session_id": "abc123", "timestamp": "2026-01-15T10:30:00Z", "cwd": "/p", "hook_event_name": "PostToolUse",
         "tool_name": "Bash", "tool_input": {"command": "pytest -q"},
         "tool_result": {"result_type": "success", "text_result_for_llm": "1 failed\n<exited with exit code 1>"}},
        ("tool", "abc123", None, "Bash", "pytest -q", False),
    ),
    ("claude-code", None,
     {**CLAUDE, "hook_event_name": "Stop", "stop_hook_active": False},
     ("stop", "abc123", None, "", "", None)),
    ("claude-code", None, {**CLAUDE, "hook_event_name": "SessionEnd", "reason": "exit"}, ("end", "abc123", None, "", "", None)),
    (
        "codex",
        None,
        {"session_id": "019a", "cwd": "/p", "hook_event_name": "PostToolUse", "model": "m", "turn_id": "1", "tool_name": "Bash",
         "tool_input": {"command": "cargo test"}, "tool_response": "Process exited with code 101\nfailures:", "tool_use_id": "c"},
        ("tool", "019a", None, "Bash", "cargo test", False),
    ),
    (
        "gemini",
        None,
        {"session_id": "g1", "transcript_path": "", "cwd": "/p", "timestamp": "2026-01-01T00:00:00Z",
         "hook_event_name": "AfterTool",
         "tool_name": "run_shell_command", "tool_input": {"command": "npm test"},
         "tool_response": {"llmContent": "Command: npm test\nExit Code: 1", "returnDisplay": "", "error": None}},
        ("tool", "g1", None, "run_shell_command", "npm test", False),
    ),
    (
        "gemini",
        None,
        {"session_id": "g1", "cwd": "/p", "hook_event_name": "BeforeAgent", "prompt": "fix it"},
        ("prompt", "g1", "fix it", "", "", None),
    ),
    ("cursor", None,
     {**CURSOR, "hook_event_name": "sessionStart", "session_id": "conv-1"},
     ("start", "conv-1", None, "", "", None)),
    (
        "cursor",
        None,
        {**CURSOR, "hook_event_name": "beforeSubmitPrompt", "prompt": "fix it", "attachments": []},
        ("prompt", "conv-1", "fix it", "", "", None),
    ),
    (
        "cursor",
        None,
        {**CURSOR, "hook_event_name": "afterShellExecution", "command": "go test ./...", "output": "ok", "duration": 150},
        ("tool", "conv-1", None, "shell", "go test ./...", None),
    ),
    (
        "cursor",
        None,
        {**CURSOR, "hook_event_name": "postToolUse", "tool_name": "Shell", "tool_input": {"command": "npm test"},
         "tool_output": '{"exitCode": 1, "stdout": ""}', "duration": 10, "cwd": "/p"},
        ("tool", "conv-1", None, "Shell", "npm test", False),
    ),
    (
        "cursor",
        None,
        {**CURSOR, "hook_event_name": "postToolUseFailure", "tool_name": "Shell", "tool_input": {"command": "npm test"},
         "error_message": "Command timed out", "failure_type": "timeout", "duration": 10, "cwd": "/p", "is_interrupt": False},
        ("tool", "conv-1", None, "Shell", "npm test", False),
    ),
    (
        "cursor",
        None,
        {**CURSOR, "hook_event_name": "afterFileEdit", "file_path": "/p/a", "edits": [{"old_string": "a", "new_string": "b"}]},
        ("tool", "conv-1", None, "edit", "", True),
    ),
    ("cursor", None,
     {**CURSOR, "hook_event_name": "stop", "status": "completed", "loop_count": 0},
     ("stop", "conv-1", None, "", "", None)),
    (
        "windsurf",
        None,
        {**WINDSURF, "agent_action_name": "pre_user_prompt", "tool_info": {"user_prompt": "fix it"}},
        ("prompt", "tr-1", "fix it", "", "", None),
    ),
    (
        "windsurf",
        None,
        {**WINDSURF, "agent_action_name": "post_run_command", "tool_info": {"command_line": "npm test", "cwd": "/p"}},
        ("tool", "tr-1", None, "run_command", "npm test", None),
    ),
    (
        "windsurf",
        None,
        {**WINDSURF, "agent_action_name": "post_mcp_tool_use",
         "tool_info": {"mcp_server_name": "s", "mcp_tool_name": "t", "mcp_tool_arguments": {"a": 1}, "mcp_result": "r"}},
        ("tool", "tr-1", None, "t", "", None),
    ),
    (
        "windsurf",
        None,
        {**WINDSURF, "agent_action_name": "post_cascade_response", "tool_info": {"response": "done"}},
        ("stop", "tr-1", None, "", "", None),
    ),
    ("copilot", "sessionStart",
     {**COPILOT, "source": "new", "initialPrompt": "fix it"},
     ("start", "cop-1", "fix it", "", "", None)),
    ("copilot", "sessionStart",  # as its first versions told it
     {"timestamp": 1704614400000, "cwd": "/p", "source": "new", "initialPrompt": "fix it"},
     ("start", "in /p", "fix it", "", "", None)),
    (
        "copilot",
        "postToolUse",
        {**COPILOT, "toolName": "bash", "toolArgs": '{"command":"npm test"}',
         "toolResult": {"resultType": "success", "textResultForLlm": "All tests passed (15/15)"}},
        ("tool", "cop-1", None, "bash", "npm test", True),
    ),
    (
        "copilot",
        "postToolUse",
        {**COPILOT, "toolName": "bash", "toolArgs": '{"command":"npm test"}',
         "toolResult": {"resultType": "failure", "textResultForLlm": "2 failed"}},
        ("tool", "cop-1", None, "bash", "npm test", False),
    ),
    (
        "copilot",
        "postToolUseFailure",
        {**COPILOT, "toolName": "bash", "toolArgs": {"command": "npm test"}, "error": "exited with 1: 2 failed"},
        ("tool", "cop-1", None, "bash", "npm test", False),
    ),
    ("copilot", "agentStop",
     {**COPILOT, "transcriptPath": "/t", "stopReason": "end_turn"},
     ("stop", "cop-1", None, "", "", None)),
    ("copilot", "sessionEnd", {**COPILOT, "reason": "complete"}, ("end", "cop-1", None, "", "", None)),
]  # fmt: skip
