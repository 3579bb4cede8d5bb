"""The composite GitHub Action: its steps, run as the runner runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from herdbook import Client
from herdbook.base import settings
from herdbook.service.opening import open_service
from tests.docs import pages
from tests.rest.serving import KEY, serving


@pytest.mark.slow
@pytest.mark.parametrize(
    "command, code", [("echo hello | cat; exit 0", 0), ("false | cat", 1), ("echo ${HERDBOOK_KEY:-none}", 0)]
)
def test_the_action_runs_a_job_inside_the_loop(command, code, tmp_path: Path) -> None:
    """A job would run outside of the loop, with another exit code, or hand its key to whatever it runs."""
    installed = tmp_path / "herdbook" / "bin"
    installed.mkdir(parents=True)
    (installed / "herdbook").write_text(f'#!/bin/sh\nexec {sys.executable} -m herdbook "$@"\n')
    (installed / "herdbook").chmod(0o755)
    ran(command, code, tmp_path, dict(os.environ))


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_action_installs_what_it_runs(tmp_path: Path) -> None:
    """Every job that uses the action would end at its first step, on a machine that has herdbook nowhere."""
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH" and not name.startswith("HERDBOOK_")}
    install = steps()[0]
    given = {"inputs.python": sys.executable}
    env = {**bare, "RUNNER_TEMP": str(tmp_path), "GITHUB_ACTION_PATH": str(pages.ROOT)}
    env |= {name: filled(text, given) for name, text in install["env"].items()}
    told = shell(install["run"], tmp_path, env, seconds=500)
    assert (0, "") == (told.returncode, told.stdout), told.stderr
    ran("echo hello | cat; exit 3", 3, tmp_path, bare)


def steps() -> list[dict[str, Any]]:
    action = yaml.safe_load((pages.ROOT / "action.yml").read_text(encoding="utf-8"))
    assert "composite" == action["runs"]["using"]
    assert ["bash", "bash"] == [step["shell"] for step in action["runs"]["steps"]]
    found: list[dict[str, Any]] = action["runs"]["steps"]
    return found


def shell(script: str, place: Path, env: dict[str, str], *, seconds: int) -> subprocess.CompletedProcess[str]:
    """A step of `shell: bash`, as the runner runs it: a file, without anybody's profile."""
    (place / "step.sh").write_text(script)
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(place / "step.sh")]
    return subprocess.run(command, env=env, cwd=place, capture_output=True, text=True, timeout=seconds)


def ran(command: str, code: int, tmp_path: Path, bare: dict[str, str]) -> None:
    """The second step: a job's command, told to a server, with its own exit code."""
    step = steps()[1]
    service = open_service(settings.load({"HERDBOOK_HOME": str(tmp_path / "server")}))
    with serving(service, key=KEY) as server:
        url = f"http://127.0.0.1:{server.address[1]}"
        given = {"inputs.url": url, "inputs.key": KEY, "inputs.entity": "acme/ci", "inputs.learn": "true", "inputs.run": command,
                 "runner.temp": str(tmp_path)}  # fmt: skip
        env = {**bare, "RUNNER_TEMP": str(tmp_path), **{name: filled(text, given) for name, text in step["env"].items()}}
        told = shell(step["run"], tmp_path, env, seconds=60)
        assert code == told.returncode, told.stderr
        assert "attested by its exit code" in told.stderr
        assert KEY not in told.stdout
        client = Client(url=url, key=KEY, tracked=False)
        ref = told.stderr.rpartition("herdbook trace ")[2].split()[0]
        trace = client.trace(ref)
        client.close()
    assert ("github-actions", command) == (trace["agent"], trace["task"])
    assert KEY not in json.dumps(trace)
    service.close()


def filled(text: str, given: dict[str, str]) -> str:
    """An expression of the runner's with its value."""
    for name, value in given.items():
        text = text.replace("${{ " + name + " }}", value)
    assert "${{" not in text
    return text
