"""The repository as the tidy tests see it: its files, and its Python parsed once."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "herdbook"
CODE_FOLDERS = ("src", "tests", "bench", "docs", "examples")
NOT_OURS = {".git", ".venv", "build", "dist", "__pycache__"}


class Source(NamedTuple):
    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def module(self) -> str:
        parts = self.path.relative_to(ROOT / "src").with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


def sources(*folders: str) -> tuple[Source, ...]:
    """Every Python file below these folders of the repository."""
    return tuple(source for folder in sorted(folders) for source in sources_of(folder))


@cache
def sources_of(folder: str) -> tuple[Source, ...]:
    paths = sorted(path for path in (ROOT / folder).rglob("*.py") if not NOT_OURS & set(path.parts))
    texts = [(path, path.read_text(encoding="utf-8")) for path in paths]
    return tuple(Source(path, text, ast.parse(text, filename=str(path))) for path, text in texts)


def package() -> tuple[Source, ...]:
    return sources("src")


@cache
def repository_files() -> tuple[Path, ...]:
    """What is, or is about to be, in the repository: git's own list, or a walk where there is no git."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        answer = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True, timeout=30)
        paths = [ROOT / name for name in answer.stdout.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        paths = [path for path in ROOT.rglob("*") if not any(map(is_made, path.relative_to(ROOT).parts))]
    return tuple(sorted(path for path in paths if path.is_file()))


def is_made(part: str) -> bool:
    """A folder that git or a tool made: they hide their own, or are named in NOT_OURS."""
    return part in NOT_OURS or (part.startswith(".") and part not in (".ci", ".gitignore"))


def text_of(path: Path) -> str | None:
    """A file's text, or None for one that is not text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def functions(source: Source) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def texts(source: Source) -> Iterator[tuple[int, str]]:
    """Every string in the code with its line, docstrings left out."""
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node.body for node in ast.walk(source.tree) if isinstance(node, holders) and node.body]
    docstrings = {id(body[0].value) for body in bodies if isinstance(body[0], ast.Expr)}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value
