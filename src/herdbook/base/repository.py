"""The entity path of the folder somebody works in, read from git's own files: no program is started for it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

REMOTE: Final = re.compile(r'\[remote "origin"\][^\[]*?^\s*url\s*=\s*(\S+)', re.MULTILINE | re.DOTALL)
OWNER_AND_NAME: Final = re.compile(r"[/:]([\w.-]+)/([\w.-]+?)(?:\.git)?/?$")


def entity_of(folder: str) -> str:
    """`owner/name` of the repository's origin, else the name of its folder, else of this one."""
    root = root_of(folder)
    if root is not None:
        found = REMOTE.search(config_text(root))
        named = OWNER_AND_NAME.search(found[1]) if found else None
        if named:
            return f"{named[1]}/{named[2]}".lower()
    return (os.path.basename(os.path.realpath(root or folder)) or "machine").lower()


def root_of(folder: str) -> Path | None:
    """The nearest folder above that is a repository's."""
    here = Path(os.path.realpath(folder))
    return next((each for each in (here, *here.parents) if (each / ".git").exists()), None)


def config_text(root: Path) -> str:
    git = root / ".git"
    try:
        if git.is_file():  # a worktree: its .git names the real one, whose common folder has the configuration
            real = Path(git.read_text(encoding="utf-8").partition("gitdir:")[2].strip())
            git = (root / real).parent.parent
        return (git / "config").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
