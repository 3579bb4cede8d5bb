"""The schema spreads over a cluster by tenant: nothing in it or in the queries crosses from one tenant to another."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest

from herdbook.record.store.postgres import setup
from herdbook.record.store.queries import load_queries

QUERIES = load_queries("postgres")
OF_NO_TENANT = {"meta", "migration"}
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


@pytest.mark.parametrize("name", sorted(set(QUERIES) - set(EXPLAINED)))
def test_a_query_names_its_tenant(name: str, admin: psycopg.Connection[Any]) -> None:
    """A query that names no tenant would be sent to every node, or refused."""
    touched = tables(admin) & set(re.findall(r"(?:FROM|JOIN|INTO|UPDATE|USING)\s+(\w+)", QUERIES[name]))
    if touched - OF_NO_TENANT:
        named = re.search(r"%\(tenant\)s", QUERIES[name]) or re.search(r"\(tenant,|, tenant\)", QUERIES[name])
        assert named, QUERIES[name]


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_a_query_is_what_a_cluster_takes(name: str) -> None:
    """Clocks and dice in an upsert are refused, notifications and sessions' locks stay on one node."""
    sql = re.sub(r"^--.*$", "", QUERIES[name], flags=re.MULTILINE)
    assert not re.search(r"\b(LISTEN|NOTIFY|nextval|random\(|pg_advisory|now\(\)|CURRENT_TIMESTAMP)\b", sql)


def test_every_table_is_spread() -> None:
    """A table that was forgotten would stay on one node, and its joins with it."""
    text = setup.sql("distributed")
    assert "colocate_with => 'herdbook.tenant'" in text
    assert {f"herdbook.{name}" for name in OF_NO_TENANT} == set(re.findall(r"create_reference_table\('(.+?)'\)", text))
