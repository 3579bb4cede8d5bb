"""Row security under everything: without a tenant nothing is seen, with one nothing of another's, whatever goes wrong midway."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

from herdbook.base.errors import HerdbookError
from herdbook.record.store.postgres.store import PostgresStore
from herdbook.record.store.protocol import Reader, Transaction
from herdbook.testing.records import Book, Desk, person
from tests.postgres_server import LOGIN, server

TABLES = "SELECT relname FROM pg_class WHERE relnamespace = 'herdbook'::regnamespace AND relkind = 'r'"


@pytest.fixture
def both(book: Book) -> tuple[Desk, Desk]:
    """Two tenants that have one of everything, under the same names."""
    service = book.open()
    book.tenant_maker(2)
    desks = (person(service), person(service, tenant=2))
    for desk in desks:
        desk.begin("s", agent="agent")
        desk.write("a", f"canary {desk.caller.tenant}", session="s")
        desk.read("a", session="s")
        desk.do("attempt", session="s", result="failure", used=["a"])
        desk.do("record_action", session="s", tool="t", args={}, result={})
        desk.do("record_context", session="s", name="n", text="x")
        desk.do("attest", ref=desk.outcome("s", ref="o")["ref"], exit_code=1)
        desk.do("revise_outcome", ref="o", type="critical_failure")
        desk.do("box_open", box="b", provider="p", isolation="namespace", label="l", owner="o")
        desk.do("search", query="canary")
        desk.brief(session="s")
    return desks


def counts(connection: psycopg.Connection[Any]) -> dict[str, int]:
    names = [row[0] for row in connection.execute(TABLES).fetchall()]
    return {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}  # type: ignore[index]


def test_without_a_tenant_nothing_is_seen(both: tuple[Desk, Desk], database: str, admin: psycopg.Connection[Any]) -> None:
    """A connection that forgot to say for whom it asks would be shown everybody's."""
    there = {name: n for name, n in counts(admin).items() if n and name not in ("meta", "migration")}
    assert len(there) >= 20
    with psycopg.connect(server().url(database, login=LOGIN), autocommit=True) as app:
        app.execute("SET search_path = herdbook")
        seen = counts(app)
        assert dict.fromkeys(there, 0) == {name: seen[name] for name in there}
        app.execute("SET app.tenant = '1'")
        mine = counts(app)
        assert {name for name, n in mine.items() if n and name in there} == set(there)
        assert {"canary 1"} == {row[0].strip('"') for row in app.execute("SELECT value FROM version").fetchall()}


def test_the_owner_sees_nothing_either(both: tuple[Desk, Desk], admin: psycopg.Connection[Any]) -> None:
    """Row security that spares the owner would spare whoever runs a migration by hand."""
    admin.execute("SET ROLE herdbook_owner")
    assert 0 == counts(admin)["version"]


def test_nothing_is_written_for_another(both: tuple[Desk, Desk], database: str) -> None:
    """A row of one tenant could be planted, or hang on a row of another."""
    with psycopg.connect(server().url(database, login=LOGIN), autocommit=True) as app:
        app.execute("SET search_path = herdbook")
        app.execute("SET app.tenant = '1'")
        with pytest.raises(errors.InsufficientPrivilege):
            app.execute("INSERT INTO path (tenant, id, path) VALUES (2, 9, 'planted')")
        with pytest.raises(errors.ForeignKeyViolation):
            app.execute(
                "INSERT INTO action (tenant, session, n, tool, args, result, at) VALUES (1, 'other', 1, 't', '1', '1', 0)"
            )
        for statement in ("TRUNCATE version", "UPDATE version SET value = '1'", "DELETE FROM outcome", "DROP TABLE claim"):
            with pytest.raises(errors.InsufficientPrivilege):
                app.execute(statement)


def test_no_tenant_outlives_its_transaction(both: tuple[Desk, Desk], database: str) -> None:
    """A connection of the pool would go on as the tenant before: through errors, refusals and cancelled statements alike."""
    store = PostgresStore(server().url(database, login=LOGIN))
    dice = random.Random(23)
    try:

        def ask(n: int) -> None:
            tenant = 1 + n % 2
            kind = dice.choice(["rows", "write", "look", "broken", "slow"])

            def work(tx: Transaction | Reader) -> None:
                rows = tx.rows("runs_after", {"tenant": tenant, "after": "", "until": 2**60, "under": "", "limit": 10})
                assert {"s"} == {row[0] for row in rows}
                other = tx.rows("runs_after", {"tenant": 3 - tenant, "after": "", "until": 2**60, "under": "", "limit": 10})
                assert [] == other, "another tenant's rows"
                if kind == "broken":
                    raise ZeroDivisionError
                if kind == "slow":
                    tx.raw.execute("SET LOCAL statement_timeout = '1ms'")  # type: ignore[union-attr]
                    tx.raw.execute("SELECT pg_sleep(1)").fetchall()  # type: ignore[union-attr]

            try:
                if kind == "look":
                    store.look(work, tenant=tenant)
                else:
                    store.write(work, tenant=tenant)
            except (ZeroDivisionError, psycopg.Error, HerdbookError):
                assert kind in ("broken", "slow")

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(ask, range(600)))
    finally:
        store.close()


def test_a_login_without_the_role_is_told_what_it_lacks(database: str, tmp_path: Path) -> None:
    """A server would fail at its first request, with a sentence about a schema."""
    with server().admin() as admin:
        admin.execute("DROP ROLE IF EXISTS stranger")
        admin.execute("CREATE ROLE stranger LOGIN")
    try:
        with pytest.raises(HerdbookError, match="GRANT herdbook_app TO stranger"):
            PostgresStore(server().url(database, login="stranger"))
    finally:
        with server().admin() as admin:
            admin.execute("DROP ROLE stranger")
