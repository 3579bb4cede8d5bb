"""A copy of the whole record in one file, and the way back. Beside it lies what it must hold; nothing is written over.

A copy never holds the seal key: whoever has both could rewrite history and seal it again.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from herdbook.base.errors import Broken, Conflict, ExtraMissing, InvalidRequest, NotFound, SchemaNewer, SealKeyWrong
from herdbook.base.key_file import sync_folder
from herdbook.base.settings import Database, Place
from herdbook.record import erasing, keyfile, seals
from herdbook.record.record import SEAL_CHECK, Record
from herdbook.record.store import sqlite_copy
from herdbook.record.store.opening import open_store
from herdbook.record.store.protocol import Store
from herdbook.record.store.rows_digest import Tables
from herdbook.record.store.sqlite import SqliteStore

TAKEN, RESTORED = "backup_at", "restored_at"  # what the record notes of itself, for doctor


@dataclass(frozen=True, slots=True)
class Copy:
    """What a copy holds, and how to tell that it still does."""

    engine: str
    schema: int
    at: int
    sha256: str  # of the file
    seal_check: str | None  # which seal key the record goes with
    tables: Tables

    @property
    def rows(self) -> int:
        return sum(count for count, _ in self.tables.values())


def beside(file: Path) -> Path:
    """Where it is written what a copy must hold."""
    return file.with_name(f"{file.name}.json")


def take(where: Place, file: Path, *, at: int) -> Copy:
    """Copy the record into a new file. The record may be in use; the copy was compared with it before this returns."""
    refuse_taken(file, beside(file))
    with closing(open_store(where, synchronous="FULL")) as store:
        check = store.row("meta", {"name": "seal_check"})
        with appearing(file) as draft:
            tables = copied_out(store, where, draft)
            copy = Copy(store.engine, store.schema, at, sha256_of(draft), check[0] if check else None, tables)
        with appearing(beside(file)) as draft:
            draft.write_text(json.dumps(asdict(copy), indent=1) + "\n", encoding="utf-8")
        store.write(lambda tx: tx.run("set_meta", {"name": TAKEN, "value": str(at)}))
    return copy


def restore(file: Path, where: Place, *, key_file: Path, at: int) -> Copy:
    """Put a copy where there is no record: what it holds is checked first, and so is that the seal key goes with it."""
    copy = read_copy(file)
    wanted = "postgres" if isinstance(where, Database) else "sqlite"
    if copy.engine != wanted:
        raise InvalidRequest(f"this is a copy of a record on {copy.engine}: restore it to such a place, with --record")
    key = keyfile.load(key_file)
    if key is not None and copy.seal_check is not None and seals.seal(key, SEAL_CHECK).hex() != copy.seal_check:
        raise SealKeyWrong(f"{key_file} is not the seal key of this copy: put the key back that was kept with it, then restore")
    if isinstance(where, Database):
        restore_database(where, file, copy)
    else:
        restore_file(where, file, copy)
    with closing(open_store(where, synchronous="FULL")) as store:
        store.write(lambda tx: tx.run("set_meta", {"name": RESTORED, "value": str(at)}))
    return copy


def erase_again(where: Place, *, key_file: Path) -> int | None:
    """How many erasures a restored record did not know of, and now does; None where nobody can tell."""
    if not key_file.exists():
        return None
    with closing(Record.open(where, key_file=key_file)) as record:
        return erasing.again(record)


def read_copy(file: Path) -> Copy:
    """What a copy must hold; refused if its file is another."""
    try:
        said = json.loads(beside(file).read_text(encoding="utf-8"))
        copy = Copy(**{**said, "tables": {name: (count, digest) for name, (count, digest) in said["tables"].items()}})
        found = sha256_of(file)
    except OSError as problem:
        raise NotFound(
            f"{problem.filename} cannot be read ({problem.strerror}): a copy is two files, FILE and FILE.json"
        ) from problem
    except (ValueError, TypeError, KeyError) as problem:
        raise Broken(f"{beside(file)} does not say what a copy must hold: restore another copy") from problem
    if found != copy.sha256:
        raise Broken(f"{file} is not what was copied (its SHA-256 is another): restore another copy")
    return copy


def copied_out(store: Store, where: Place, draft: Path) -> Tables:
    if isinstance(store, SqliteStore):
        return sqlite_copy.copy_out(store, draft)
    from herdbook.record.store.postgres import copying  # here, since it needs the driver

    assert isinstance(where, Database)
    return copying.dump(where.url, draft)


def restore_file(path: Path, file: Path, copy: Copy) -> None:
    from herdbook.record.store.sqlite import SCHEMA

    if copy.schema > SCHEMA:
        raise SchemaNewer(
            f"this copy has schema {copy.schema}, this herdbook knows {SCHEMA}: upgrade herdbook; nothing was restored"
        )
    refuse_taken(*sqlite_copy.in_the_way(path))
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with appearing(path) as draft:
        shutil.copyfile(file, draft)
        if sha256_of(draft) != copy.sha256:
            raise Broken(f"what was written to {path.parent} is not what was read: try another disk; nothing was restored")


def restore_database(where: Database, file: Path, copy: Copy) -> None:
    try:
        from herdbook.record.store.postgres import copying
    except ImportError as problem:
        raise ExtraMissing.of("postgres", what="the driver of PostgreSQL") from problem
    copying.load(where.url, file, copy.tables)


def refuse_taken(*paths: Path) -> None:
    """Nothing is written over: what is there may be all that is left."""
    there = [str(path) for path in paths if path.exists()]
    if there:
        raise Conflict(f"{', '.join(there)} is there already: stop what uses it and move it away, or give another place")


@contextmanager
def appearing(path: Path) -> Iterator[Path]:
    """A draft for its owner only, which gets this name once it is whole and durable."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        yield draft
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        draft.rename(path)
        sync_folder(path.parent)
    except OSError as problem:
        raise InvalidRequest(
            f"{path} cannot be written ({problem.strerror}): give another place, or make room there"
        ) from problem
    finally:
        draft.unlink(missing_ok=True)


def sha256_of(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
