"""A transaction that is called by query name. What is told is sent ahead, what is asked is waited for.

The driver's pipeline makes one round trip of everything told since the last question. So what is refused may show only at
the next question or at the end: `failed` says that the transaction is lost, `changed` that there is something to undo.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.adapt import Dumper
from psycopg.types.numeric import Int8Dumper

from herdbook.record.store.postgres.refusals import REFUSED, translated
from herdbook.record.store.protocol import SERVER, Params, Row
from herdbook.record.store.queries import load_queries

QUERIES = load_queries("postgres")
Raw = psycopg.Connection[tuple[Any, ...]]


class NumberDumper(Dumper):
    """A truth value is 0 or 1 here, as in the other engine."""

    oid = Int8Dumper.oid

    def dump(self, obj: Any) -> bytes:
        return b"1" if obj else b"0"


class ColumnDumper(Dumper):
    """A list as an array's text, of a type that the statement names. The driver's own takes a pattern to each element."""

    def dump(self, obj: Any) -> bytes:
        encoding = "utf-8" if self.connection is None else self.connection.info.encoding
        found = ("{" + ",".join(map(as_element, obj)) + "}").encode(encoding)
        if b"\0" in found:
            raise psycopg.DataError("a text cannot hold NUL")
        return found


def as_element(part: Any) -> str:
    if part is None:
        return "NULL"
    if isinstance(part, str):
        return '"' + part.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(part, bytes):
        return f'"\\\\x{part.hex()}"'
    return repr(int(part) if isinstance(part, bool) else part)


class Transaction:
    """One transaction of one tenant, as the record's own code sees it."""

    def __init__(self, raw: Raw, tenant: int | None, next_id: Callable[[], int]) -> None:
        self._execute = raw.execute
        self.raw = raw
        self.tenant = tenant
        self.next_id = next_id
        self.changed = False
        self.failed = False

    def rows(self, query: str, params: Params) -> list[Row]:
        try:
            return self._execute(QUERIES[query], params).fetchall()
        except REFUSED as problem:
            self.failed = True
            raise translated(problem) from problem

    def row(self, query: str, params: Params) -> Row | None:
        found = self.rows(query, params)
        return found[0] if found else None

    def rows_of(self, queries: Sequence[str], params: Params) -> list[list[Row]]:
        try:
            asked = [self._execute(QUERIES[query], params) for query in queries]
            return [answer.fetchall() for answer in asked]
        except REFUSED as problem:
            self.failed = True
            raise translated(problem) from problem

    def each(self, query: str, asked: Sequence[Sequence[Any]]) -> list[Row]:
        return self.rows(query, in_columns(asked))

    def run(self, query: str, params: Params) -> None:
        self._tell(QUERIES[query], params)

    def many(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        if rows:  # in arrays, a column each: one statement, prepared once, whatever their number
            self._tell(QUERIES[query], in_columns(rows))

    def _tell(self, statement: str, params: Params) -> None:
        self.changed = True
        try:
            self._execute(statement, params)
        except REFUSED as problem:
            self.failed = True
            raise translated(problem) from problem

    @contextmanager
    def acting_for(self, tenant: int) -> Iterator[Transaction]:
        before, self.tenant = self.tenant, tenant
        opened_for(self.raw, tenant)
        if tenant == SERVER:
            self.rows("take_turn", {"tenant": SERVER})
        try:
            yield self
        finally:
            self.tenant = before
            opened_for(self.raw, before)


def in_columns(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def open_for(raw: Raw, tenant: int | None) -> None:
    """Whose rows the rest of the transaction sees. A command, since a cluster passes those on."""
    raw.execute(f"SET LOCAL app.tenant = '{'' if tenant is None else int(tenant)}'".encode())


def opened_for(raw: Raw, tenant: int | None) -> psycopg.Cursor[tuple[Any, ...]]:
    """The same; the answer is to be compared."""
    open_for(raw, tenant)
    return raw.execute(QUERIES["whose"])


# Every query walks indexes in the order in which it is written, whatever the planner thinks of tables that were still small,
# and is planned once the record is large enough for a plan to stay right: of tables that were empty when they were planned, all
# indexes look alike, and a plan that goes by the tenant alone would be kept until somebody analyzes them.
SMALL_ROWS = 10_000
PLANNING = {
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "join_collapse_limit": "1",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
}


def prepare(raw: Raw, *, role: str, timeouts: dict[str, int]) -> None:
    """What every new connection is told: less rights than its login may have, and never to wait for ever."""
    raw.autocommit = True
    raw.adapters.register_dumper(int, Int8Dumper)  # else each size of number would be another statement to prepare
    raw.adapters.register_dumper(bool, NumberDumper)
    raw.adapters.register_dumper(list, ColumnDumper)
    settings = {
        "search_path": "herdbook, pg_temp",
        **PLANNING,
        **{name: f"{ms}ms" for name, ms in timeouts.items()},
        "role": role,
    }
    raw.execute("SELECT set_config(name, value, false) FROM jsonb_each_text(%s::jsonb) s (name, value)", (json.dumps(settings),))
    rows = raw.execute("SELECT reltuples FROM pg_class WHERE oid = to_regclass('herdbook.version')").fetchone()
    mode = "force_generic_plan" if rows and rows[0] >= SMALL_ROWS else "force_custom_plan"
    raw.execute("SELECT set_config('plan_cache_mode', %s, false)", (mode,))
