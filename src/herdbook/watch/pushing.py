"""What is put into a box: client.py and the watcher's own files of the standard library, under the names they are imported by."""

from __future__ import annotations

from functools import cache
from importlib import resources

FILES = ("__init__.py", "findings.py", "rules.py", "classify.py")
FOLDERS = ("sources", "actor")


@cache
def files() -> dict[str, bytes]:
    """By path in the box."""
    package = resources.files("herdbook")
    found = {"herdbook/__init__.py": b"", "herdbook/client.py": (package / "client.py").read_bytes()}
    found |= {f"herdbook/watch/{name}": (package / "watch" / name).read_bytes() for name in FILES}
    for folder in FOLDERS:
        for file in (package / "watch" / folder).iterdir():
            if file.name.endswith(".py"):
                found[f"herdbook/watch/{folder}/{file.name}"] = file.read_bytes()
    return found
