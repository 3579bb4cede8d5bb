"""Links lead somewhere, and the architecture names things that are there."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

from tests.docs import pages
from tests.tidy import tree

TEST_NAME = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
CODE_FILE = re.compile(r"`((?:src|docs|tests|bench|examples)/[\w/.-]+\.\w+)`")


def broken(page: Path, target: str) -> bool:
    if target.startswith(("https://", "mailto:")):
        return False
    path, _, anchor = unquote(target).partition("#")
    place = (page.parent / path).resolve() if path else page
    if not place.exists() or not place.is_relative_to(pages.ROOT):
        return True
    return bool(anchor) and place.suffix == ".md" and anchor not in pages.anchors(place.read_text(encoding="utf-8"))


def test_every_link_resolves() -> None:
    """A reader would be sent to a page or a heading that is not there."""
    found = [(page, target) for page in pages.pages() for target in pages.links(page.read_text(encoding="utf-8"))]
    assert [] == [f"{page.relative_to(pages.ROOT)}: {target}" for page, target in found if broken(page, target)]


def test_every_page_can_be_reached() -> None:
    """A page that nothing links to would never be read."""
    linked = set()
    for page in pages.pages():
        targets = [unquote(target).partition("#")[0] for target in pages.links(page.read_text(encoding="utf-8"))]
        linked |= {(page.parent / target).resolve() for target in targets if not target.startswith("https:")}
    docs = [page for page in pages.pages() if page.is_relative_to(pages.ROOT / "docs")]
    assert [] == [str(page.relative_to(pages.ROOT)) for page in docs if page not in linked]


def test_named_tests_exist() -> None:
    """An invariant would claim a guard that is not there."""
    missing = []
    for file, function in TEST_NAME.findall(pages.text_of("docs/architecture.md")):
        path = pages.ROOT / file
        if not path.is_file() or (function and f"def {function}(" not in path.read_text(encoding="utf-8")):
            missing.append(f"{file}::{function}" if function else file)
    assert [] == missing


def test_named_files_exist() -> None:
    """A reader would look for a file that has moved."""
    named = [(page, name) for page in pages.pages() for name in CODE_FILE.findall(page.read_text(encoding="utf-8"))]
    assert [] == [f"{page.name}: {name}" for page, name in named if not (pages.ROOT / name).exists()]


def test_every_room_is_in_the_picture() -> None:
    """A room without a row in the table would have no stated purpose."""
    rooms = sorted(path.parent.name for path in tree.PACKAGE.glob("*/__init__.py"))
    text = pages.text_of("docs/architecture.md")
    assert [] == [room for room in rooms if f"| `{room}/`" not in text]
