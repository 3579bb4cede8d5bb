"""An agent command that does whatever it likes: what is taken from it is bounded, and what it left behind is not waited for."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from herdbook.watch.actor import hand


def asked(folder: Path, code: str) -> dict[str, Any]:
    return hand.asked([sys.executable, "-c", code], str(folder / "agent"), {"logs.txt": "boom"}, env={})


def test_its_diagnosis_and_files_are_taken(tmp_path: Path) -> None:
    """The one thing that an agent is good at would be lost."""
    told = asked(tmp_path, "open('diagnosis.md', 'w').write('sorted by day'); open('proposed/a.py', 'w').write('A = 1')")
    assert {"agent": "exit code 0", "diagnosis": "sorted by day", "files": {"a.py": "A = 1"}} == told


@pytest.mark.parametrize(
    "code",
    [
        "import os; os.mkfifo('proposed/x'); os.mkfifo('diagnosis.md')",
        "import socket; socket.socket(socket.AF_UNIX).bind('proposed/x')",
        "import os; os.symlink('/etc/passwd', 'proposed/x'); os.symlink('/etc/passwd', 'diagnosis.md')",
        "import os; os.symlink('/dev/zero', 'proposed/x'); os.symlink('/dev/zero', 'diagnosis.md')",
        "import os; os.symlink('/', 'proposed/x'); os.symlink('..', 'proposed/y'); os.mkdir('diagnosis.md')",
        "import os; os.rmdir('proposed'); os.symlink('/etc', 'proposed')",
        "open('proposed/x', 'wb').truncate(1 << 40)",
        "open('proposed/x', 'wb').write(b'\\xff')",
        "open(b'proposed/\\xff', 'w').write('x')",
        "open('proposed/a\\nb', 'w').write('x')",
    ],
    ids=["pipe", "socket", "link", "device", "folder", "swapped", "hole", "no text", "no name", "two lines"],
)
def test_what_is_no_plain_text_file_is_left_out(tmp_path: Path, code: str) -> None:
    """The actor would wait at a pipe for ever, or put a file of the box's into a draft."""
    told = asked(tmp_path, code)
    assert ("", {}) == (told["diagnosis"], told["files"])


def test_a_great_many_files_are_not_all_read(tmp_path: Path) -> None:
    """A finding of any size would be one that nobody can keep."""
    code = "[open(f'proposed/{n}', 'w').write('x' * 60_000) for n in range(500)]"
    code += "; open('diagnosis.md', 'w').write('\\u20ac' * 100_000)"
    told = asked(tmp_path, code)
    assert hand.PROPOSED_BYTES_MAX >= sum(map(len, told["files"].values())) > 0
    assert len(told["diagnosis"].encode()) <= hand.TEXT_BYTES_MAX + 3


def test_a_flood_of_words_is_read_and_forgotten(tmp_path: Path) -> None:
    """A gigabyte of output would be a gigabyte of the box's memory, and the end of the watch."""
    code = "import os\nfor _ in range(1024): os.write(1, bytes(1 << 20))\nos.write(2, b'and then it broke'); os._exit(3)"
    told = asked(tmp_path, code)
    assert told["agent"].startswith("exit code 3: ")
    assert told["agent"].endswith("and then it broke")
    assert len(told["agent"]) < 700


def test_what_it_started_ends_with_it(tmp_path: Path) -> None:
    """A process of the agent's would go on changing what was read from it, as long as the box stands."""
    code = "import subprocess, sys; print(subprocess.Popen(['sleep', '600']).pid, file=open('diagnosis.md', 'w'))"
    told = asked(tmp_path, code)
    until = time.monotonic() + 30
    while Path(f"/proc/{told['diagnosis'].strip()}/stat").exists():
        state = Path(f"/proc/{told['diagnosis'].strip()}/stat").read_text().rpartition(")")[2].split()[0]
        if state == "Z":  # nobody here is its parent
            break
        assert time.monotonic() < until, state


def test_one_that_does_not_end_is_ended_and_what_it_wrote_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch would wait for it until its own time was over, and leave nothing."""
    monkeypatch.setattr(hand, "SECONDS_MAX", 1.0)
    monkeypatch.setattr(hand, "PIPE_SECONDS_MAX", 0.2)
    code = "import os, time; open('diagnosis.md', 'w').write('so far'); os.fork() or os.setsid(); time.sleep(600)"
    told = asked(tmp_path, code)
    assert told["agent"].startswith("ended after 1 seconds")
    kill_left(tmp_path)


def kill_left(folder: Path) -> None:
    """What left its group is the box's to end; here it is ours."""
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                if os.readlink(each / "cwd") == str(folder / "agent"):
                    os.kill(int(each.name), 9)
            except OSError:
                continue


def test_a_command_that_is_not_there_is_said(tmp_path: Path) -> None:
    """A slip in watch.toml would end the watch."""
    told = hand.asked(["no-such-agent"], str(tmp_path / "agent"), {}, env={})
    assert "FileNotFoundError" in told["agent"]
