"""What a source of logs is: lines since a moment, a page at a time, and which revision serves. It never asks a service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from herdbook.watch.findings import Line, RevisionState

LINES_PER_PAGE = 500  # lines of one moment are not parted, so that a time can be the next page's beginning


@dataclass(frozen=True)
class Page:
    """Lines in order, and where the next page begins; what begins there may not be written yet."""

    lines: tuple[Line, ...]
    next: str  # a cursor that only its source understands
    more: bool = False  # there is another page already


def page_of(lines: list[Line], since: str) -> Page:
    """The first page of lines in order of time; its cursor is the last one's."""
    size = LINES_PER_PAGE
    while size < len(lines) and lines[size].at == lines[size - 1].at:
        size += 1
    page = lines[:size]
    return Page(tuple(page), repr(page[-1].at) if page else since, len(lines) > size)


class Source(Protocol):
    """One service's logs."""

    def tail(self, service: str, since: str) -> Page:
        """The page after this cursor. The first cursor is a moment, in seconds since 1970."""
        ...

    def revision_state(self, service: str) -> RevisionState:
        """Which revision serves; empty where this source cannot know."""
        ...


class Unreadable(Exception):
    """The source does not answer, or not in the form that it documents: one sentence, for the diagnosis."""
