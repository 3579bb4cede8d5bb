"""The protocol's own Inspector, as a program of its own, lists and calls the tools."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest

INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]


def inspected(home: object, *asked: str) -> Any:
    npx = shutil.which("npx")
    assert npx, "this test needs Node.js with npx: apt install npm"
    command = [npx, "-y", INSPECTOR, "--cli", sys.executable, "-m", "herdbook", "mcp", "--entity", "acme/ci", *asked]
    names = ("HERDBOOK_HOME", "PYTHONPATH")
    env = {**os.environ, "HERDBOOK_HOME": str(home)}
    passed = [word for name in names if name in env for word in ("-e", f"{name}={env[name]}")]
    command[4:4] = passed
    answer = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300)
    assert 0 == answer.returncode, answer.stderr
    return json.loads(answer.stdout)


def test_the_inspector_lists_and_calls_the_tools(tmp_path) -> None:
    """Whoever looks at our tools with the tool made for looking at tools would see nothing, or errors."""
    tools = inspected(tmp_path, "--method", "tools/list")["tools"]
    assert {"brief", "write", "commit_outcome"} <= {tool["name"] for tool in tools}
    asked = ["--method", "tools/call", "--tool-name", "write", "--tool-arg", "key=tz", "--tool-arg", 'value={"env":{"TZ":"UTC"}}']
    wrote = inspected(tmp_path, *asked, "--tool-arg", "why=dates")
    assert (False, 1) == (wrote["isError"], wrote["structuredContent"]["version"])
    told = inspected(tmp_path, "--method", "tools/call", "--tool-name", "brief")
    assert "`tz = " in told["content"][0]["text"]
    assert ["acme/ci"] == [each["name"] for each in inspected(tmp_path, "--method", "resources/list")["resources"]]
    assert 2 == len(inspected(tmp_path, "--method", "prompts/list")["prompts"])
