"""The record: what every other room asks. Texts come with their seals checked, trust comes fresh, immutable things are cached.

Writes are functions of a transaction in entries, sessions, outcomes and traces; this class holds what they share.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import repeat
from pathlib import Path
from time import monotonic
from typing import Any, Self, cast

from herdbook.base import box_token, limits, text
from herdbook.base.clock import iso
from herdbook.base.errors import Erased, HerdbookError, NotFound, SealBroken, SealKeyMissing, SealKeyWrong
from herdbook.base.reach import EVERYTHING, Reach
from herdbook.base.settings import Place
from herdbook.record import keyfile, seals, trust
from herdbook.record.cache import BoundedCache
from herdbook.record.seals import Part
from herdbook.record.store.opening import open_store
from herdbook.record.store.protocol import Exposure, Reader, Row, Serving, Store, Transaction
from herdbook.record.triggers import TRIGGERS
from herdbook.record.tunables import DEFAULT, Tuning, in_force, line_of
from herdbook.record.types import Head, HeadRow, Moved, Served, Session, Shown, Version

CACHED_TEXT_BYTES_MAX = 64 * 1024 * 1024
INDEX_WAIT_SECONDS = 0.05  # a search that finds the record busy answers from the index as it is, and says so
CACHED_NAMES_MAX = 100_000
ERASURES_SEEN_SECONDS = 0.1  # within which every process passes by what was erased; only then is an erasure acknowledged
NEVER = 2**63 - 1  # as a stamp: nothing was written since
SEAL_CHECK = "herdbook seal check"


class Record:
    """One record under one store. Safe to use from many threads."""

    reach: Reach = EVERYTHING  # which entity paths there are, to whoever asks here; see `seen_by`

    def __init__(
        self,
        store: Store,
        key: bytes | None,
        *,
        value_bytes_max: int = limits.VALUE_BYTES_MAX,
        cached_bytes_max: int = CACHED_TEXT_BYTES_MAX,
    ) -> None:
        self.store = store
        self.value_bytes_max = value_bytes_max
        self._key = key
        self._paths: BoundedCache[tuple[int, str], int] = BoundedCache(CACHED_NAMES_MAX)
        self._sessions: BoundedCache[tuple[int, str], Session] = BoundedCache(CACHED_NAMES_MAX)
        self.grants: BoundedCache[tuple[Any, ...], Any] = BoundedCache(CACHED_NAMES_MAX)  # rows of keys whose seals hold
        self._versions: BoundedCache[tuple[int, int], Version] = BoundedCache(cached_bytes_max, size=version_bytes)
        self.key_file: Path | None = None  # the list of erasures lies beside it
        self._look_again: dict[int, float] = {}
        self._erasures: dict[int, int] = {}
        check_key(store, key)

    @classmethod
    def open(
        cls,
        where: Place,
        *,
        key_file: Path,
        synchronous: str = "FULL",
        value_bytes_max: int = limits.VALUE_BYTES_MAX,
        cached_bytes_max: int = CACHED_TEXT_BYTES_MAX,
    ) -> Self:
        """Open a record: a file, made on first use, or a database. A new one gets a new key, an old one never another."""
        store = open_store(where, synchronous=synchronous)
        try:
            has_key = store.row("meta", {"name": "seal_check"})  # asked first: whoever made it had made the key file before
            key = keyfile.load(key_file)
            if key is None and not has_key:
                key = keyfile.create(key_file)
            record = cls(store, key, value_bytes_max=value_bytes_max, cached_bytes_max=cached_bytes_max)
            record.key_file = key_file
            return record
        except BaseException:
            store.close()
            raise

    def close(self) -> None:
        self.store.close()

    def seen_by(self, reach: Reach) -> Record:
        """The record as a key of this reach sees it: what is outside was never there."""
        if reach.everything:
            return self
        from herdbook.record.scoped import ScopedRecord  # here, since it is built upon this class

        return ScopedRecord(self, reach)

    @property
    def sealing(self) -> bool:
        """Whether the key is here: without it, what is read is unverified and nothing can be written."""
        return self._key is not None

    def seal(self, *parts: Part) -> bytes:
        if self._key is None:
            raise SealKeyMissing
        return seals.seal(self._key, *parts)

    def pass_key(self) -> bytes:
        """The key that signs passes of boxes, out of the one that seals the record."""
        if self._key is None:
            raise SealKeyMissing
        return box_token.signing_key(self._key)

    def holds(self, expected: bytes | None, *parts: Part) -> bool:
        """Whether a seal is that of these parts; only where the key is here."""
        return self._key is not None and seals.holds(self._key, expected, *parts)

    def verify(self, expected: bytes | None, *parts: Part) -> bool:
        """True: verified. False: the key is away, so nobody can tell. Raises SealBroken."""
        if self._key is None:
            return False
        if not seals.holds(self._key, expected, *parts):
            raise SealBroken
        return True

    def path_id(self, tenant: int, path: str, reader: Reader | None = None) -> int | None:
        """The number of a path, or None where nothing was ever written."""
        found = self._paths.get((tenant, path))
        if found is None:
            row = (reader or self.store).row("path_id", {"tenant": tenant, "path": path})
            if row is None:
                return None
            found = row[0]
            if reader is None:  # inside a transaction the row may yet be rolled back
                self._paths.put((tenant, path), found)
        return found

    def path_ids(self, tenant: int, paths: Sequence[str]) -> list[int]:
        """The numbers of these paths, as far as anything was ever written there; what is not known yet is one question."""
        found = {path: self._paths.get((tenant, path)) for path in paths}
        unknown = [path for path, number in found.items() if number is None]
        for path, number in self.store.rows("path_ids", {"tenant": tenant, "paths": json.dumps(unknown)}) if unknown else ():
            self._paths.put((tenant, path), number)
            found[path] = number
        return [number for number in found.values() if number is not None]

    def entry(self, tenant: int, path: str, key: str, reader: Reader | None = None) -> tuple[Head, float]:
        """One entry with the trust of its current claim, and its entity's base rate; NotFound with the nearest names."""
        number = self.path_id(tenant, path, reader)
        row = None if number is None else (reader or self.store).row("head", {"tenant": tenant, "path": number, "key": key})
        if row is None:
            raise NotFound(f"there is no entry {key!r} at {path!r}{self.suggestion(tenant, path, key)}")
        return Head(path, key, *row[2:]), trust.base_rate(row[0], row[1])

    def suggestion(self, tenant: int, path: str, key: str) -> str:
        number = self.path_id(tenant, path)
        if number is not None:
            keys = [row[0] for row in self.store.rows("keys_of_path", {"tenant": tenant, "path": number, "limit": 200})]
            near = nearest(key, keys)
            return f"; near it: {', '.join(near)}" if near else ""
        near = self.near(tenant, path, 3)
        return f", nor anything at that path; known paths near it: {', '.join(near)}" if near else ", nor anything at that path"

    def heads(self, tenant: int, paths: Sequence[str]) -> list[HeadRow]:
        """Every entry of these paths, in one query, as far as its place depends on it; `trust_of` has the rest."""
        return self._heads(tenant, self.path_ids(tenant, paths))

    def heads_since(self, tenant: int, paths: Sequence[str], since: int | None) -> Moved:
        """Of these entries those that have changed since a stamp, by entry; all of them without one."""
        numbers = self.path_ids(tenant, paths)
        if not numbers:
            return Moved(0, 0, {})
        asked = {"tenant": tenant, "paths": json.dumps(numbers), "since": NEVER if since is None else since}
        # Asked first: what comes between is told twice, and never lost.
        [(stamp, count, entries)] = self.store.kept_rows("heads_stamp", asked)
        if since is None:
            rows = self.store.rows("heads_whole", asked)
        else:
            rows = self.store.kept_rows("heads_touched", {**asked, "entries": entries})
        return Moved(stamp, count, {row[0]: row[1:] for row in rows})

    def paths_below(self, tenant: int, path: str) -> list[str]:
        """A path and those below it, as far as there are any."""
        return [row[1] for row in self.store.kept_rows("path_ids_below", {"tenant": tenant, **under_path(path)})]

    def reached_paths(self, tenant: int) -> list[str] | None:
        """Every path within reach; None where that is everything, which is too much to walk."""
        return None

    def trust_of(self, tenant: int, version_ids: Sequence[int]) -> dict[int, Head]:
        """The trust behind these versions' claims, current or not; `version_id` is the one asked for."""
        rows = self.store.rows("trust_of", {"tenant": tenant, "versions": json.dumps(list(version_ids))}) if version_ids else []
        return {row[3]: Head._make(row) for row in rows}

    def stood_before(self, tenant: int, version_ids: Sequence[int]) -> dict[int, int]:
        """For each of these versions, which stood once: the newest before it whose claim stands now, where there is one."""
        asked = {"tenant": tenant, "versions": json.dumps(list(version_ids)), "contested": trust.CONTESTED_FAILURES}
        return {row[0]: row[1] for row in self.store.rows("stood_before", asked) if row[1] is not None}

    def versions(self, tenant: int, ids: Iterable[int]) -> dict[int, Version | HerdbookError]:
        """These versions, their seals checked when they come from the store; one with a bad seal comes as its error."""
        self._forget_erased(tenant)
        numbers = list(ids)
        wanted = dict(zip(numbers, map(self._versions.get, zip(repeat(tenant), numbers)), strict=True))
        if all(wanted.values()):
            return cast("dict[int, Version | HerdbookError]", wanted)
        found: dict[int, Version | HerdbookError] = {number: held for number, held in wanted.items() if held is not None}
        return found | self._load_versions(tenant, [number for number, held in wanted.items() if held is None])

    def version(self, tenant: int, number: int) -> Version:
        """One version. Raises SealBroken."""
        self._forget_erased(tenant)
        cached = self._versions.get((tenant, number))
        if cached is not None:
            return cached
        found = self._load_versions(tenant, [number])[number]
        if isinstance(found, HerdbookError):
            raise found
        return found

    def version_ids(self, tenant: int, path: str, key: str) -> list[tuple[int, int]]:
        """(id, number) of every version, oldest first."""
        number = self.path_id(tenant, path)
        rows = self.store.rows("version_ids", {"tenant": tenant, "path": number, "key": key}) if number is not None else []
        return [(row[0], row[1]) for row in rows]

    def base_rates(self, tenant: int, paths: Sequence[str]) -> dict[str, float]:
        """How often each entity's runs succeed at all, shrunk."""
        rows = self.store.rows("base_rates", {"tenant": tenant, "paths": json.dumps(list(paths))})
        found = {row[0]: trust.base_rate(row[1], row[2]) for row in rows}
        return {path: found.get(path, trust.base_rate(0, 0)) for path in paths}

    def parts_asked(self, tenant: int, paths: Sequence[str]) -> list[Row]:
        """What runs at these paths were asked, part by part."""
        return self.store.kept_rows("asked_of", {"tenant": tenant, "paths": json.dumps(self.path_ids(tenant, paths))})

    def precedents(self, tenant: int, paths: Iterable[int], parts: Sequence[str]) -> list[Row]:
        """What runs that were asked these parts came to use; paths by number."""
        asked = {"paths": json.dumps(sorted(paths)), "parts": json.dumps(parts)}
        return self.store.kept_rows("precedents_of", {"tenant": tenant, **asked})

    def tuning(self, tenant: int, path: str) -> Tuning:
        """What is tuned at a path."""
        rows = self.store.kept_rows("tuning_of", {"tenant": tenant, "paths": json.dumps(line_of(path))})
        return in_force(rows) if rows else DEFAULT

    def draw(self, tenant: int, *parts: str) -> float:
        """A number from 0 to 1 that nobody outside can foresee, and the same for the same parts; 1 where the key is away."""
        if self._key is None:
            return 1.0
        return int.from_bytes(seals.seal(self._key, "draw", tenant, *parts)[:6], "big") / 2**48

    def near(self, tenant: int, path: str, limit: int) -> list[str]:
        """The nearest known paths: siblings in the index first, by likeness."""
        rows = self.store.rows("paths_from", {"tenant": tenant, "path": path.split("/", maxsplit=1)[0], "limit": 200})
        rows += self.store.rows("paths_before", {"tenant": tenant, "path": path, "limit": 50})
        return nearest(path, sorted({row[0] for row in rows} - {path}), limit=limit)

    def session(self, tenant: int, name: str, reader: Reader | None = None) -> Session | None:
        """Who a session is. Cached: what is cached of it never changes."""
        found = self._sessions.get((tenant, name))
        if found is None:
            name = text.identifier(name, what="session id")
            row = (reader or self.store).row("session", {"tenant": tenant, "session": name})
            if row is None:
                return None
            found = Session(*row)
            if reader is None:
                self._sessions.put((tenant, name), found)
        return found

    def page(self, tenant: int, under: str, path: str, key: str, *, limit: int) -> list[Head]:
        """Entries of a path and below it (of everything, under ''), in order, after this path and key."""
        below = under_path(under)
        params = {"tenant": tenant, "from_path": path, "from_key": key, "exact": below.pop("path"), **below, "limit": limit}
        return list(map(Head._make, self.store.rows("list_entries", params)))

    def status(self, tenant: int) -> dict[str, Any]:
        """How the record is, for a doctor: counts whole tables, so it is not for any path of the record."""
        names = ("paths", "entries", "versions", "sessions", "reads", "outcomes", "causes", "open_boxes")
        counts = self.store.row("counts", {"tenant": tenant})
        triggers = {row[0] for row in self.store.rows("triggers", {})}
        sealed = self.store.row("any_sealed", {"tenant": tenant})
        copies = {name: self.store.row("meta", {"name": name}) for name in ("backup_at", "restored_at")}
        return {
            "schema": self.store.schema,
            "record": self.store.facts() | {name: iso(int(row[0])) for name, row in copies.items() if row},
            "counts": dict(zip(names, counts or (), strict=False)),
            "seals": "verified"
            if self.sealing
            else "unverified: the seal key is missing"
            if sealed and sealed[0]
            else "none yet",
            "triggers_missing": sorted(TRIGGERS[self.store.engine] - triggers),
            "problems": self.store.check(tenant),
            "value_bytes_max": self.value_bytes_max,
        }

    def note_reads(self, tenant: int, session: str, shown: Sequence[Shown], *, at: int, serving: Served | None = None) -> None:
        """Log what a session was shown or had withheld, and the briefing or search that did it; never waits for a disk."""
        next_id = self.store.next_read_id
        whole = None if serving is None else Serving(tenant, session, next_id(), *serving, at)
        within = None if whole is None else whole.id
        self.store.note_reads(
            [
                Exposure(tenant, session, next_id(), version, rank, how, int(served), probability, at, within, features)
                for version, rank, how, served, probability, features in shown
            ],
            whole,
        )

    def text_behind(self, tenant: int, limit: int) -> list[int]:
        """Current versions that unscoped search has not indexed yet, oldest first; moves past what is not this tenant's."""
        row = self.store.row("meta", {"name": f"text_index:{tenant}"})
        rows = self.store.rows("versions_after", {"tenant": tenant, "after": int(row[0]) if row else 0, "limit": limit})
        mine = {entry: version for version, whose, entry in rows if whose == tenant}
        if rows and not mine:
            self.store.write(lambda tx: self._text_seen(tx, tenant, rows[-1][0]), tenant=tenant, wait_seconds=INDEX_WAIT_SECONDS)
            return self.text_behind(tenant, limit)
        return list(mine.values())

    def text_add(self, tenant: int, rows: Sequence[tuple[int, str]]) -> None:
        """Index these versions' tokens in place of their entries' older text."""
        self.store.write(lambda tx: self._text_add(tx, tenant, dict(rows)), tenant=tenant, wait_seconds=INDEX_WAIT_SECONDS)

    def text_match(self, tenant: int, tokens: Sequence[str], limit: int) -> list[int]:
        """Versions whose indexed text holds any of these tokens, best first by the engine's own rank."""
        asked = {"tenant": tenant, "tokens": json.dumps(list(tokens)), "limit": limit}
        return [row[0] for row in self.store.rows("match_text", asked)] if tokens else []

    def _text_add(self, tx: Transaction, tenant: int, tokens: dict[int, str]) -> None:
        versions, erased = tx.rows_of(["versions", "erased_versions"], {"tenant": tenant, "versions": json.dumps(list(tokens))})
        gone = {row[0] for row in erased}  # while it was read
        for number, entry, *_ in versions:
            if number in gone:
                continue
            found = tx.row("insert_text_entry", {"tenant": tenant, "entry": entry, "version": number})
            assert found is not None
            tx.run("delete_text", {"tenant": tenant, "id": found[0]})
            tx.run("insert_text", {"tenant": tenant, "id": found[0], "tokens": tokens[number]})
        if tokens:
            self._text_seen(tx, tenant, max(tokens))

    def _text_seen(self, tx: Transaction, tenant: int, version: int) -> None:
        row = tx.row("meta", {"name": f"text_index:{tenant}"})
        if row is None or int(row[0]) < version:
            tx.run("set_meta", {"name": f"text_index:{tenant}", "value": str(version)})

    def _heads(self, tenant: int, numbers: Sequence[int]) -> list[HeadRow]:
        rows = self.store.kept_rows("heads", {"tenant": tenant, "paths": json.dumps(numbers)}) if numbers else []
        return cast("list[HeadRow]", rows)

    def _load_versions(self, tenant: int, ids: Sequence[int]) -> dict[int, Version | HerdbookError]:
        found: dict[int, Version | HerdbookError] = {}
        seen = self._erasures.get(tenant)
        asked = {"tenant": tenant, "versions": json.dumps(list(ids))}
        rows, erased = self.store.rows_of(["versions", "erased_versions"], asked)
        gone = {row[0] for row in erased}
        for row in rows:
            if row[0] in gone:
                path, key, number = row[3:6]
                said = f"version {number} of {key!r} at {path!r} was erased"
                found[row[0]] = Erased(said, entity=path, key=key, version=number)
                continue
            try:
                version = self._checked(tenant, row)
            except SealBroken:
                path, key, number = row[3:6]
                found[row[0]] = SealBroken(
                    f"version {number} of {key!r} at {path!r} is not what was written: it is refused",
                    entity=path,
                    key=key,
                    version=number,
                )
                continue
            if seen == self._erasures.get(tenant):  # else what was read may be from before an erasure
                self._versions.put((tenant, version.id), version)
            found[version.id] = version
        return found | self._gone(tenant, [number for number in ids if number not in found])

    def look_again(self, tenant: int) -> None:
        """Something was erased: whoever asks next looks whether what is cached may still be told."""
        self._look_again[tenant] = 0.0

    def erasures_seen(self, tenant: int) -> int:
        """How many erasures whatever is cached here knows of."""
        self._forget_erased(tenant)
        return self._erasures.get(tenant, 0)

    def _forget_erased(self, tenant: int) -> None:
        """Drop what is cached once something was erased, here or by another process: soon, not asking each time."""
        now = monotonic()
        if now < self._look_again.get(tenant, 0.0):
            return
        self._look_again[tenant] = now + ERASURES_SEEN_SECONDS
        row = self.store.row("erasure_count", {"tenant": tenant})
        count = row[0] if row else 0
        if self._erasures.get(tenant, count) != count:
            self._versions.clear()
        self._erasures[tenant] = count

    def _gone(self, tenant: int, ids: Sequence[int]) -> dict[int, HerdbookError]:
        """Versions that something names and that are not there, with the entries whose current ones they are."""
        said = "a version this record rests on is gone from it: restore the record from a backup"
        found: dict[int, HerdbookError] = {number: SealBroken(said) for number in ids}
        rows = self.store.rows("entries_of_gone", {"tenant": tenant, "versions": json.dumps(ids)}) if ids else []
        for version, path, key, number in rows:
            found[version] = SealBroken(said, entity=path, key=key, version=number)
        return found

    def _checked(self, tenant: int, row: Row) -> Version:
        *fields, seal = row
        sealed = self.verify(seal, *version_parts(tenant, fields))
        number, entry, claim, path, key, nth, value, why, kind, worked, stated, applies_when, expires_at, links, *rest = fields
        origin, author, identity, session, box, at, _request = rest
        return Version(
            number,
            entry,
            claim,
            path,
            key,
            nth,
            value,
            why,
            kind,
            None if worked is None else bool(worked),
            stated,
            applies_when,
            expires_at,
            links,
            origin,
            author,
            identity,
            session,
            box,
            at,
            sealed,
        )


def under_path(path: str) -> dict[str, str]:
    """A path and the range of what lies below it, in the order of the path index; of everything, under ''."""
    return {"path": path, "low": f"{path}/" if path else "", "high": f"{path}0" if path else chr(0x10FFFF)}  # "0" follows "/"


def version_parts(tenant: int, fields: Sequence[Any]) -> tuple[Part, ...]:
    """What a version's seal covers: all of it, with its place."""
    return ("version", tenant, *fields)


def version_bytes(version: Version) -> int:
    return 512 + len(version.value_text) + len(version.why or "")


def check_key(store: Store, key: bytes | None) -> None:
    """The first key a record meets becomes its own; another one is refused at once rather than at every read."""
    if key is None:
        return
    check = seals.seal(key, SEAL_CHECK).hex()
    first = {"name": "seal_check", "value": check}
    if store.row("meta", {"name": "seal_check"}) is None:
        store.write(lambda tx: tx.run("set_meta_once", first))
    if store.row("meta", {"name": "seal_check"}) != (check,):  # asked again: of two processes with two keys one was first
        raise SealKeyWrong


def nearest(wanted: str, names: Sequence[str], *, limit: int = 3) -> list[str]:
    """Names like the wanted one, the likest first."""
    import difflib

    return difflib.get_close_matches(wanted, names, n=limit, cutoff=0.4)
