"""How long things may be, and where they begin."""

from __future__ import annotations

import ast

from tests.tidy import tree

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60


def test_files_are_short() -> None:
    """A file that nobody can hold in mind would go unseen."""
    lengths = {source.name: len(source.lines) for source in tree.sources(*tree.CODE_FOLDERS)}
    for path in (tree.PACKAGE / "record" / "sql").rglob("*.sql"):
        lengths[path.relative_to(tree.ROOT).as_posix()] = len(path.read_text(encoding="utf-8").splitlines())
    assert {} == {name: lines for name, lines in lengths.items() if lines > FILE_LINES_MAX}


def test_functions_are_short() -> None:
    """A function that needs scrolling would go unseen."""
    found = [(source, node) for source in tree.sources(*tree.CODE_FOLDERS) for node in tree.functions(source)]
    lengths = {f"{source.name}:{node.lineno} {node.name}": (node.end_lineno or 0) - node.lineno + 1 for source, node in found}
    assert {} == {name: lines for name, lines in lengths.items() if lines > FUNCTION_LINES_MAX}


def test_modules_say_what_they_promise() -> None:
    """A module without a first sentence would leave its reader to guess."""
    silent = [source.name for source in tree.package() if source.tree.body and ast.get_docstring(source.tree) is None]
    assert [] == silent


def test_tests_say_what_would_be_broken() -> None:
    """A test whose failure explains nothing would be deleted rather than heeded."""
    found = [(source, node) for source in tree.sources("tests") for node in tree.functions(source)]
    silent = [(source, node) for source, node in found if node.name.startswith("test_") and not ast.get_docstring(node)]
    assert [] == [f"{source.name}:{node.lineno} {node.name}" for source, node in silent]


def test_the_client_stays_one_old_python_file() -> None:
    """A client that needs a newer Python, or a second file, could not be pushed into a cold box."""
    text = (tree.PACKAGE / "client.py").read_text(encoding="utf-8")
    ast.parse(text, feature_version=(3, 8))
    assert FILE_LINES_MAX >= len(text.splitlines())
