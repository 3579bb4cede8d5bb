"""The schema spreads over a cluster by tenant: nothing in it or in the queries crosses from one tenant to another."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import psycopg
import pytest

from herdbook.base.errors import HerdbookError
from herdbook.record.store.postgres import setup
from herdbook.record.store.queries import load_queries
from herdbook.testing.record_book import person
from tests.postgres import cluster
from tests.postgres_server import server
from tests.record.databases import postgres_book

QUERIES = load_queries("postgres")
OF_NO_TENANT = {"meta", "migration"}
# Functions that know the tenant by another name: of its own row it is the id; the other one is told it.
WHOSE = {"tenant_has_multipliers_v1": r"\bNEW\.id\b", "nearest_factor_v1": r"\btenant = whose\b"}
# What asks about no tenant's rows, each with its reason.
EXPLAINED = {
    "any_access_key": "tenants, as the server sees them", "tenants": "tenants, as the server sees them",
    "next_tenant": "tenants, as the server sees them", "triggers": "the catalogue", "about": "the server",
    "whose": "the transaction", "schema_there": "the catalogue", "any_sealed": "row security adds the tenant",
}  # fmt: skip


def tables(admin: psycopg.Connection[Any]) -> set[str]:
    found = admin.execute("SELECT relname FROM pg_class WHERE relnamespace = 'herdbook'::regnamespace AND relkind = 'r'")
    return {row[0] for row in found.fetchall()}


def test_every_key_holds_the_column_it_is_spread_by(admin: psycopg.Connection[Any]) -> None:
    """A cluster refuses a primary, unique or foreign key without it."""
    rows = admin.execute(
        "SELECT conrelid::regclass::text, contype, (SELECT array_agg(attname::text) FROM pg_attribute WHERE attrelid = conrelid"
        " AND attnum = ANY (conkey)) FROM pg_constraint"
        " WHERE connamespace = 'herdbook'::regnamespace AND contype IN ('p', 'u', 'f')"
    ).fetchall()
    wrong = [(table, kind, columns) for table, kind, columns in rows if "tenant" not in columns]
    assert {("tenant", "p"), ("meta", "p"), ("migration", "p")} == {(table, kind) for table, kind, _ in wrong}


def test_triggers_are_by_row(admin: psycopg.Connection[Any]) -> None:
    """A trigger for statements, or one with transition tables, fires for no shard."""
    rows = admin.execute(
        "SELECT tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE relnamespace = 'herdbook'::regnamespace"
        " AND NOT tgisinternal AND (tgtype & 1 = 0 OR tgnewtable IS NOT NULL OR tgoldtable IS NOT NULL)"
    ).fetchall()
    assert [] == rows


def test_a_query_names_its_tenant(admin: psycopg.Connection[Any]) -> None:
    """A query that names no tenant would be sent to every node, or refused."""
    ours = tables(admin) - OF_NO_TENANT
    for name in sorted(set(QUERIES) - set(EXPLAINED)):
        if ours & set(re.findall(r"(?:FROM|JOIN|INTO|UPDATE|USING)\s+(\w+)", QUERIES[name])):
            named = re.search(r"%\(tenant\)s", QUERIES[name]) or re.search(r"\(tenant,|, tenant\)", QUERIES[name])
            assert named, QUERIES[name]


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_a_query_is_what_a_cluster_takes(name: str) -> None:
    """Clocks and dice in an upsert are refused, notifications and sessions' locks stay on one node."""
    sql = re.sub(r"^--.*$", "", QUERIES[name], flags=re.MULTILINE)
    assert not re.search(r"\b(LISTEN|NOTIFY|nextval|random\(|pg_advisory|now\(\)|CURRENT_TIMESTAMP)\b", sql)


WORDS = "ON|WHERE|SET|JOIN|LEFT|CROSS|ORDER|FOR|GROUP|LIMIT|UNION"
ALIAS = re.compile(rf"\b(?:FROM|JOIN|UPDATE|USING)\s+(\w+)(?:\s+(?:AS\s+)?(?!(?:{WORDS})\b)(\w+))?")


def test_a_join_carries_the_tenant(admin: psycopg.Connection[Any]) -> None:
    """Rows would have to be fetched from other nodes, or the query would be refused."""
    ours = tables(admin) - OF_NO_TENANT
    seen = 0
    for name in sorted(set(QUERIES) - set(EXPLAINED)):
        sql = re.sub(r"^--.*$", "", QUERIES[name], flags=re.MULTILINE)
        joined = [(table, alias) for table, alias in ALIAS.findall(sql) if table in ours]
        if len(joined) > 1:
            column = {table: "id" if table == "tenant" else "tenant" for table in ours}
            loose = [alias for table, alias in joined if alias and not re.search(rf"\b{alias}\.{column[table]}\b", sql)]
            assert [] == loose, sql
            seen += 1
    assert seen > 20


def test_a_function_stays_with_the_tenant_of_its_row(admin: psycopg.Connection[Any]) -> None:
    """A trigger that asked for another tenant's rows would ask another node, from inside a statement that is on this one."""
    ours = tables(admin) - OF_NO_TENANT
    bodies = admin.execute("SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'herdbook'::regnamespace").fetchall()
    assert len(bodies) > 5
    for name, body in bodies:
        text = re.sub(r"--.*$", "", body, flags=re.MULTILINE)
        for statement in re.split(r";|\bTHEN\n|\bLOOP\n", text):
            asked = [(table, alias) for table, alias in ALIAS.findall(statement) if table in ours]
            asked += [(table, "") for table in re.findall(r"\bINTO\s+(\w+)\s*\(", statement) if table in ours]
            if asked:
                assert re.search(WHOSE.get(name, r"\b(?:NEW|OLD)\.tenant\b"), statement), (name, statement)
                assert not re.search(r"\b(now\(\)|random\(|nextval|CURRENT_TIMESTAMP|NOTIFY)", statement), (name, statement)


def test_the_calls_are_made(tmp_path: Path) -> None:
    """On a cluster nobody could begin: a table that was forgotten stays on one node, and its joins with it."""
    name = f"cluster{next(server().numbers)}"
    url = server().url(name)
    with server().admin() as admin:
        admin.execute(f"CREATE DATABASE {name}")
    try:
        with server().admin(name) as admin:
            cluster.make(admin)
            assert len(setup.MIGRATIONS) == len(setup.Setup.bring_up(url, post=True, distributed=True))
            calls = cluster.spread(admin)
            assert [("meta", None, None), ("migration", None, None), ("tenant", "id", None)] == calls[:3]
            everything = admin.execute(
                "SELECT relname FROM pg_class WHERE relnamespace = 'herdbook'::regnamespace AND relkind = 'r'"
            )
            assert {row[0] for row in everything.fetchall()} == {table for table, _, _ in calls}
            assert {("tenant", "tenant")} == {(key, beside) for _, key, beside in calls[3:]}
            admin.execute(
                "CREATE TABLE herdbook.later (tenant bigint NOT NULL REFERENCES herdbook.tenant (id), PRIMARY KEY (tenant))"
            )
            admin.execute("ALTER TABLE herdbook.later OWNER TO herdbook_owner")
            assert [] == setup.Setup.bring_up(url, post=True, distributed=True)
            assert [("later", "tenant", "tenant")] == cluster.spread(admin)[len(calls) :]
        book = postgres_book(name, tmp_path / "seal.key")
        ann = person(book.open())
        ann.run("s", used=[{"entity": "acme", "key": "k"}] if ann.write("k", 1, entity="acme") else None, task_input="t")
        assert 1 == len(ann.claims("k", entity="acme")[0]["moves"])
        book.close()
    finally:
        with server().admin() as admin:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


WRONG = {
    "does not hold tenant": "CREATE TABLE herdbook.x (tenant bigint, id bigint UNIQUE)",
    "would cross nodes": "CREATE TABLE herdbook.x (tenant bigint, whose bigint REFERENCES herdbook.tenant (id))",
    "lies beside": "CREATE TABLE herdbook.x (tenant integer)",
    "cannot be spread": "CREATE TABLE herdbook.x (tenant bigint);"
    " CREATE TRIGGER t AFTER INSERT ON herdbook.x FOR EACH STATEMENT EXECUTE FUNCTION herdbook.refuse_v1('x')",
}


@pytest.mark.parametrize("why", WRONG)
def test_what_a_cluster_refuses_is_refused_here(why: str) -> None:
    """What stands in for the cluster would take a schema that no cluster takes."""
    name = f"cluster{next(server().numbers)}"
    with server().admin() as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE herdbook_template")
    try:
        with server().admin(name) as admin:
            cluster.make(admin)
            admin.execute(WRONG[why].encode())
        with pytest.raises(HerdbookError, match=why):
            setup.Setup.bring_up(server().url(name), distributed=True)
    finally:
        with server().admin() as admin:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_one_node_is_told_that_it_is_no_cluster(database: str) -> None:
    """Whoever tries it on one machine would read about a relation that herdbook never spoke of."""
    with pytest.raises(HerdbookError, match="CREATE EXTENSION citus"):
        setup.Setup.bring_up(server().url(database), distributed=True)
