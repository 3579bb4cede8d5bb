"""The composite GitHub Action: its steps, run as the runner runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

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
    action = yaml.safe_load((pages.ROOT / "action.yml").read_text(encoding="utf-8"))
    assert "composite" == action["runs"]["using"]
    step = action["runs"]["steps"][1]
    installed = tmp_path / "herdbook" / "bin"
    installed.mkdir(parents=True)
    (installed / "herdbook").write_text(f'#!/bin/sh\nexec {sys.executable} -m herdbook "$@"\n')
    (installed / "herdbook").chmod(0o755)
    service = open_service(settings.load({"HERDBOOK_HOME": str(tmp_path / "server")}))
    with serving(service, key=KEY) as server:
        url = f"http://127.0.0.1:{server.address[1]}"
        given = {"inputs.url": url, "inputs.key": KEY, "inputs.entity": "acme/ci", "inputs.learn": "true", "inputs.run": command,
                 "runner.temp": str(tmp_path)}  # fmt: skip
        env = {**os.environ, "RUNNER_TEMP": str(tmp_path), **{name: filled(text, given) for name, text in step["env"].items()}}
        told = subprocess.run(["bash", "-eo", "pipefail", "-c", step["run"]], env=env, capture_output=True, text=True, timeout=60)
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
