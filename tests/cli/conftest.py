"""The command line as a person meets it: as a process in an empty home, and in this process before a door with set answers."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from herdbook import __main__ as command


@dataclass
class Said:
    """What one command line came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class SetDoor:
    """Answers verbs with what a test set, and remembers what it was asked."""

    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def call(self, verb: str, fields: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((verb, fields))
        answer = self.answers.get(verb, {})
        if isinstance(answer, Exception):
            raise answer
        return {"session": fields.get("session") or "s_fresh", "existed": False, **answer} if verb == "start_session" else answer

    def close(self) -> None:
        pass

    def fields(self, verb: str) -> dict[str, Any]:
        """What the last call of this verb said."""
        return next(fields for name, fields in reversed(self.asked) if name == verb)


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SetDoor:
    """A record with set answers behind every command of this test."""
    monkeypatch.setenv("HERDBOOK_HOME", str(tmp_path))
    (tmp_path / "record.db").touch()
    found = SetDoor()
    monkeypatch.setattr(command, "open_door", lambda settings: found)
    return found


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Run a command line in this process."""

    def run(*argv: str) -> Said:
        code = command.main(list(argv))
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return run


@pytest.fixture
def herdbook(said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    """Run a command line in this process on a real record, in an empty home. Arguments may be bytes, as the system gives them."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)

    def run(*argv: str | bytes, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> Said:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            return said(*map(os.fsdecode, argv))

    return run


@pytest.fixture
def process(tmp_path: Path) -> Callable[..., Said]:
    """Run a command line as a process of its own, in an empty home."""

    def run(*argv: str | bytes, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> Said:
        environment = {**os.environ, "HOME": str(tmp_path), "LC_ALL": "C.UTF-8", **(env or {})}
        environment.pop("XDG_DATA_HOME", None)
        answer = subprocess.run(
            [sys.executable, "-W", "error", "-m", "herdbook", *argv],
            env=environment,
            input=stdin,
            capture_output=True,
            timeout=60,
            cwd=tmp_path,
            check=False,
        )
        return Said(answer.returncode, answer.stdout.decode(), answer.stderr.decode())

    return run
