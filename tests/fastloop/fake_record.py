"""The part of the record that the fast loop asks, held in dictionaries: no trust moves here, the tests set it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from herdbook.base.clock import MICROSECONDS_PER_DAY
from herdbook.base.errors import HerdbookError, SealBroken
from herdbook.base.reach import EVERYTHING, Reach, is_below
from herdbook.fastloop.candidates import head_row
from herdbook.fastloop.precedents import AskedRow, PrecedentRow
from herdbook.record.tunables import DEFAULT, Tuning
from herdbook.record.types import Head, HeadRow, Moved, Version

NOW = 1_767_225_600_000_000
TENANT = 1


@dataclass
class Asked:
    """The fields of `brief` and `search` together."""

    entity: Any = "acme/ci"
    query: str = ""
    session: str | None = "s_1"
    task: str | None = None
    tokens: int = 2_000
    names: bool = False
    limit: int = 20
    explain: bool = False


@dataclass
class FakeRecord:
    """Entries by path and key; every call is counted, so that a test can say how often the record was asked."""

    current: dict[tuple[str, str], Head] = field(default_factory=dict)
    trust: dict[int, Head] = field(default_factory=dict)
    stored: dict[int, Version | HerdbookError] = field(default_factory=dict)
    indexed: dict[int, str] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    reach: Reach = EVERYTHING
    tuned: Tuning = DEFAULT
    drawn: dict[str, float] = field(default_factory=dict)
    entry_ids: dict[tuple[str, str], int] = field(default_factory=dict)
    bases: dict[str, float] = field(default_factory=dict)
    parts: list[AskedRow] = field(default_factory=list)
    used: list[PrecedentRow] = field(default_factory=list)

    def write(self, path: str, key: str, value: Any, **more: Any) -> Version:
        """The next version of an entry; fields of Version and of Head may be given by name, `age_days` instead of `at`."""
        number = more.pop("number", 1)
        at = NOW - round(more.pop("age_days", 0) * MICROSECONDS_PER_DAY)
        version_id = len(self.stored) + 1
        entry_id = self.entry_ids.setdefault((path, key), len(self.entry_ids) + 1)
        text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        plain: dict[str, Any] = {
            "why": None,
            "kind": "fact",
            "worked": None,
            "stated": 0.5,
            "applies_when": None,
            "expires_at": None,
            "links_text": None,
            "origin": "box",
            "author": "ada",
            "identity": "fleet",
            "session": "s_0",
            "box": "box-1",
            "at": at,
            "sealed": True,
        }
        trusted: dict[str, Any] = {
            "standing_id": None,
            "confidence": 0.5,
            "moves": 0,
            "recalls": 0,
            "observed": 0,
            "corroborated": 0,
            "held": 0.0,
            "failed": 0.0,
            "failed_since": 0.0,
            "affirmed": 0,
            "affirmed_at": None,
            "last_type": None,
            "last_ref": None,
            "last_at": None,
        }
        for name, given in more.items():
            (plain if name in plain else trusted)[name] = given
        if trusted["standing_id"] is None and (trusted["observed"] or trusted["corroborated"]):
            trusted["standing_id"] = version_id
        version = Version(
            id=version_id,
            entry_id=entry_id,
            claim=b"%d" % version_id,
            path=path,
            key=key,
            number=number,
            value_text=text,
            **plain,
        )
        head = Head(path=path, key=key, entry_id=entry_id, version_id=version_id, claim=version.claim, **trusted)
        self.stored[version_id], self.trust[version_id], self.current[path, key] = version, head, head
        return version

    def parts_asked(self, tenant: int, paths: Sequence[str]) -> list[AskedRow]:
        return self.parts

    def precedents(self, tenant: int, paths: Iterable[int], parts: Sequence[str]) -> list[PrecedentRow]:
        return [row for row in self.used if row[1] in parts]

    def supersede(self, older: Version, value: Any, **more: Any) -> Version:
        """A newer version of an entry whose older one stands."""
        return self.write(older.path, older.key, value, number=older.number + 1, standing_id=older.id, **more)

    def corrupt(self, version: Version) -> None:
        self.stored[version.id] = SealBroken(entity=version.path, key=version.key, version=version.number)

    def count(self, name: str) -> None:
        self.calls[name] = self.calls.get(name, 0) + 1

    def heads(self, tenant: int, paths: Sequence[str]) -> list[HeadRow]:
        self.count("heads")
        wanted = set(paths)
        return [head_row(head) for (path, _), head in self.current.items() if path in wanted and self.reach.covers(path)]

    def erasures_seen(self, tenant: int) -> int:
        return 0

    def heads_since(self, tenant: int, paths: Sequence[str], since: int | None) -> Moved:
        self.count("heads")
        wanted = set(paths)
        there = {
            head.entry_id: head_row(head)
            for (path, _), head in self.current.items()
            if path in wanted and self.reach.covers(path)
        }
        return Moved(0, len(there), there)

    def paths_below(self, tenant: int, path: str) -> list[str]:
        return self.reach.within(sorted({at for at, _ in self.current if is_below(at, path)}))

    def reached_paths(self, tenant: int) -> list[str] | None:
        return None if self.reach.everything else self.paths_below(tenant, "")

    def trust_of(self, tenant: int, version_ids: Sequence[int]) -> dict[int, Head]:
        return {version_id: self.trust[version_id] for version_id in version_ids}

    def tuning(self, tenant: int, path: str) -> Tuning:
        return self.tuned

    def draw(self, tenant: int, *parts: str) -> float:
        return self.drawn.get(parts[-1] if len(parts) < 3 else parts[2], self.drawn.get("", 1.0))

    def stood_before(self, tenant: int, version_ids: Sequence[int]) -> dict[int, int]:
        self.count("stood_before")
        return {}

    def versions(self, tenant: int, ids: Sequence[int]) -> dict[int, Version | HerdbookError]:
        self.count("versions")
        return {version_id: self.stored[version_id] for version_id in ids}

    def base_rates(self, tenant: int, paths: Sequence[str]) -> dict[str, float]:
        return dict.fromkeys(paths, 0.5) | {path: self.bases[path] for path in paths if path in self.bases}

    def near(self, tenant: int, path: str, limit: int) -> list[str]:
        return self.reach.within(sorted({at for at, _ in self.current}))[:limit]

    def text_behind(self, tenant: int, limit: int) -> list[int]:
        return [head.version_id for head in self.current.values() if head.version_id not in self.indexed][:limit]

    def text_add(self, tenant: int, rows: Sequence[tuple[int, str]]) -> None:
        self.count("text_add")
        for version_id, text in rows:
            entry = (self.trust[version_id].path, self.trust[version_id].key)
            for older in [known for known in self.indexed if (self.trust[known].path, self.trust[known].key) == entry]:
                del self.indexed[older]
            self.indexed[version_id] = text

    def text_match(self, tenant: int, tokens: Sequence[str], limit: int) -> list[int]:
        hits = {version_id: len(set(tokens) & set(text.split())) for version_id, text in self.indexed.items()}
        return sorted([found for found in hits if hits[found]], key=lambda found: -hits[found])[:limit]
