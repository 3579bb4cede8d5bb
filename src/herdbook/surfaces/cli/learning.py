"""What can be learned from a command that failed and then passed: which variable made the difference, and what it put right.

Two attempts at one command are compared. Only where exactly one variable differs, and what the failing one complained about is
gone from the other, is anything proposed: with two changed, nobody knows which it was. Attempts are kept on this machine only,
with digests of the variables' values under a salt, never the values.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

ATTEMPTS_MAX: Final = 40
COMMANDS_MAX: Final = 50
SYMPTOMS_MAX: Final = 40
SYMPTOM_CHARS_MAX: Final = 160
COMPLAINT: Final = re.compile(
    r"\b(?:FAILED|ERROR|FAIL|FATAL|panic|Traceback)\b|\b\w*(?:Error|Exception)\b|(?i:\b(?:error|fatal|failed|cannot|not found)\b)"
)
# What changes from one run to the next without meaning anything.
NOISE: Final = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{7,}\b|\d+(?:[.:,]\d+)*(?:ms|s)?|/(?:tmp|var/folders)/\S+")
# Variables that differ between any two runs, or that name the run itself.
VOLATILE: Final = re.compile(
    r"_|SHLVL|PWD|OLDPWD|COLUMNS|LINES|TERM\w*|WINDOWID|DISPLAY|HERDBOOK_\w+|(?:GITHUB|RUNNER|CI|BUILDKITE|CIRCLE|JENKINS|BUILD)_\w+"
    r"|SSH_\w+|XDG_\w+|DBUS_\w+|INVOCATION_ID|JOURNAL_STREAM|SYSTEMD_\w+|TMUX\w*|STY|RANDOM|SECONDS|PYTEST_CURRENT_TEST"
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of a command: its variables as digests, and what it complained about."""

    variables: Mapping[str, str]
    symptoms: tuple[str, ...]
    exit_code: int


@dataclass(frozen=True, slots=True)
class Lesson:
    """A variable that made the difference."""

    name: str
    put_right: str  # a complaint that was there without it and is gone with it
    exit_code: int  # of the attempt without it


def symptoms(tail: str) -> tuple[str, ...]:
    """The complaints of a failed run, without what changes from run to run; in no known words, its last line."""
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    found = [normal(line) for line in lines if COMPLAINT.search(line)] or [normal(line) for line in lines[-1:]]
    return tuple(dict.fromkeys(each for each in found if each))[-SYMPTOMS_MAX:]


def normal(line: str) -> str:
    """A line as it would read in another run: numbers, addresses and temporary paths are one sign."""
    return NOISE.sub("#", line.partition(" - ")[0].strip("=_- \t"))[:SYMPTOM_CHARS_MAX].strip()


def lessons(passing: Attempt, before: Sequence[Attempt]) -> list[Lesson]:
    """The variables of the passing attempt that a pair of attempts shows to matter, in order of name."""
    tried = [*before, passing]
    found: dict[str, Lesson] = {}
    for without in before:
        for with_it in tried:
            name = only_difference(without, with_it)
            if name is None or name in found or with_it.variables.get(name) != passing.variables.get(name):
                continue
            gone = [each for each in without.symptoms if each not in with_it.symptoms]
            if gone and set(with_it.symptoms) <= set(without.symptoms):
                found[name] = Lesson(name, gone[0], without.exit_code)
    return [found[name] for name in sorted(found)]


def only_difference(without: Attempt, with_it: Attempt) -> str | None:
    """The one variable that differs between two attempts and is set in the second."""
    names = {*without.variables, *with_it.variables}
    differing = [name for name in names if without.variables.get(name) != with_it.variables.get(name)]
    return differing[0] if len(differing) == 1 and differing[0] in with_it.variables else None


class Attempts:
    """The attempts of this machine that have not passed yet, by command, in one private file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._kept = loaded(path)

    def digests(self, env: Mapping[str, str]) -> dict[str, str]:
        """Each variable that could matter, with its value under this file's salt."""
        salt = bytes.fromhex(self._kept["salt"])
        stay = {name: value for name, value in env.items() if not VOLATILE.fullmatch(name)}
        return {name: blake2b(os.fsencode(value), key=salt, digest_size=9).hexdigest() for name, value in stay.items()}

    def before(self, entity: str, argv: Sequence[str]) -> list[Attempt]:
        """The failed attempts at this command since it last passed."""
        kept = self._kept["commands"].get(self._name(entity, argv), [])
        return [Attempt(each["variables"], tuple(each["symptoms"]), each["exit_code"]) for each in kept]

    def failed(self, entity: str, argv: Sequence[str], attempt: Attempt) -> None:
        name = self._name(entity, argv)
        kept = [*self._kept["commands"].pop(name, []), asdict(attempt)][-ATTEMPTS_MAX:]
        self._kept["commands"][name] = kept  # last, so that the oldest command goes first
        self._save()

    def passed(self, entity: str, argv: Sequence[str]) -> None:
        if self._kept["commands"].pop(self._name(entity, argv), None) is not None:
            self._save()

    def _name(self, entity: str, argv: Sequence[str]) -> str:
        said = json.dumps([entity, *argv]).encode()
        return blake2b(said, key=bytes.fromhex(self._kept["salt"]), digest_size=9).hexdigest()

    def _save(self) -> None:
        commands = dict(list(self._kept["commands"].items())[-COMMANDS_MAX:])
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump({**self._kept, "commands": commands}, file)
        os.replace(fresh, self.path)


def loaded(path: Path) -> dict[str, Any]:
    """What the file holds; a file that cannot be used is begun again, since all it costs is a lesson."""
    with suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict) and set(found) == {"salt", "commands"}:
            return found
    return {"salt": secrets.token_hex(16), "commands": {}}
