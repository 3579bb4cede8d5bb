"""The record as a key sees it: what lies outside of its reach is not there. Not hidden, not refused: answered as what never was.

Everything a verb asks goes through here, so a verb cannot forget to ask whether it may: names of paths become numbers only within
reach, and whatever walks paths walks those within reach. What comes of it is what a record would answer that held nothing else.
"""

from __future__ import annotations

import heapq
import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from herdbook.base import strict_json
from herdbook.base.errors import HerdbookError
from herdbook.base.reach import Reach, is_below, touch
from herdbook.record import trust
from herdbook.record.record import Record, nearest
from herdbook.record.store.protocol import Reader
from herdbook.record.types import Head, Version

PAGE_MIN = 100
NEIGHBOURS_AFTER, NEIGHBOURS_BEFORE = 200, 50


class ScopedRecord(Record):
    """One reach over a record, with the record's own store, caches and key."""

    def __init__(self, whole: Record, reach: Reach) -> None:
        self.__dict__.update(whole.__dict__)
        self.reach = reach

    def path_id(self, tenant: int, path: str, reader: Reader | None = None) -> int | None:
        return super().path_id(tenant, path, reader) if self.reach.covers(path) else None

    def path_ids(self, tenant: int, paths: Sequence[str]) -> list[int]:
        return super().path_ids(tenant, [path for path in paths if self.reach.covers(path)])

    def paths_below(self, tenant: int, path: str) -> list[str]:
        return self.reach.within(super().paths_below(tenant, path))

    def reached_paths(self, tenant: int) -> list[str]:
        return [path for root in self.reach.roots() for path in self.paths_below(tenant, root)]

    def near(self, tenant: int, path: str, limit: int) -> list[str]:
        known = sorted(self.reached_paths(tenant))
        first, own = bisect_left(known, path.split("/", maxsplit=1)[0]), bisect_left(known, path)
        found = {*known[first : first + NEIGHBOURS_AFTER], *known[max(0, own - NEIGHBOURS_BEFORE) : own]}
        return nearest(path, sorted(found - {path}), limit=limit)

    def page(self, tenant: int, under: str, path: str, key: str, *, limit: int) -> list[Head]:
        starts = {under if is_below(under, root) else root for root in self.reach.roots() if touch(under, root)}
        walks = [self._walk(tenant, start, path, key, at_once=max(limit, PAGE_MIN)) for start in sorted(starts)]
        return list(islice(heapq.merge(*walks, key=lambda head: (head.path, head.key)), limit))

    def versions(self, tenant: int, ids: Iterable[int]) -> dict[int, Version | HerdbookError]:
        found = super().versions(tenant, ids)
        return {number: self._seen(version) if isinstance(version, Version) else version for number, version in found.items()}

    def version(self, tenant: int, number: int) -> Version:
        return self._seen(super().version(tenant, number))

    def base_rates(self, tenant: int, paths: Sequence[str]) -> dict[str, float]:
        found = super().base_rates(tenant, self.reach.within(paths))
        return {path: found.get(path, trust.base_rate(0, 0)) for path in paths}

    def _seen(self, version: Version) -> Version:
        """Without its links to what is not there."""
        if version.links_text is None:
            return version
        links = [link for link in json.loads(version.links_text) if self.reach.covers(link["entity"])]
        return replace(version, links_text=strict_json.canonical(links) if links else None)

    def _walk(self, tenant: int, under: str, path: str, key: str, *, at_once: int) -> Iterator[Head]:
        """Entries below a path in order, after a path and key, page by page as they are wanted."""
        after = (path, key) if path > under else (under, key if path == under else "")
        while True:
            heads = super().page(tenant, under, *after, limit=at_once)
            yield from (head for head in heads if self.reach.covers(head.path))
            if len(heads) < at_once:
                return
            after = (heads[-1].path, heads[-1].key)


def moved_within(reach: Reach, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of what an outcome moved, what is within reach."""
    return rows if reach.everything else [row for row in rows if row["entity"] is None or reach.covers(row["entity"])]
