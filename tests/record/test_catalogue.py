"""The schema itself: strict tables, tenants first in every key, a reason for every index and query."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib import resources
from importlib.resources.abc import Traversable

import pytest

from herdbook.record.store.queries import load_migrations, load_queries
from herdbook.record.triggers import TRIGGERS

# Keys that do not begin with the tenant, each with its reason.
EXPLAINED = {
    ("tenant", ("id",)): "the tenants themselves",
    ("tenant", ("name",)): "the tenants themselves, seen by whoever makes one, never by a tenant",
    ("meta", ("name",)): "facts about the file",
    ("version", ("id",)): "SQLite's own row number, of no meaning outside; every query asks for the tenant beside it",
    ("outcome", ("id",)): "SQLite's own row number, of no meaning outside; every query asks for the tenant beside it",
    ("text_entry", ("id",)): "SQLite's own row number, which the full-text table needs",
}
EXPLAINED_FOREIGN = {
    ("attestation", "outcome"): "an outcome's row number; a composite key would cost a second tree on every outcome",
    ("revision", "outcome"): "an outcome's row number; a composite key would cost a second tree on every outcome",
}
WITHOUT_TENANT = {"tenant", "meta"}


@pytest.fixture(scope="module")
def schema() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for _, _, sql in load_migrations("sqlite"):
            connection.executescript(sql)
        yield connection


def tables(schema: sqlite3.Connection) -> list[str]:
    names = [row[0] for row in schema.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return [name for name in names if not name.startswith(("sqlite_", "text_index"))]


def keys(schema: sqlite3.Connection, table: str) -> Iterator[tuple[str, ...]]:
    """The primary key and every unique one."""
    primary = [(row[5], row[1]) for row in schema.execute(f"PRAGMA table_info({table})") if row[5]]
    yield tuple(name for _, name in sorted(primary))
    for _, index, unique, *_ in schema.execute(f"PRAGMA index_list({table})").fetchall():
        if unique:
            yield tuple(row[2] for row in schema.execute(f"PRAGMA index_info({index})"))


def test_every_table_is_strict(schema: sqlite3.Connection) -> None:
    """Text would be kept where numbers belong."""
    strict = {row[1] for row in schema.execute("PRAGMA table_list") if row[5]}
    assert set() == set(tables(schema)) - strict


def test_every_table_belongs_to_a_tenant(schema: sqlite3.Connection) -> None:
    """Rows of a table would belong to everybody."""
    without = {
        name for name in tables(schema) if "tenant" not in [row[1] for row in schema.execute(f"PRAGMA table_info({name})")]
    }
    assert WITHOUT_TENANT == without


def test_every_key_begins_with_the_tenant(schema: sqlite3.Connection) -> None:
    """A conflict would tell one tenant what another one has."""
    found = {(table, key) for table in tables(schema) for key in keys(schema, table) if key[0] != "tenant"}
    assert set(EXPLAINED) == found


def test_every_foreign_key_carries_the_tenant(schema: sqlite3.Connection) -> None:
    """A row of one tenant could hang on a row of another."""
    found = set()
    for table in tables(schema):
        references: dict[int, tuple[str, list[str]]] = {}
        for number, _, parent, column, *_ in schema.execute(f"PRAGMA foreign_key_list({table})"):
            references.setdefault(number, (parent, []))[1].append(column)
        found |= {(table, parent) for parent, columns in references.values() if "tenant" not in columns}
    assert set(EXPLAINED_FOREIGN) == found


def test_every_index_begins_with_the_tenant_and_is_used(schema: sqlite3.Connection) -> None:
    """An index that no query needs would be paid for at every write."""
    indexes = schema.execute("SELECT name, tbl_name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL").fetchall()
    assert indexes
    queries, triggers = load_queries("sqlite"), schema.execute("SELECT sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    plans = {}
    for name, sql in queries.items():
        marks = re.sub(r":\w+|\?\d", "NULL", sql)
        filled = [None] * marks.count("?")
        plans[name] = " ".join(str(row[3]) for row in schema.execute(f"EXPLAIN QUERY PLAN {marks}", filled))
    for name, _ in indexes:
        assert "tenant" == schema.execute(f"PRAGMA index_info({name})").fetchone()[2]
        assert any(name in plan for plan in plans.values()), f"no query uses {name}; triggers: {len(triggers)}"


# Queries that look at a whole table, each with its reason.
WHOLE_TABLE = {
    "counts": "a count of everything, for a doctor",
    "any_sealed": "stops at the first row",
    "triggers": "the catalogue",
    "any_access_key": "stops at the first row",
    "tenants": "tens, for the operator",
    "boxes": "boxes of a tenant, newest first: hundreds, not millions",
}


def test_no_query_looks_at_a_whole_table(schema: sqlite3.Connection) -> None:
    """What is fast with a thousand entries would be slow with a million."""
    slow = set()
    for name, sql in load_queries("sqlite").items():
        marks = re.sub(r":\w+|\?\d", "NULL", sql)
        plan = [str(row[3]) for row in schema.execute(f"EXPLAIN QUERY PLAN {marks}", [None] * marks.count("?"))]
        small = r"j\b|f\b|x\b|t\b|latest\b|CONSTANT|SUBQUERY|text_index|\(|c VIRTUAL"
        scanned = [step for step in plan if re.match(rf"SCAN (?!{small})", step)]
        if [step for step in scanned if "json_each" not in step and "VIRTUAL TABLE" not in step]:
            slow.add(name)
    assert set(WHOLE_TABLE) >= slow, slow - set(WHOLE_TABLE)


def test_every_index_has_a_reason() -> None:
    """An index could never be dropped again, since nobody knows what for it is there."""
    for file in (resources.files("herdbook.record") / "sql" / "sqlite" / "migrations").iterdir():
        text = file.read_text(encoding="utf-8")
        lines = text.splitlines()
        for number, line in enumerate(lines):
            if re.match(r"CREATE (UNIQUE )?INDEX", line):
                assert lines[number - 1].startswith("-- "), line


def test_every_query_is_used() -> None:
    """A query that nothing calls would be kept working for nobody."""
    sources = "\n".join(path.read_text(encoding="utf-8") for path in _python(resources.files("herdbook")))
    kinds = {
        f"{verb}_{kind}" for verb in ("next", "insert") for kind in ("action", "context", "attempt")
    }  # called by a made-up name
    assert [] == [name for name in load_queries("sqlite") if f'"{name}"' not in sources and name not in kinds]


def _python(folder: Traversable) -> Iterator[Traversable]:
    for child in folder.iterdir():
        if child.is_dir():
            yield from _python(child)
        elif child.name.endswith(".py"):
            yield child


def test_what_a_doctor_looks_for_is_what_there_is(schema: sqlite3.Connection) -> None:
    """A trigger that is missing would not be missed."""
    assert {row[0] for row in schema.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")} == TRIGGERS["sqlite"]


def test_the_detector_sees_a_key_without_tenant() -> None:
    """A detector that sees nothing would pass everything."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (tenant INTEGER, x INTEGER UNIQUE, PRIMARY KEY (tenant, x)) STRICT")
        assert {("x",), ("tenant", "x")} == set(keys(connection, "t"))


# What only one engine asks, each with its reason.
SQLITE_ONLY = {
    "insert_read": "the journal is folded row by row",
    "last_version": "PostgreSQL asks it with what else begins a turn",
}
POSTGRES_ONLY = {  # a server has many tenants, writers and logins
    "note_reads", "fold_reads", "whose", "take_turn", "turn_begun", "schema_there", "migrations", "about",
}  # fmt: skip


def test_both_engines_have_every_migration_and_query() -> None:
    """What was built on one engine would be missing on the other, and nobody told before somebody's server is."""
    sqlite, postgres = (load_migrations(engine) for engine in ("sqlite", "postgres"))
    assert [(number, name) for number, name, _ in sqlite] == [(number, name) for number, name, _ in postgres]
    asked = {engine: set(load_queries(engine)) for engine in ("sqlite", "postgres")}
    assert set(SQLITE_ONLY) == asked["sqlite"] - asked["postgres"]
    assert POSTGRES_ONLY == asked["postgres"] - asked["sqlite"]


def test_both_engines_have_the_same_columns() -> None:
    """A row would mean something else on the other engine."""
    found = {}
    for engine in ("sqlite", "postgres"):
        text = "\n".join(sql for _, _, sql in load_migrations(engine))
        made = re.findall(r"^CREATE TABLE (\w+) \((.*?)^\)", text, re.MULTILINE | re.DOTALL)
        columns = {name: set(re.findall(r"^  ([a-z_]+) ", body, re.MULTILINE)) for name, body in made}
        for table, column in re.findall(r"^ALTER TABLE (\w+) ADD COLUMN (\w+)", text, re.MULTILINE):
            columns[table].add(column)
        found[engine] = columns
    assert {"noted", "text_token"} == set(found["postgres"]) - set(found["sqlite"])
    assert set() == set(found["sqlite"]) - set(found["postgres"])
    more = {name: found["postgres"][name] - columns for name, columns in found["sqlite"].items()}
    assert {"tenant": {"folded", "keys_given"}, "revision": {"arrived"}, "text_entry": {"tokens"}} == {
        k: v for k, v in more.items() if v
    }
    less = {name: columns - found["postgres"][name] for name, columns in found["sqlite"].items()}
    assert {"text_entry": {"id"}} == {name: columns for name, columns in less.items() if columns}
