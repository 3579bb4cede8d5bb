"""The judged entries of some paths as this process has followed them: the next look costs what has changed, not what there is.

What it holds is what a look at everything would give, to the digit: rows are judged by the same code, as of the beginning of five
minutes, and whatever a judgement depends on is watched. What is not asked for any more is forgotten first, within a bound.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from herdbook.base.errors import Erased, HerdbookError
from herdbook.fastloop.candidates import (
    NAME,
    VERSION,
    VERSION_ID,
    Gathered,
    Row,
    Scale,
    Versions,
    add_standing,
    before_those,
    judge,
    losers,
    rebased,
    reordered,
)
from herdbook.fastloop.columns import Columns, numpy_there
from herdbook.fastloop.contradictions import Contradiction, Settings
from herdbook.fastloop.sources import Record
from herdbook.record.trust import acts
from herdbook.record.types import HeadRow, Version

KEPT_BYTES_MAX: Final = 128 * 1024 * 1024
ROW_BYTES: Final = 1_200  # a row, its head and version, and the places that name them, by an estimate
PERIOD: Final = 300_000_000  # microseconds: how exactly age is known here
COLUMNS_MIN: Final = 200  # below that, plain rows are as fast


@dataclass(slots=True)
class Kept:
    """Some paths of one tenant, as far as they were followed. Hold `turn` while it is used."""

    floor: float  # of effective confidence: what is below, and unproven, has faded
    place_of: Callable[[Row], tuple[int, int]]  # its block, and its tier among equals
    turn: threading.Lock = field(default_factory=threading.Lock)
    stamp: int | None = None
    erasures: int = 0  # how many there were
    looked_at: int = -1
    since: int = -1  # when the period began that ages are reckoned to
    scale: Scale | None = None
    heads: dict[int, HeadRow] = field(default_factory=dict)  # by entry
    versions: Versions = field(default_factory=dict)  # the current ones
    rows: dict[int, Row] = field(default_factory=dict)  # by version, as all below; look at them through `row` and `ordered_rows`
    behind: bool = False  # the columns know their order, and the rows do not yet
    faded: dict[int, Version] = field(default_factory=dict)
    expired: dict[int, Version] = field(default_factory=dict)
    refused: dict[int, HerdbookError] = field(default_factory=dict)
    expiring: dict[int, int] = field(default_factory=dict)  # when
    beside: dict[int, int] = field(default_factory=dict)  # the current version by the older one that stands
    keys: dict[str, set[int]] = field(default_factory=dict)  # rows by key, where more than one path is looked at
    shared: set[str] = field(default_factory=set)  # keys that several rows have
    settings: Settings = field(default_factory=Settings)
    columns: Columns | None = None
    looks: int = 0
    judged: int = 0  # how many rows were ever judged: for tests and benches

    def follow(self, record: Record, tenant: int, paths: Sequence[str], *, now: int, scale: Scale) -> None:
        """Bring it up to this moment."""
        self.looks += 1
        erasures = record.erasures_seen(tenant)
        if erasures != self.erasures:  # what is kept may hold what was erased
            self.clear()
            self.stamp, self.erasures = None, erasures
        moved = record.heads_since(tenant, paths, self.stamp)
        changed = {entry: head for entry, head in moved.heads.items() if self.heads.get(entry) != head}
        if self.stamp is not None and len(self.heads) + sum(entry not in self.heads for entry in changed) != moved.entries:
            moved = record.heads_since(tenant, paths, None)  # an entry is gone
            self.clear()
            changed = moved.heads
        self.stamp = moved.stamp
        since = now - now % PERIOD
        if since != self.since or self.scale is None or scale[1:] != self.scale[1:]:
            changed = self.heads | changed
        elif scale.bases != self.scale.bases:
            self.rebase(scale)
        if now < self.looked_at:  # the clock was set back: what is over may not be over yet
            again = [version.entry_id for version in self.expired.values() if (version.expires_at or 0) > now]
            changed = {entry: self.heads[entry] for entry in again} | changed
        self.looked_at, self.since, self.scale = now, since, scale
        if changed:
            self.judge(record, tenant, changed)
        for version_id in [version_id for version_id, at in self.expiring.items() if at <= now]:
            self.expire(version_id)
        self.widen()

    def rebase(self, scale: Scale) -> None:
        """Runs have ended, and so evidence says something else of every entry that has some; nothing else has changed."""
        if self.columns is None:
            self.rows = {version_id: rebased(row, scale) for version_id, row in self.rows.items()}
        else:
            self.columns.rebase(scale)
            self.behind = True

    def row(self, version_id: int) -> Row:
        """Raises KeyError for a version that has no row."""
        row = self.rows[version_id]
        return row if self.columns is None or not self.behind else reordered(row, self.columns.order(version_id))

    def ordered_rows(self) -> dict[int, Row]:
        """All of them."""
        if self.behind:
            self.rows = {version_id: self.row(version_id) for version_id in self.rows}
            self.behind = False
        return self.rows

    def widen(self) -> None:
        """Columns are worth their making from the second look on: a command that is over at once never makes them."""
        if self.columns is None and self.looks > 1 and len(self.rows) >= COLUMNS_MIN and numpy_there():
            self.columns = Columns(self.place_of)
            self.columns.put(list(self.rows.values()))
        elif self.columns is not None and self.columns.wasteful:
            self.ordered_rows()
            self.columns, self.looks = None, 1
            self.widen()

    def clear(self) -> None:
        """Begin anew."""
        self.empty()
        self.heads.clear()
        self.versions.clear()
        self.columns = None

    def empty(self) -> None:
        """Nothing is in its place."""
        for held in (self.rows, self.faded, self.expired, self.refused, self.expiring, self.beside, self.keys):
            held.clear()
        self.shared.clear()
        self.settings.clear()
        self.behind = False
        if self.columns is not None:
            self.columns.empty()

    def judge(self, record: Record, tenant: int, changed: dict[int, HeadRow]) -> None:
        """Give these entries their places."""
        assert self.scale is not None
        if len(changed) > len(self.heads) // 2:  # most of them: quicker from the beginning
            changed = self.heads | changed
            current = {head[0] for head in changed.values()}
            for gone in self.versions.keys() - current:
                del self.versions[gone]
                self.settings.forget(gone)
            self.empty()
        for entry in changed if self.rows else ():
            before = self.heads.get(entry)
            if before is not None:
                self.forget(before, gone=before[0] != changed[entry][0])
        self.heads.update(changed)
        missing = [head[0] for head in changed.values() if not isinstance(self.versions.get(head[0]), Version)]
        self.versions.update(record.versions(tenant, missing))
        seen = Gathered()
        judge(changed.values(), self.versions, seen, now=self.since, floor=self.floor, scale=self.scale)
        self.judged += len(changed)
        self.take(seen)
        for head in changed.values():
            if head[1] is not None and head[1] != head[0]:
                self.beside[head[1]] = head[0]
            version = self.versions[head[0]]
            if isinstance(version, HerdbookError) and not isinstance(version, Erased):  # of which nobody is told, nor that it was
                self.refused[head[0]] = version

    def take(self, seen: Gathered) -> None:
        keys = self.keys
        for row in seen.rows:
            version = row[VERSION]
            self.rows[version.id] = row
            same = keys.get(version.key)
            if same is None:
                keys[version.key] = {version.id}
            else:
                same.add(version.id)
                if len(same) > 1:
                    self.shared.add(version.key)
        if self.floor:
            self.settings.put(seen.rows)
        if self.columns is not None:
            self.columns.put(seen.rows)
        self.faded.update((version.id, version) for version in seen.faded)
        self.expired.update((version.id, version) for version in seen.expired)
        may_expire = [*seen.faded, *(row[VERSION] for row in seen.rows)]
        self.expiring.update((version.id, version.expires_at) for version in may_expire if version.expires_at is not None)

    def forget(self, head: HeadRow, *, gone: bool) -> None:
        """Take a version out of its place; for good, where another one is current now."""
        version_id, standing_id = head[:2]
        if standing_id is not None:
            self.beside.pop(standing_id, None)
        row = self.rows.pop(version_id, None)
        if row is not None:
            self.unkey(row)
            self.settings.drop(row[VERSION])
        for held in (self.faded, self.expired, self.refused, self.expiring):
            held.pop(version_id, None)
        if gone:
            self.versions.pop(version_id, None)
            self.settings.forget(version_id)
        if self.columns is not None and row is not None:
            self.columns.drop(version_id)

    def unkey(self, row: Row) -> None:
        same = self.keys[row[VERSION].key]
        same.discard(row[VERSION_ID])
        if len(same) < 2:
            self.shared.discard(row[VERSION].key)
        if not same:
            del self.keys[row[VERSION].key]

    def expire(self, version_id: int) -> None:
        """Its time is over, in the middle of a period."""
        del self.expiring[version_id]
        row = self.rows.pop(version_id, None)
        version = self.faded.pop(version_id, None) if row is None else row[VERSION]
        if row is not None:
            self.unkey(row)
            self.settings.drop(row[VERSION])
            if self.columns is not None:
                self.columns.drop(version_id)
        assert version is not None
        self.expired[version_id] = version

    @property
    def size_bytes(self) -> int:
        return ROW_BYTES * len(self.heads) + (self.columns.size_bytes if self.columns else 0)


@dataclass(slots=True)
class KeptPaths:
    """What this process has followed, the least recently asked forgotten first."""

    bytes_max: int = KEPT_BYTES_MAX
    held: OrderedDict[Hashable, Kept] = field(default_factory=OrderedDict)
    turn: threading.Lock = field(default_factory=threading.Lock)

    def of(self, name: Hashable, *, floor: float, place_of: Callable[[Row], tuple[int, int]]) -> Kept:
        """What is followed under a name: a verb, a tenant, a reach and the paths."""
        with self.turn:
            found = self.held.pop(name, None) or Kept(floor, place_of)
            self.held[name] = found
            return found

    def tidy(self) -> None:
        """Back within the bound. What was used last stays, whatever it takes: without it the next look costs as much again."""
        with self.turn:
            sizes = {name: kept.size_bytes for name, kept in self.held.items()}
            total = sum(sizes.values())
            while total > self.bytes_max and len(self.held) > 1:
                name, _ = self.held.popitem(last=False)
                total -= sizes[name]


@dataclass(slots=True)
class Scene:
    """What one question may choose from. Made while the turn of `kept` is held, and used only then."""

    kept: Kept
    gathered: Gathered  # all but its rows
    guests: list[Row]  # older versions that stand beside newer ones
    hidden: set[int]  # versions that a deeper path hides

    def rows(self) -> list[Row]:
        """Every candidate."""
        guests = [row for row in self.guests if row[VERSION_ID] not in self.hidden]
        if not self.hidden:
            return [*self.kept.ordered_rows().values(), *guests]
        return [row for version_id, row in self.kept.ordered_rows().items() if version_id not in self.hidden] + guests

    def contradictions(self) -> list[Contradiction]:
        """What is set in more than one way, the best entries first. A row that faded since it was put is not there any more."""
        return sorted(self.kept.settings.disputed(self.kept.row), key=lambda found: found.sides[0][0])

    def row(self, version_id: int) -> Row:
        if version_id in self.kept.rows:
            return self.kept.row(version_id)
        return next(row for row in self.guests if row[VERSION_ID] == version_id)


def gather(record: Record, tenant: int, kept: Kept, *, now: int) -> Scene:
    """The entries of these paths as they stand now; a standing version is served beside a newer one that does not stand yet."""
    assert kept.scale is not None
    gathered = Gathered(
        known=len(kept.heads),
        faded=list(kept.faded.values()),
        expired=list(kept.expired.values()),
        refused=list(kept.refused.values()),
    )
    stands = {row[VERSION_ID] for row in map(kept.rows.get, kept.beside.values()) if row is not None and acts(row[NAME])}
    older = {version_id: current for version_id, current in kept.beside.items() if current not in stands}
    guests = beside(record, tenant, kept, older, gathered, now=now) if older else []
    scene = Scene(kept, gathered, guests, set())
    keys = kept.shared | {row[VERSION].key for row in guests}
    for rivals in (same_key(kept, guests, key) for key in keys):
        if len({row[VERSION].path for row in rivals}) > 1:
            hidden = losers(rivals)
            scene.hidden.update(row[VERSION_ID] for row in hidden)
            gathered.shadowed += [row[VERSION] for row in hidden]
    return scene


def beside(record: Record, tenant: int, kept: Kept, older: dict[int, int], gathered: Gathered, *, now: int) -> list[Row]:
    """The rows of what stood last; where that has failed since, of what stood before it and still does."""
    assert kept.scale is not None
    versions = record.versions(tenant, list(older)) | {current: kept.versions[current] for current in older.values()}
    trusts = record.trust_of(tenant, list(older))
    seen = Gathered()
    add_standing(trusts, older, versions, seen, now=kept.since, scale=kept.scale)
    earlier = before_those(record, tenant, trusts, older)
    if earlier:
        versions |= record.versions(tenant, list(earlier))
        add_standing(record.trust_of(tenant, list(earlier)), earlier, versions, seen, now=kept.since, scale=kept.scale)
    over = [row for row in seen.rows if (row[VERSION].expires_at or now + 1) <= now]
    gathered.faded += seen.faded
    gathered.expired += [*seen.expired, *(row[VERSION] for row in over)]
    gathered.refused += seen.refused
    return [row for row in seen.rows if row not in over]


def same_key(kept: Kept, guests: Iterable[Row], key: str) -> list[Row]:
    return [
        *(kept.rows[version_id] for version_id in kept.keys.get(key, ())),
        *(row for row in guests if row[VERSION].key == key),
    ]
