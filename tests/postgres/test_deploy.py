"""What is handed to whoever runs a server: it starts what there is, with options that there are, and gives away nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from herdbook.__main__ import COMMANDS
from herdbook.base.settings import SETTINGS
from tests.tidy import tree

FILES = sorted((tree.ROOT / "deploy").iterdir())
TEXTS = {file.name: file.read_text(encoding="utf-8") for file in FILES if file.is_file()}


def test_there_is_something_to_deploy() -> None:
    """With no file found, every check here would pass on nothing."""
    assert {"Dockerfile", "compose.yaml", "herdbook.service"} <= set(TEXTS)


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_started_is_there(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A container or a unit would fail at its first start, on somebody else's machine."""
    from herdbook.__main__ import main

    text = TEXTS[name].replace('", "', " ").replace('"', " ")
    started = re.findall(r"herdbook (serve|db \w+)((?: --[\w-]+)?[^\n]*)", text)
    assert started
    for command, line in started:
        assert command.split()[0] in COMMANDS
        main([command.split()[0], "--help"])
        told = capsys.readouterr().out
        assert [] == [option for option in re.findall(r"--[a-z][\w-]+", line) if option not in told]
    named = set(re.findall(r"\bHERDBOOK_[A-Z_]+", text))
    assert set() == named - {each.env for each in SETTINGS}


@pytest.mark.parametrize("name", TEXTS)
def test_no_secret_stands_in_a_file(name: str) -> None:
    """A password that was meant as an example would be somebody's password."""
    assert [] == re.findall(r"(?i)password\s*[:=]\s*\S+|://\w+:[^@$\s]+@", TEXTS[name].replace("POSTGRES_PASSWORD_FILE", ""))


def test_what_the_image_copies_is_there() -> None:
    """The image could not be built."""
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", TEXTS["Dockerfile"], re.MULTILINE)
    assert [] == [each for line in copied for each in line.split() if not (tree.ROOT / each).exists()]


@pytest.mark.long
def test_the_unit_is_what_systemd_takes(tmp_path: Path) -> None:
    """A misspelt line of a unit is passed over in silence, and the server runs without what it said."""
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("cannot run here: no systemd-analyze")
    unit = tmp_path / "herdbook.service"
    program = tmp_path / "herdbook"
    program.symlink_to("/bin/true")  # that it is there is asked, too
    unit.write_text(TEXTS["herdbook.service"].replace("ExecStart=herdbook", f"ExecStart={program}"))
    done = subprocess.run([verify, "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60, check=False)
    assert (0, "") == (done.returncode, "\n".join(line for line in done.stderr.splitlines() if "herdbook" in line))
