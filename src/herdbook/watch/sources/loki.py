"""A query of Loki, forward from a moment; which revision serves, Loki does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from herdbook.watch.findings import Line, RevisionState
from herdbook.watch.sources.protocol import LINES_PER_PAGE, Page
from herdbook.watch.sources.web import Web

if TYPE_CHECKING:
    from collections.abc import Mapping

NANOSECONDS = 1_000_000_000


class LokiSource:
    """`query`. A cursor is the last line's time in nanoseconds."""

    def __init__(self, web: Web, options: Mapping[str, str]) -> None:
        self.web, self.query = web, options["query"]

    def tail(self, service: str, since: str) -> Page:
        start = int(since[2:]) + 1 if since.startswith("n=") else int(float(since) * NANOSECONDS)
        query = {"query": self.query, "start": str(start), "limit": str(LINES_PER_PAGE), "direction": "forward"}
        found = self.web.json("GET", "/loki/api/v1/query_range", query=query)
        streams = (found.get("data") or {}).get("result") or []
        told = [(int(value[0]), str(value[1]), revision_of(stream)) for stream in streams for value in stream.get("values", [])]
        values = sorted(told)
        full = len(values) >= LINES_PER_PAGE
        if full and values[0][0] < values[-1][0]:  # the last moment may go on beyond the limit: it is the next page's
            values = [value for value in values if value[0] < values[-1][0]]
        lines = tuple(Line(text, when / NANOSECONDS, revision) for when, text, revision in values)
        return Page(lines, f"n={values[-1][0]}" if values else since, full)

    def revision_state(self, service: str) -> RevisionState:
        return RevisionState()


def revision_of(stream: Mapping[str, Mapping[str, str]]) -> str:
    return str((stream.get("stream") or {}).get("revision", ""))
