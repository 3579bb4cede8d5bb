"""The record in one SQLite file: WAL, durable at every acknowledged write, fair among processes.

Writers queue on a blocking file lock before BEGIN IMMEDIATE: SQLite's own busy timeout starves some of them for seconds. Readers
use a connection each and wait for nobody. A file of a newer schema, or of another application, is refused and left as it is.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from herdbook.base.errors import (
    Broken,
    Busy,
    DiskFull,
    HerdbookError,
    InvalidRequest,
    InvalidText,
    SchemaNewer,
    Unavailable,
    UnknownEntry,
)
from herdbook.base.ids import RowIds
from herdbook.record.store.batches import Apart, each_by, in_hope
from herdbook.record.store.journal import ReadsJournal
from herdbook.record.store.protocol import Exposure, Params, Planned, Reader, Row, Serving, Work
from herdbook.record.store.queries import blocks_of, for_rows, load_migrations, load_queries

T = TypeVar("T")
APPLICATION_ID = 0x68626B31  # "hbk1": how the file says whose it is
SYNCHRONOUS = ("FULL", "NORMAL")
BUSY_SECONDS = 30  # against writers that do not take the file lock, such as the sqlite3 shell
KEPT_ROWS_MAX = 20_000  # a few megabytes for each thread that reads
CACHE_KIB = 8_000  # the claims of a large entity lie a page each in a large record: 2 MB, the default, cost its briefing 1 ms
QUERIES = load_queries("sqlite")
MIGRATIONS = load_migrations("sqlite")
SCHEMA = len(MIGRATIONS)


class Connection:
    """A driver's connection that is called by query name and raises our errors."""

    def __init__(self, path: Path, ids: RowIds, *, synchronous: str) -> None:
        self.raw = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS, cached_statements=256
        )
        self.raw.execute(f"PRAGMA synchronous={synchronous}")
        self.raw.execute("PRAGMA foreign_keys=ON")
        self.raw.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        self._execute = self.raw.execute
        self.changed = False
        self._kept_at, self._kept = -1, dict[tuple[Any, ...], list[Row]]()
        self.next_id = ids.next

    def rows(self, query: str, params: Params) -> list[Row]:
        try:
            return self._execute(QUERIES[query], params).fetchall()
        except REFUSED as problem:
            raise translated(problem) from problem

    def row(self, query: str, params: Params) -> Row | None:
        try:
            found: Row | None = self._execute(QUERIES[query], params).fetchone()
        except REFUSED as problem:
            raise translated(problem) from problem
        return found

    def rows_of(self, queries: Sequence[str], params: Params) -> list[list[Row]]:
        return [self.rows(query, params) for query in queries]

    def each(self, query: str, asked: Sequence[Sequence[Any]]) -> list[Row]:
        return [self.rows(query, params)[0] for params in asked]

    def data_version(self) -> int:
        """Another number once anybody but this connection has committed anything."""
        return int(self._execute("PRAGMA data_version").fetchone()[0])

    def kept_rows(self, query: str, params: Mapping[str, Any]) -> list[Row]:
        try:
            at = self.data_version()
        except REFUSED as problem:
            raise translated(problem) from problem
        if at != self._kept_at:
            self._kept_at = at
            self._kept.clear()
        key = (query, *params.values())
        rows = self._kept.get(key)
        if rows is None:
            rows = self.rows(query, params)
            if len(rows) + sum(map(len, self._kept.values())) <= KEPT_ROWS_MAX:
                self._kept[key] = rows
        return rows

    @property
    def failed(self) -> bool:
        """On a full disk the engine itself undoes everything."""
        return not self.raw.in_transaction

    def run(self, query: str, params: Params) -> None:
        self.changed = True
        try:
            self._execute(QUERIES[query], params)
        except REFUSED as problem:
            raise translated(problem) from problem

    def many(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        if len(rows) == 1:
            self.run(query, rows[0])
            return
        self.changed = True
        try:
            for block in blocks_of(rows):
                self._execute(for_rows(QUERIES[query], len(block)), [part for row in block for part in row])
        except REFUSED as problem:
            raise translated(problem) from problem

    @contextmanager
    def acting_for(self, tenant: int) -> Iterator[Connection]:
        """One file is one trust domain: every query names its tenant, and that is all there is."""
        yield self

    def __del__(self) -> None:
        with suppress(AttributeError):  # it was never opened
            self.raw.close()


class SqliteStore:
    """The embedded engine. Any number of processes and threads may open one file."""

    engine = "sqlite"
    schema = SCHEMA
    lent_seconds = 0.0  # what is kept is known to be unchanged

    def __init__(self, path: Path, *, synchronous: str = "FULL") -> None:
        assert synchronous in SYNCHRONOUS
        with cannot_open(path):
            path = Path(os.path.realpath(path))  # two names of one file must not have two locks and two journals
        self.path = path
        self.synchronous = synchronous
        self._ids = RowIds()
        self._ids_at = -1  # the data version up to which they are above all that is stored
        self.next_id = self._ids.next
        self.next_read_id = RowIds().next  # never raised to what the record holds, or two processes would take the same one
        self._turn = threading.Lock()
        self._readers = threading.local()
        self._open: weakref.WeakSet[Connection] = weakref.WeakSet()  # a thread that ends takes its connection with it
        with cannot_open(path):
            look_first(path)
            self._lock_file = lock_file(path)
            try:
                self._take_lock()
                try:
                    make_record(path)
                finally:
                    fcntl.flock(self._lock_file, fcntl.LOCK_UN)
                self._writer = self._connect()
                self._journal = ReadsJournal(Path(f"{path}.reads"))
                self._journal.renew_if_shortened(self._writer)
                self._file = identity_of(path)
            except BaseException:
                self._let_go()
                raise
        STORES.add(self)

    def rows(self, query: str, params: Params) -> list[Row]:
        return self._reader().rows(query, params)

    def row(self, query: str, params: Params) -> Row | None:
        return self._reader().row(query, params)

    def rows_of(self, queries: Sequence[str], params: Params) -> list[list[Row]]:
        return self._reader().rows_of(queries, params)

    def kept_rows(self, query: str, params: Mapping[str, Any]) -> list[Row]:
        return self._reader().kept_rows(query, params)

    def lent_rows(self, query: str, params: Mapping[str, Any]) -> list[Row]:
        return self._reader().kept_rows(query, params)

    def write(self, work: Callable[[Connection], T], *, tenant: int | None = None, wait_seconds: float | None = None) -> T:
        if wait_seconds is None:
            return self._durably(work)
        if not self._turn.acquire(timeout=wait_seconds):
            raise Busy
        try:
            return self._in_turn(work, wait=False)
        finally:
            self._turn.release()

    def write_batch(self, plans: Sequence[Planned]) -> list[Any]:
        works = [plan.work for plan in plans]
        for way in (in_hope, partial(each_by, kept_apart)):
            try:
                return self._durably(partial(way, works))
            except Apart:
                continue
            except HerdbookError as problem:  # begin or commit failed: nothing of the batch is stored
                return [problem] * len(plans)
        raise AssertionError("a member that is kept apart fails alone")

    def note_reads(self, exposures: Sequence[Exposure], serving: Serving | None = None) -> None:
        try:
            self._journal.append(exposures, serving)
        except OSError as problem:
            raise DiskFull("the read could not be noted, since the disk under the record is full") from problem

    def look(self, work: Callable[[Reader], T], *, tenant: int | None = None) -> T:
        reader = self._reader()
        try:
            if reader.raw.in_transaction:  # the last look could not even be ended
                reader.raw.execute("ROLLBACK")
            reader.raw.execute("BEGIN")
            try:
                return work(reader)
            finally:
                if reader.raw.in_transaction:
                    reader.raw.execute("ROLLBACK")
        except sqlite3.Error as problem:
            raise translated(problem) from problem

    def close(self) -> None:
        with self._turn:
            if isinstance(self, ClosedStore):
                return
            STORES.discard(self)
            self.__class__ = ClosedStore
            self._journal.close()
            self._let_go()

    def _let_go(self) -> None:
        for connection in list(self._open):
            connection.raw.close()
        os.close(self._lock_file)

    def facts(self) -> dict[str, Any]:
        pragma = self._writer.raw.execute
        return {
            "engine": f"SQLite {sqlite3.sqlite_version}",
            "file": str(self.path),
            "bytes": self.path.stat().st_size,
            "schema": pragma("PRAGMA user_version").fetchone()[0],
            "journal_mode": pragma("PRAGMA journal_mode").fetchone()[0],
            "synchronous": self.synchronous,
            "reads_waiting_bytes": self._journal.waiting_bytes(),
            "reads_unreadable": self._journal.unreadable,
        }

    def check(self, tenant: int | None = None) -> list[str]:
        """SQLite's own integrity check; empty when all is well."""
        found = [row[0] for row in self._reader().raw.execute("PRAGMA quick_check(20)")]
        return [] if found == ["ok"] else found

    def _reader(self) -> Connection:
        connection: Connection | None = getattr(self._readers, "connection", None)
        if connection is None:
            connection = self._readers.connection = self._connect()
        return connection

    def _connect(self) -> Connection:
        connection = Connection(self.path, self._ids, synchronous=self.synchronous)
        self._open.add(connection)
        return connection

    def _take_lock(self, *, wait: bool = True) -> None:
        """The file lock, which is fair and freed by the kernel when its holder dies."""
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as problem:
            raise Busy from problem

    def _durably(self, work: Callable[[Connection], T]) -> T:
        """Alone on the record: fold the reads journal, do the work, and return only once it is durable."""
        with self._turn:
            return self._in_turn(work, wait=True)

    def _in_turn(self, work: Callable[[Connection], T], *, wait: bool) -> T:
        self._take_lock(wait=wait)
        try:
            tx = self._writer
            execute = tx.raw.execute
            try:
                if tx.raw.in_transaction:  # the last one could not even be rolled back
                    execute("ROLLBACK")
                execute("BEGIN IMMEDIATE")
                at = tx.data_version()
                if at != self._ids_at:  # another process has written, and its clock may be ahead of ours
                    self._ids.stay_above(tx.rows("last_version", {})[0][0] or 0)
                    self._ids_at = at
                folded = self._journal.fold(tx)
                result = work(tx)
                execute("COMMIT")
            except BaseException as problem:
                if tx.raw.in_transaction:
                    execute("ROLLBACK")
                if isinstance(problem, sqlite3.Error | OSError):
                    raise translated(problem) from problem
                raise
            if folded:
                # Tidying up: what was asked for is durable, and must not be told as failed.
                with suppress(HerdbookError, OSError):
                    self._journal.truncate_if_folded(tx)
            return result
        finally:
            fcntl.flock(self._lock_file, fcntl.LOCK_UN)


class ClosedStore(SqliteStore):
    """What a store becomes when it is closed: the numbers of its files may be somebody else's by now."""

    reason = "this record was closed: open it again"

    def close(self) -> None:
        """Closing twice is one closing."""

    def note_reads(self, exposures: Sequence[Exposure], serving: Serving | None = None) -> None:
        raise Unavailable(self.reason)

    def facts(self) -> dict[str, Any]:
        raise Unavailable(self.reason)

    def _reader(self) -> Connection:
        raise Unavailable(self.reason)

    def _in_turn(self, work: Callable[[Connection], T], *, wait: bool) -> T:
        raise Unavailable(self.reason)


FORKED_AWAY = (
    "this process was forked from one that had the record open, which its engine does not survive: open it only after the fork, "
    "or start processes with the `spawn` method"
)


class ForkedStore(ClosedStore):
    """What a store becomes in a forked child, where SQLite's locks do not hold: either side would lose acknowledged writes."""

    reason = FORKED_AWAY


STORES: weakref.WeakSet[SqliteStore] = weakref.WeakSet()
INHERITED: set[tuple[int, int]] = set()  # files that were open in the process this one was forked from
NEVER_CLOSED: list[object] = []  # their connections: closing one would touch the parent's files


def after_fork_in_child() -> None:
    """Keep off what belongs to the parent, and let go of its lock, so that it does not outlive the parent in us."""
    for store in list(STORES):
        store.__class__ = ForkedStore
        INHERITED.add(store._file)
        NEVER_CLOSED.extend([store, *store._open])
        os.close(store._lock_file)
        store._journal.close()
        store._turn = threading.Lock()  # whoever held it is not here


os.register_at_fork(after_in_child=after_fork_in_child)


def kept_apart(tx: Connection, work: Work) -> Any:
    """One member of a careful batch, undone alone if it fails."""
    tx.raw.execute("SAVEPOINT member")
    try:
        result = work(tx)
    except HerdbookError as problem:
        if not tx.raw.in_transaction or isinstance(problem, DiskFull | Busy):
            raise  # of the whole batch; on a full disk the engine itself has undone all of it
        tx.raw.execute("ROLLBACK TO member")
        tx.raw.execute("RELEASE member")
        return problem
    tx.raw.execute("RELEASE member")
    return result


@contextmanager
def cannot_open(path: Path) -> Iterator[None]:
    """The system's refusal as ours."""
    try:
        yield
    except (OSError, ValueError) as problem:
        if isinstance(problem, OSError) and problem.errno in NO_ROOM:
            raise translated(problem) from problem
        why = problem.strerror if isinstance(problem, OSError) else problem
        raise InvalidRequest(f"the record {path} cannot be opened ({why}): give another place with --record") from problem


def identity_of(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def lock_file(path: Path) -> int:
    """The lock file beside the record, open. The record may hold anything a fleet learned: only its owner enters its folder."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if INHERITED and path.exists() and identity_of(path) in INHERITED:
        raise Unavailable(FORKED_AWAY)
    return os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def look_first(path: Path) -> None:
    """Somebody else's file gets no lock file of ours beside it."""
    if not path.exists() or (path.is_file() and not path.stat().st_size):
        return
    if not path.is_file() or not os.access(path, os.R_OK | os.W_OK):
        raise PermissionError(errno.EACCES, "it is no file that may be read and written")
    try:
        refuse_foreign(path)
    except sqlite3.OperationalError:
        return  # somebody is at work on it: under the lock it will be looked at again
    except sqlite3.Error as problem:
        raise translated(problem) from problem


def make_record(path: Path) -> None:
    """Make the file where there is none, readable by its owner only, and bring it to this schema; the caller holds the file lock.

    A file that is there is not opened here: closing it again would drop the locks SQLite holds on it for this process, and
    another process could then throw away the log under its feet.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    if not os.access(path, os.R_OK | os.W_OK) or not path.is_file():
        raise PermissionError(errno.EACCES, "it is no file that may be read and written")
    try:
        refuse_foreign(path)
        migrate(path)
    except sqlite3.Error as problem:
        raise translated(problem) from problem


def refuse_foreign(path: Path) -> None:
    """Look before touching: a newer schema or somebody else's database stays as it is, and so does its log."""
    try:
        at, whose, tables = header(path, mode="ro")
    except (
        sqlite3.OperationalError
    ):  # whoever made the file died over it: what it had begun must be taken back before it can be read
        at, whose, tables = header(path, mode="rw")
    if tables and whose != APPLICATION_ID:
        raise Broken(f"{path} is a database of another application: give another place with --record")
    if at > SCHEMA:
        raise SchemaNewer(f"{path} has schema {at}, this herdbook knows {SCHEMA}: upgrade herdbook; the file was left untouched")


def header(path: Path, *, mode: str) -> tuple[int, int, int]:
    """The file's schema, application and number of tables, as of one moment: another process may be making it just now."""
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=BUSY_SECONDS)
    try:
        connection.execute("BEGIN")
        queries = ("PRAGMA user_version", "PRAGMA application_id", "SELECT count(*) FROM sqlite_schema")
        at, whose, tables = (connection.execute(query).fetchone()[0] for query in queries)
        return at, whose, tables
    finally:
        connection.close()


def migrate(path: Path) -> None:
    """Each step in its own transaction."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        at = connection.execute("PRAGMA user_version").fetchone()[0]
        for number, _, sql in MIGRATIONS[at:]:
            connection.executescript(
                f"BEGIN IMMEDIATE;\n{sql}\nPRAGMA application_id={APPLICATION_ID};\nPRAGMA user_version={number};\nCOMMIT;"
            )
    finally:
        connection.close()


REFUSED = (sqlite3.Error, UnicodeEncodeError)  # the driver raises the second for a lone surrogate in a parameter
REFUSALS: dict[str, type[HerdbookError]] = {"unknown_version": UnknownEntry, "unknown_outcome": UnknownEntry}


NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def translated(problem: sqlite3.Error | UnicodeEncodeError | OSError) -> HerdbookError:
    """The driver's error as ours; what a trigger refused carries its own name."""
    if isinstance(problem, UnicodeEncodeError):
        return InvalidText("a text holds a lone surrogate: send well-formed Unicode")
    text = str(problem)
    if text.startswith("herdbook:"):
        return REFUSALS.get(text.removeprefix("herdbook:"), Broken)(f"the record refused this: {text.removeprefix('herdbook:')}")
    if "disk is full" in text or "disk I/O error" in text or (isinstance(problem, OSError) and problem.errno in NO_ROOM):
        return DiskFull(f"the disk under the record failed ({text}): nothing was stored; free space and retry with the same ids")
    if "locked" in text or "busy" in text:
        return Busy()
    if "not a database" in text or "malformed" in text:
        return Broken(f"the record's file is damaged ({text}): restore it from a backup")
    return Broken(f"the record refused this: {text}")
