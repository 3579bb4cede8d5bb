"""Who imports whom: the layers, the client's independence, and modules that nobody uses."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.tidy import tree

# Started rather than imported: by the command, by a box, or by whoever tests against herdbook.
ENTRY_POINTS = ("herdbook", "herdbook.__main__", "herdbook.client", "herdbook.testing")
BY_NAME = ("herdbook.surfaces.adapters",)  # imported by whoever uses the library that each adapts
PUSHED_WHOLE = ("herdbook.surfaces.demo.suite", "herdbook.surfaces.demo.agent")  # copied into the demo's boxes as files


def imported(source: tree.Source) -> Iterator[str]:
    """Every module a source may load, also by name: `import_module("herdbook.x")` counts."""
    here = source.module.split(".")
    home = here if source.path.name == "__init__.py" else here[:-1]
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = home[: len(home) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("herdbook."):
            yield node.value


def is_in(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(package + ".") for package in packages)


def test_the_layers_hold() -> None:
    """A room that imports upwards could no longer be read, tested or replaced alone."""
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-logo"]
    answer = subprocess.run(command, cwd=tree.ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert 0 == answer.returncode, answer.stdout + answer.stderr


def test_the_client_needs_only_the_standard_library() -> None:
    """One more import, and the client could not be pushed into a box that has nothing but Python."""
    client = next(source for source in tree.package() if source.module == "herdbook.client")
    roots = {name.split(".")[0] for name in imported(client)} - {"__future__"}
    assert set() == roots - sys.stdlib_module_names


def test_every_module_is_used() -> None:
    """Dead code would be read, kept working and believed by everybody who comes later."""
    used = {name for source in tree.package() for name in imported(source) if name != source.module}
    ordinary = [source.module for source in tree.package() if source.path.name != "__init__.py"]
    dead = [name for name in ordinary if name not in used and name not in ENTRY_POINTS[:3]]
    assert [] == [name for name in dead if not is_in(name, (*PUSHED_WHOLE, *BY_NAME, ENTRY_POINTS[3]))]


def test_herdbook_loads_nothing_heavy_until_it_is_used() -> None:
    """`import herdbook` and `--version` would become slow for everybody, one import at a time."""
    heavy = {"msgspec", "starlette", "uvicorn", "httptools", "sqlite3", "asyncio", "ssl", "logging", "http.client"}
    code = "import sys, herdbook; print(*sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert set() == heavy & set(answer.stdout.split())
