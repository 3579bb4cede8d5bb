"""The record in a PostgreSQL database, shared by any number of servers.

One transaction at a time writes for a tenant: it holds the tenant's row. So ids grow in the order of commits, nothing deadlocks,
and code that checks before it writes is right. Tenants do not wait for one another, readers for nobody. Every statement runs in
a transaction that was opened for one tenant, and row security shows that tenant's rows only.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg_pool import ConnectionPool, PoolClosed

from herdbook.base.errors import Broken, HerdbookError, SchemaNewer, Unavailable
from herdbook.base.ids import RowIds
from herdbook.record.store.batches import Apart, each_by, in_hope
from herdbook.record.store.postgres.connection import QUERIES, Raw, Transaction, open_for, opened_for, prepare
from herdbook.record.store.postgres.refusals import REFUSED, Passing, translated
from herdbook.record.store.postgres.setup import (
    APP_ROLE,
    CONNECT_SECONDS,
    SCHEMA,
    connected,
    mistakes_in,
    unbalanced_in,
    what_is_wrong,
)
from herdbook.record.store.protocol import Exposure, Params, Planned, Reader, Row, Serving, Work

T = TypeVar("T")
CONNECTIONS_MAX = 16
TRANSACTIONS_MAX = CONNECTIONS_MAX // 2  # at once: each may ask beside itself, and must find a connection for that
LENT_MAX = 10_000  # keys in use, before all are asked for again
LIFETIME_SECONDS = 600  # of a connection: how it plans is decided when it is made, by how large the record is
TIMEOUTS_MS = {"statement_timeout": 30_000, "lock_timeout": 20_000, "idle_in_transaction_session_timeout": 30_000}
RETRY_SECONDS = 20.0  # how long a restart of the server may take before somebody is told
PAUSES = (0.0, 0.05, 0.1, 0.2, 0.4)  # before one more try; the last one repeats
READING, WRITING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "BEGIN"


class PostgresStore:
    """The server engine. Made by `db init`; this only opens it."""

    engine = "postgres"
    schema = SCHEMA
    lent_seconds = 0.1

    def __init__(self, url: str) -> None:
        self._ids = RowIds()
        self.next_id = self._ids.next
        self.next_read_id = RowIds().next
        self.closed_because = ""
        self._rooms = threading.BoundedSemaphore(TRANSACTIONS_MAX)
        self._lent: dict[tuple[Any, ...], tuple[float, list[Row]]] = {}  # rows, and until when they may be lent
        try:
            self._pool: ConnectionPool[Raw] = ConnectionPool(
                url,
                kwargs={"connect_timeout": CONNECT_SECONDS, "application_name": "herdbook"},
                min_size=1,
                max_size=CONNECTIONS_MAX,
                num_workers=2,
                max_lifetime=LIFETIME_SECONDS,
                timeout=CONNECT_SECONDS,
                configure=lambda raw: prepare(raw, role=APP_ROLE, timeouts=TIMEOUTS_MS),
                open=False,
            )
            refuse_unfit(url)  # the pool would try again and again, and say nothing
            self._pool.open()
        except psycopg.Error as problem:
            self.close()
            raise translated(problem) from problem
        except BaseException:
            self.close()
            raise
        STORES.add(self)

    def rows(self, query: str, params: Params) -> list[Row]:
        return self._again(lambda: self._ask(query, params))

    def row(self, query: str, params: Params) -> Row | None:
        found = self.rows(query, params)
        return found[0] if found else None

    def rows_of(self, queries: Sequence[str], params: Params) -> list[list[Row]]:
        return [self.rows(query, params) for query in queries]

    def kept_rows(self, query: str, params: Mapping[str, Any]) -> list[Row]:
        return self.rows(query, params)

    def lent_rows(self, query: str, params: Mapping[str, Any]) -> list[Row]:
        key, asked = (query, *params.values()), time.monotonic()
        until, rows = self._lent.get(key, (0.0, []))
        if asked < until and not self.closed_because:
            return rows
        rows = self.rows(query, params)
        if rows:
            if len(self._lent) >= LENT_MAX:
                self._lent.clear()
            self._lent[key] = (asked + self.lent_seconds, rows)  # from before they were asked for: what comes later is newer
        return rows

    def write(self, work: Callable[[Transaction], T], *, tenant: int | None = None, wait_seconds: float | None = None) -> T:
        return self._again(lambda: self._durably(tenant, work, wait_seconds=wait_seconds))

    def write_batch(self, plans: Sequence[Planned]) -> list[Any]:
        """Each tenant's share in a transaction of its own: tenants have nothing to wait for in one another."""
        shares: dict[int, list[int]] = {}
        for place, plan in enumerate(plans):
            shares.setdefault(plan.tenant, []).append(place)
        results: list[Any] = [None] * len(plans)
        for tenant, places in shares.items():
            done = self._write_share(tenant, [plans[place].work for place in places])
            for place, result in zip(places, done, strict=True):
                results[place] = result
        return results

    def look(self, work: Callable[[Reader], T], *, tenant: int) -> T:
        def looked() -> T:
            with self._transaction(READING, tenant) as tx:
                return work(tx)

        return self._again(looked)

    def note_reads(self, exposures: Sequence[Exposure], serving: Serving | None = None) -> None:
        if exposures or serving:
            tenant = serving.tenant if serving else exposures[0].tenant
            self._again(partial(self._note, tenant, [list(column) for column in zip(*exposures, strict=True)], serving))

    def check(self, tenant: int) -> list[str]:
        """PostgreSQL checks its own pages; this asks whether tenants are kept apart and whether moves add up to claims."""
        with self._transaction(READING, tenant) as tx:
            return mistakes_in(tx.raw) + unbalanced_in(tx.raw)

    def facts(self) -> dict[str, Any]:
        with self._borrow() as raw:
            about = raw.execute(QUERIES["about"]).fetchone()
        assert about is not None
        version, database, size, commit, fsync, pages, login, role, superuser, bypass, standby, at = about
        safe = (commit, fsync, pages) == ("on", "on", "on") or (commit in ("remote_write", "remote_apply") and fsync == "on")
        return {
            "engine": f"PostgreSQL {version.split()[0]}",
            "database": database,
            "bytes": size,
            "schema": SCHEMA,
            "synchronous": "FULL" if safe else "NORMAL",
            "reads_waiting_bytes": 0,
            "reads_unreadable": 0,
            "login": login,
            "role": role,
            "login_is_above_row_security": bool(superuser or bypass),
            "standby": bool(standby),
            "server_at": at,
        }

    def close(self) -> None:
        self.closed_because = self.closed_because or "this record was closed: open it again"
        STORES.discard(self)
        if hasattr(self, "_pool"):
            self._pool.close()

    def _ask(self, query: str, params: Params) -> list[Row]:
        """One question, in one round trip: the transaction around it makes that its tenant cannot outlive it."""
        tenant = params.get("tenant") if isinstance(params, Mapping) else None
        with self._borrow() as raw, raw.pipeline():
            raw.execute("BEGIN READ ONLY")
            opened = opened_for(raw, tenant)
            asked = raw.execute(QUERIES[query], params)
            raw.execute("COMMIT")
            assert_tenant(opened.fetchone(), tenant)
            return asked.fetchall()

    def _note(self, tenant: int, columns: list[list[Any]], serving: Serving | None) -> None:
        with self._borrow() as raw, raw.pipeline():
            raw.execute(WRITING)
            opened = opened_for(raw, tenant)
            raw.execute("SET LOCAL synchronous_commit = off")
            if serving:
                raw.execute(QUERIES["insert_serving"], serving)
            if columns:
                raw.execute(QUERIES["note_reads"], columns)
            raw.execute("COMMIT")
            assert_tenant(opened.fetchone(), tenant)

    def _durably(self, tenant: int | None, work: Callable[[Transaction], T], *, wait_seconds: float | None = None) -> T:
        """Alone for the tenant: fold what was noted, do the work, and return only once it is durable."""
        with self._transaction(WRITING, tenant, wait_seconds=wait_seconds) as tx:
            return work(tx)

    def _write_share(self, tenant: int, works: list[Work]) -> list[Any]:
        """All in one transaction, hoping that none fails; after a failure once more, with each kept apart from the others."""
        for way in (in_hope, partial(each_by, kept_apart)):
            try:
                return self._again(partial(self._durably, tenant, partial(way, works)))
            except Apart:
                continue
            except HerdbookError as problem:  # nothing is stored
                if isinstance(problem, Unavailable) or len(works) == 1 or way is not in_hope:
                    return [problem] * len(works)
        raise AssertionError("a member that is kept apart fails alone")

    @contextmanager
    def _transaction(self, begin: str, tenant: int | None, *, wait_seconds: float | None = None) -> Iterator[Transaction]:
        with self._room(), self._borrow() as raw:
            tx = Transaction(raw, tenant, self.next_id)
            try:
                with raw.pipeline():
                    raw.execute(begin)
                    if begin == WRITING and tenant is not None:
                        open_for(raw, tenant)
                        said: Row | None = self._take_turn(tx, tenant, wait_seconds)
                    else:
                        said = opened_for(raw, tenant).fetchone()
                    assert_tenant(said, tenant)
                    yield tx
                    raw.execute("COMMIT")
            except BaseException:
                with suppress(psycopg.Error):  # a connection that is gone has nothing to take back
                    raw.rollback()
                raise

    def _take_turn(self, tx: Transaction, tenant: int, wait_seconds: float | None) -> Row:
        """Says for which tenant the transaction was opened, so that nobody has to ask that by itself."""
        if wait_seconds is not None:
            tx.raw.execute("SELECT set_config('lock_timeout', %s, true)", (f"{max(1, int(wait_seconds * 1000))}ms",))
        turn = tx.raw.execute(QUERIES["take_turn"], {"tenant": tenant})
        begun = tx.raw.execute(QUERIES["turn_begun"], {"tenant": tenant})
        held, found = turn.fetchone(), begun.fetchone()
        assert found is not None
        said, last, reads_wait = found
        if held is not None:  # else there is no such tenant: it sees nothing, and its foreign keys refuse whatever it writes
            self._ids.stay_above(max(held[0], last or 0))
            if reads_wait:
                tx.raw.execute(QUERIES["fold_reads"], {"tenant": tenant, "folded": self.next_id()})
        return (said,)

    @contextmanager
    def _room(self) -> Iterator[None]:
        if not self._rooms.acquire(timeout=CONNECT_SECONDS):
            raise Passing(f"{TRANSACTIONS_MAX} transactions are under way in this process: retry with the same ids")
        try:
            yield
        finally:
            self._rooms.release()

    @contextmanager
    def _borrow(self) -> Iterator[Raw]:
        if self.closed_because:
            raise Unavailable(self.closed_because)
        try:
            with self._pool.connection() as raw:
                yield raw
        except PoolClosed as problem:
            raise Unavailable("this record was closed: open it again") from problem
        except REFUSED as problem:
            raise translated(problem) from problem

    def _again(self, attempt: Callable[[], T]) -> T:
        """Try once more what a lost connection, a restart or a deadlock has stopped: work is found done if it was."""
        until = time.monotonic() + RETRY_SECONDS
        for turn in range(10_000):
            try:
                return attempt()
            except Passing:
                pause = PAUSES[min(turn, len(PAUSES) - 1)]
                if time.monotonic() + pause > until or self.closed_because:
                    raise
                threading.Event().wait(pause)
                if turn == 0:
                    with suppress(psycopg.Error, PoolClosed):
                        self._pool.check()  # the others are likely gone too
        raise Unavailable


def kept_apart(tx: Transaction, work: Work) -> Any:
    """One member of a careful batch, undone alone if it fails."""
    tx.raw.execute("SAVEPOINT member")
    pipeline = tx.raw.pipeline
    try:
        result = work(tx)
        with pipeline():
            pass  # what it told is answered by now, or has failed
    except (HerdbookError, *REFUSED) as problem:
        refusal = problem if isinstance(problem, HerdbookError) else translated(problem)
        if isinstance(refusal, Unavailable) and (tx.failed or refusal is not problem):
            raise refusal from problem
        with suppress(psycopg.Error), pipeline():
            pass  # what was sent behind the failure is passed over
        tx.failed = False
        tx.raw.execute("ROLLBACK TO member")
        result = refusal
    tx.raw.execute("RELEASE member")
    return result


def assert_tenant(said: Row | None, tenant: int | None) -> None:
    """The transaction is of the tenant it was opened for."""
    assert said == ("" if tenant is None else str(tenant),), "a transaction was opened for another tenant"


def refuse_unfit(url: str) -> None:
    """A database that does not let us in, or whose schema is not there, too old or too new, is said, and left as it is."""
    with connected(url) as raw:
        try:
            prepare(raw, role=APP_ROLE, timeouts=TIMEOUTS_MS)
            there = raw.execute(QUERIES["schema_there"]).fetchone()
            applied: dict[int, str] | None = dict(raw.execute(QUERIES["migrations"]).fetchall()) if there and there[0] else None
        except errors.InvalidParameterValue:  # there is no such role
            applied = None
        except errors.InsufficientPrivilege as problem:
            raise Broken(f"this login may not use the record: GRANT {APP_ROLE} TO {raw.info.user}") from problem
    wrong = what_is_wrong(applied)
    if wrong:
        raise (SchemaNewer if applied and max(applied) > SCHEMA else Broken)(wrong)


STORES: weakref.WeakSet[PostgresStore] = weakref.WeakSet()


def after_fork_in_child() -> None:
    """A connection has one owner: the child's first word on it would be taken for the parent's."""
    for store in list(STORES):
        store.closed_because = "this process was forked from one that had the record open: open it only after the fork"


os.register_at_fork(after_in_child=after_fork_in_child)
