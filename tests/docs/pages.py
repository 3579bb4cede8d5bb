"""The documentation as the tests see it: its pages, headings, links and code blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r"^(?P<before><!-- not run: .+? -->\n)?```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")


class Block(NamedTuple):
    page: Path
    line: int
    language: str
    body: str
    is_run: bool

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"


def pages() -> list[Path]:
    named = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    inside = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    return [*named, *sorted(inside)]


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for fence in FENCE.finditer(text):
        line = text.count("\n", 0, fence.start("language")) + 1
        yield Block(page, line, fence["language"], fence["body"], fence["before"] is None)


def headings(text: str) -> list[str]:
    return HEADING.findall(FENCE.sub("", text))


def anchors(text: str) -> set[str]:
    """Anchors as the usual renderers make them: lower case, punctuation dropped, spaces to hyphens."""
    plain = [re.sub(r"[`*]|\[([^\]]+)\]\([^)]+\)", r"\1", heading) for heading in headings(text)]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


def links(text: str) -> list[str]:
    return LINK.findall(FENCE.sub("", text))
