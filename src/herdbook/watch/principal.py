"""The principal's own files: gates, their tests and the watcher's settings, written once into a repository and then theirs.

Nothing that is there already is overwritten. The gates that run are the ones that the settings name.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

from herdbook.base import files
from herdbook.base.errors import Conflict, InvalidRequest
from herdbook.watch import gates
from herdbook.watch.findings import KnownClass, Verdict

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
    spec = importlib.util.spec_from_file_location("principals_gates", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InvalidRequest(
            f"there are no gates at {path}: write them with `herdbook watch init`, or correct `gates` in watch.toml"
        )
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as problem:  # because it is a person's file, which may hold anything
        raise InvalidRequest(f"{path} cannot be run, mend it: {type(problem).__name__}: {problem}") from problem
    found = getattr(module, "should_draft_pr", None)
    if not callable(found):
        raise InvalidRequest(f"{path} has no should_draft_pr: compare it with `herdbook watch init`")
    return guarded(found, path)


def guarded(gate: Callable[..., Any], path: Path) -> Gate:
    """A gate that fails, or says something else than a verdict, allows nothing and says so: it ends no worker."""

    def asked(label: str, signals: Any, matched_class: KnownClass | None, history: Any) -> Verdict:
        try:
            said = gate(label, signals, matched_class, history)
        except (Exception, SystemExit) as problem:  # because what the file does is not ours to foresee
            return gates.no(f"{path.name} failed ({type(problem).__name__}: {problem}): a human should mend it", matched_class)
        if not isinstance(said, Verdict) or not isinstance(said.allowed, bool):
            return gates.no(f"{path.name} gave no verdict but {said!r:.80}: a human should mend it", matched_class)
        return said

    return asked
