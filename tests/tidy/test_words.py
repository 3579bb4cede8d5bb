"""Words, paths and files that have no place in the repository. The patterns are written so that they do not match themselves."""

from __future__ import annotations

import re

import pytest

from tests.tidy import tree

REFUSED = {
    "a path of somebody's machine": r"(?<![\w.$])/(?:root|work|home/[a-z]\w*|Users/[A-Za-z]\w*|opt/[a-z]\w*)/\w",
    "a package registry's host": r"\b(?:pypi|pythonhosted|npmjs|crates|rubygems|debian)[.](?:org|com|io)\b",
    "a folder beside the repository": r"[.][.]/shared\b|\bshared/(?:[a-z]+/)*[a-z_]+[.](?:md|py|txt|sql)\b",
    "how it is developed": r"(?i)\b(?:helper|sub|developer)[ -]session|\bbuild[ ]spec\b|\bthe[ ]C[E]O\b|\bco-authored[-]by\b",
    "a working paper": r"(?<![\w/.])(?:design|spec|style|checks)[.]md\b|\b(?:seeds|facts|prototypes|peers)/\w+[.]\w+",
    "somebody's key": r"\b(?:ghp|gho|sk-ant|xox[bp])[-_][A-Za-z0-9]{12,}|-----BEGIN (?:RSA |EC )?PRIVATE",
    "a merge that was not finished": r"(?m)^(?:<{7}|>{7}) ",
}
LEFTOVER = re.compile(r"(?:\.(?:orig|rej|bak|swp|tmp|log|pyc|prof)|~|nohup\.out|\.DS_Store|core\.\d+|\.db(?:-wal|-shm)?|\.env)$")


@pytest.mark.parametrize("what", REFUSED)
def test_the_repository_speaks_of_itself_alone(what: str) -> None:
    """The text would tell a stranger about a machine, a place or a person instead of the product."""
    pattern = re.compile(REFUSED[what])
    texts = [(path, tree.text_of(path)) for path in tree.repository_files()]
    found = [(path, match) for path, text in texts if text is not None for match in pattern.finditer(text)]
    assert [] == [f"{path.relative_to(tree.ROOT)}: {match[0]!r}" for path, match in found]


def test_nothing_is_left_over() -> None:
    """A stray file would be shipped to everybody who clones the repository."""
    assert [] == [str(path.relative_to(tree.ROOT)) for path in tree.repository_files() if LEFTOVER.search(path.name)]


def test_every_text_ends_with_one_line_end() -> None:
    """Tools that append to a file, or read it by line, would join or lose its last line."""
    paths = [path for path in tree.repository_files() if path.suffix in {".py", ".sql", ".md", ".toml", ".sh", ""}]
    texts = {str(path.relative_to(tree.ROOT)): tree.text_of(path) or "" for path in paths}
    assert [] == [name for name, text in texts.items() if text and (not text.endswith("\n") or text.endswith("\n\n"))]


@pytest.mark.parametrize(
    "what, text",
    [
        ("a path of somebody's machine", "see /ro" + "ot/notes"),
        ("a package registry's host", "https://py" + "pi.org/simple"),
        ("a folder beside the repository", ".." + "/shared"),
        ("how it is developed", "a helper" + " session wrote this"),
        ("a working paper", "see design" + ".md section 3"),
        ("a merge that was not finished", "<" * 7 + " HEAD"),
    ],
)
def test_each_refusal_can_fire(what: str, text: str) -> None:
    """A pattern that matches nothing would refuse nothing."""
    assert re.search(REFUSED[what], text)
