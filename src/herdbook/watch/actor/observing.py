"""Watching services' logs until the time is over, or what is known settles it. It reads logs and revisions, never the service.

A service that answers on its address says nothing about the revision that is still starting: that is why nothing here asks it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from herdbook.watch.classify import LINE_CHARS_MAX, classify_from_logs
from herdbook.watch.findings import Classification, Line, RevisionState
from herdbook.watch.sources.moments import readable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from herdbook.watch.findings import KnownClass
    from herdbook.watch.sources.protocol import Source

PAGES_AT_ONCE = 20
LINES_KEPT_MAX = 20_000
CHARS_KEPT_MAX = 4_000_000


@dataclass
class Watched:
    """What was seen of one service."""

    name: str
    cursor: str
    lines: list[Line] = field(default_factory=list)
    state: RevisionState = field(default_factory=RevisionState)
    pages: int = 0
    dropped: int = 0
    unreadable: str = ""
    old_served: bool = False
    looked: bool = False
    found: Classification = field(default_factory=lambda: Classification("noise"))

    def read(self, source: Source) -> None:
        """What is new, page by page."""
        self.looked = True
        try:
            for _ in range(PAGES_AT_ONCE):
                page = source.tail(self.name, self.cursor)
                self.cursor = page.next
                self.pages += bool(page.lines)
                self.lines += (Line(readable(each.text), each.at, readable(each.revision)) for each in page.lines)
                if not page.more:
                    break
            self.state = source.revision_state(self.name)
            self.old_served = self.old_served or self.state.old_serves
            self.unreadable = ""
        except Exception as problem:  # because whoever writes what is read here must not be able to end the watch
            self.unreadable = str(problem) or type(problem).__name__
        self.forget()

    def forget(self) -> None:
        """The oldest lines, where there are more than can be judged in a turn; how many is in the trace."""
        left, over = CHARS_KEPT_MAX, max(0, len(self.lines) - LINES_KEPT_MAX)
        for number in range(len(self.lines) - 1, over - 1, -1):
            left -= min(len(self.lines[number].text), LINE_CHARS_MAX)
            if left < 0:
                over = number + 1
                break
        self.dropped += over
        del self.lines[:over]

    def judge(self, known: Sequence[KnownClass], until: float | None) -> None:
        state = self.state
        if self.old_served and not state.old_serves:
            state = RevisionState(state.serving, state.newest, state.newest_ready, old_serves=True, detail=state.detail)
        self.found = classify_from_logs(self.lines, state, known, until=until)

    def seen(self, seconds: float) -> None:
        """A watch to which nobody said anything, neither a log nor a platform, has seen nothing: that is no quiet."""
        if not self.lines and not self.dropped and not self.unreadable and self.state == RevisionState():
            self.unreadable = f"not a line and no revision in {seconds:g} s: look whether this is where it logs"

    @property
    def settled(self) -> bool:
        """A known class that has earned it, and nothing else that would fit: more reading would add nothing."""
        match = self.found.matched
        return match is not None and match.acting and not self.found.signals.ambiguous_with


def observe(
    sources: Mapping[str, Source],
    known: Sequence[KnownClass],
    *,
    since: float,
    seconds: float,
    poll_seconds: float,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> list[Watched]:
    """Every service, until the time is over or one of them is settled."""
    watched = [Watched(name, repr(since)) for name in sources]
    until = now() + seconds
    while True:
        for each in watched:
            if each.looked and now() >= until:  # many sources that are slow must not outlast the budget
                break
            each.read(sources[each.name])
            each.judge(known, None)
        left = until - now()
        if left <= 0 or any(each.settled for each in watched):
            break
        sleep(min(poll_seconds, left))
    for each in watched:
        each.seen(seconds)
        if not each.settled:
            each.judge(known, now())
    return watched
