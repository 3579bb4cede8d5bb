"""Habits that let mistakes pass unseen, each refused with the place it was found."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from io import StringIO

import pytest

from tests.tidy import tree

SUPPRESSIONS_MAX = 5
MAY_PRINT = ("src/herdbook/surfaces/", "src/herdbook/testing/", "src/herdbook/client.py", "src/herdbook/__main__.py")
BROAD = {"Exception", "BaseException"}


def is_broad(caught: ast.expr | None) -> bool:
    if caught is None:
        return True
    members = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(isinstance(member, ast.Name) and member.id in BROAD for member in members)


def broad_lines(source: tree.Source) -> Iterator[int]:
    """Where everything is caught and not raised again: `except Exception`, a bare except, suppress(Exception)."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ExceptHandler) and is_broad(node.type) and not raises_again(node.body[-1]):
            yield node.lineno
        elif isinstance(node, ast.Call) and called(node) == "suppress" and any(map(is_broad, node.args)):
            yield node.lineno


def raises_again(last: ast.stmt) -> bool:
    return isinstance(last, ast.Raise) and last.exc is None


def called(call: ast.Call) -> str:
    """The last name of what is called; nothing where it has none."""
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def comments(source: tree.Source, mark: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Those with the mark. Only a file that has it somewhere is taken apart: that costs more than everything else here."""
    if mark.search(source.text):
        for token in tokenize.generate_tokens(StringIO(source.text).readline):
            if token.type == tokenize.COMMENT and mark.search(token.string):
                yield token.start[0], token.string


def test_catching_everything_needs_a_reason() -> None:
    """A broad except without `# because ...` on its line or the next would hide the failure that nobody foresaw."""
    places = [(source, line) for source in tree.sources("src", "bench", "examples") for line in broad_lines(source)]
    assert [] == [f"{source.name}:{line}" for source, line in places if not has_reason(source.lines[line - 1 : line + 1])]


def has_reason(lines: list[str]) -> bool:
    return any("# because " in line for line in lines)


def test_only_surfaces_print() -> None:
    """A print below a surface would end up in somebody's JSON."""
    quiet = [source for source in tree.package() if not source.name.startswith(MAY_PRINT)]
    calls = [(source, node) for source in quiet for node in ast.walk(source.tree) if isinstance(node, ast.Call)]
    printing = [(source, node) for source, node in calls if isinstance(node.func, ast.Name) and node.func.id == "print"]
    assert [] == [f"{source.name}:{node.lineno}" for source, node in printing]


def test_promises_have_an_issue() -> None:
    """A note to self without an issue number would never be kept."""
    mark = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b(?! \(#\d+\))")
    found = [(source, line) for source in tree.sources(*tree.CODE_FOLDERS) for line, _ in comments(source, mark)]
    assert [] == [f"{source.name}:{line}" for source, line in found]


def test_suppressions_stay_few_and_name_their_rule() -> None:
    """Checks that are switched off one line at a time would end up checking nothing."""
    mark = re.compile(r"#\s*(?:type:\s*ignore|noqa|pragma|mypy:|ruff:|pyright:)")
    found = [(f"{source.name}:{line}", text) for source in tree.package() for line, text in comments(source, mark)]
    assert SUPPRESSIONS_MAX >= len(found), found
    named = re.compile(r"type: ignore\[[\w, -]+\]|noqa: [A-Z]+\d+")
    assert [] == [place for place, text in found if not named.search(text)]


@pytest.mark.parametrize(
    "text, broad",
    [
        ("try: x\nexcept Exception: y", [2]),
        ("try: x\nexcept: y", [2]),
        ("try: x\nexcept (ValueError, BaseException): y", [2]),
        ("with contextlib.suppress(Exception): y", [1]),
        ("with suppress(Exception): y", [1]),
        ("try: x\nexcept Exception as found:\n  raise found", [2]),
        ("try: x\nexcept ValueError: y", []),
        ("try: x\nexcept BaseException:\n  y\n  raise", []),
    ],
)
def test_the_detector_sees_every_form(text: str, broad: list[int]) -> None:
    """A detector that misses a form of catching everything would pass all of them."""
    source = tree.Source(tree.ROOT / "src" / "sample.py", text, ast.parse(text))
    assert broad == list(broad_lines(source))
