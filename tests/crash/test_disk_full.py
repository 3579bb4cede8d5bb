"""A full disk under the record: writes are refused by name, asking goes on, nothing acknowledged is lost, writes come back."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.crash.running import Program, figures

SECONDS_TO_COME_BACK = 5.0


@cache
def small_disk() -> tuple[str, ...]:
    """How to run something with a disk of our own: without root in a user's namespace, or as root."""
    mount = 'mount -t tmpfs -o size=2m,mode=700 none "$DISK" && exec "$@"'
    unshare = shutil.which("unshare") or "unshare"
    for namespaces in ((unshare, "-Urm"), (unshare, "-m")):
        command = (*namespaces, "sh", "-c", f'DISK="$1" && shift && {mount}', "sh")
        try:
            answer = subprocess.run([*command, "/mnt", "true"], capture_output=True, timeout=20, check=False)
        except OSError:
            break
        if answer.returncode == 0:
            return command
    pytest.skip("no small disk can be mounted here: neither as this user in a namespace (`unshare -Urm`), nor as root")


def run(home: Path, disk: Path, what: str, wrapped_by: tuple[str, ...]) -> dict[str, Any]:
    disk.mkdir()
    with Program("full_disk", what, str(disk), str(home), home=disk, wrapped_by=wrapped_by) as program:
        found: dict[str, Any] = program.must_say()
    figures(what, found)
    return found


def check(found: dict[str, Any]) -> None:
    assert {"disk_full 507"} == set(found["codes"]), "a write was refused by another name"
    assert [] == found["lost"], "acknowledged and gone"
    assert {} == found["reads lost"], "an answered read is gone"
    assert [] == found["refused again"], "a write did not come back after there was room"
    assert found["seconds"] < SECONDS_TO_COME_BACK
    assert "disk_full" == found["outcome"]
    assert {"o0": 1, "o1": 1} == found["outcomes"]
    may_be_refused = {"tracked read", "tracked brief"}
    said = found["asked"]
    assert {"answered"} == {said[way] for way in said.keys() - may_be_refused}, said
    assert {said[way] for way in may_be_refused} | set(found["reads"]) <= {"answered", "disk_full"}, found
    assert "answered" == found["started"], "nobody new may ask"


@pytest.mark.slow
def test_a_full_disk_in_process(home: Path) -> None:
    """An agent would lose what it was told is written, or could not even ask."""
    check(run(home, home / "disk", "process", (*small_disk(), str(home / "disk"))))


@pytest.mark.slow
def test_a_full_disk_under_a_server(home: Path) -> None:
    """A server would answer 500, or hold on to a broken connection until somebody starts it again."""
    found = run(home, home / "disk", "server", (*small_disk(), str(home / "disk")))
    check(found)
    assert (0, 0) == (found["server ended"], found["tracebacks"])


def test_a_file_that_may_not_grow(home: Path) -> None:
    """A quota, which fails in the middle of a call rather than before it, would tear what is appended."""
    check(run(home, home / "disk", "limit", ()))
