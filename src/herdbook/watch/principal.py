"""The principal's own files: gates, their tests and the watcher's settings, written once into a repository and then theirs.

Nothing that is there already is overwritten. The gates that run are the ones that the settings name, in a process of their own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any, Final

import msgspec

from herdbook.base import files
from herdbook.base.errors import Conflict, InvalidRequest
from herdbook.watch import gates
from herdbook.watch.findings import Instance, KnownClass, Signals, Verdict

GATE_SECONDS_MAX: Final = 10.0
Gate = Callable[..., Verdict]
FILES = {
    "gates.py": "../gates.py",
    "test_gates.py": "test_gates.txt",
    "watch.toml": "watch.toml",
}  # what is written, and from what


def init(directory: Path) -> list[Path]:
    """Write the principal's files. Refuses if one of them exists, and then writes none."""
    taken = [name for name in FILES if (directory / name).exists()]
    if taken:
        raise Conflict(f"{directory / taken[0]} is there already and is yours: remove it, or choose another directory")
    directory.mkdir(parents=True, exist_ok=True)
    templates = resources.files("herdbook.watch") / "templates"
    for name, source in FILES.items():
        files.write(directory / name, (templates / source).read_bytes())
    return [directory / name for name in FILES]


def load_gate(path: Path | None) -> Gate:
    """`should_draft_pr` of this file, or ours if there is none. A file without it is refused rather than passed over."""
    if path is None:
        return gates.should_draft_pr
    if not path.is_file():
        raise InvalidRequest(
            f"there are no gates at {path}: write them with `herdbook watch init`, or correct `gates` in watch.toml"
        )
    told = answer_of(path, {})
    if "missing" in told:
        raise InvalidRequest(f"{path} has no {told['missing']}: compare it with `herdbook watch init`")
    if "failed" in told:
        raise InvalidRequest(f"{path} cannot be run, mend it: {told['failed']}")
    return guarded(path)


def guarded(path: Path) -> Gate:
    """A gate that fails, hangs, or says something else than a verdict, allows nothing and says so: it ends no worker."""

    def asked(label: str, signals: Signals, matched_class: KnownClass | None, history: Sequence[Instance]) -> Verdict:
        known = None if matched_class is None else asdict(matched_class)
        question = {"label": label, "signals": asdict(signals), "matched_class": known, "history": list(map(asdict, history))}
        told = answer_of(path, question)
        if "failed" in told:
            return gates.no(f"{path.name} failed ({told['failed']}): a human should mend it", matched_class)
        try:
            return msgspec.convert(told.get("verdict"), Verdict)
        except msgspec.ValidationError:
            odd = told.get("odd") or f"{told.get('verdict')!r:.80}"
            return gates.no(f"{path.name} gave no verdict but {odd}: a human should mend it", matched_class)

    return asked


def answer_of(path: Path, question: dict[str, Any]) -> dict[str, Any]:
    """What the file's process says, or that it `failed`. It is ended with all it started when its time is over."""
    command = [sys.executable, "-m", "herdbook.watch.gate_process", str(path.resolve())]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True) as running:
        try:
            said = running.communicate(json.dumps(question).encode(), timeout=GATE_SECONDS_MAX)[0]
            failed = f"it ended with exit code {running.returncode} and no answer"
        except subprocess.TimeoutExpired:
            said, failed = b"", f"it gave no answer within {GATE_SECONDS_MAX:g} seconds"
        with suppress(OSError):  # because there may be nobody left of it
            os.killpg(running.pid, signal.SIGKILL)
    try:
        told: dict[str, Any] = json.loads(said)
    except ValueError:
        return {"failed": failed}
    return told
