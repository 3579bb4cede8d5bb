"""The catalogue itself: nothing in it lets one tenant see, block or probe another, and each way it could is found."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from herdbook.record.store.postgres import setup

MISTAKES = {
    "row security is not forced": "ALTER TABLE version NO FORCE ROW LEVEL SECURITY",
    "the table belongs to no tenant": "CREATE TABLE note (id bigint PRIMARY KEY, text text)",
    "the policy does not hold": "DROP POLICY of_tenant ON claim; CREATE POLICY of_tenant ON claim USING (true) WITH CHECK (true)",
    "another policy opens": "CREATE POLICY support ON entry FOR SELECT USING (true)",
    "a unique key does not begin": "CREATE UNIQUE INDEX once ON session (id)",
    "a foreign key does not carry": "ALTER TABLE attempt ADD FOREIGN KEY (n, tenant) REFERENCES path (id, tenant) NOT VALID",
    "a view shows": "CREATE VIEW everything AS SELECT * FROM version",
    "a function acts with": "CREATE FUNCTION peek() RETURNS bigint LANGUAGE sql SECURITY DEFINER"
    " AS 'SELECT count(*) FROM version'",
    "a function looks where": "ALTER FUNCTION outcome_cause_moves_trust_v1() RESET search_path",
    "a trigger can be passed by": "ALTER TABLE outcome_cause ENABLE TRIGGER outcome_cause_moves_trust_v1",
    "the app may truncate": "GRANT TRUNCATE ON claim TO herdbook_app",
    "the app may update": "GRANT UPDATE ON version TO herdbook_app",
    "the app owns it": "ALTER TABLE box OWNER TO herdbook_app",
    "a view shows the rows": "CREATE MATERIALIZED VIEW busiest AS SELECT tenant, count(*) FROM version GROUP BY 1",
}


def test_nothing_is_wrong(admin: psycopg.Connection[Any]) -> None:
    """A tenant would see another, on the day somebody looks."""
    assert [] == setup.mistakes_in(admin)


@pytest.mark.parametrize("kind", MISTAKES)
def test_each_mistake_is_found(kind: str, admin: psycopg.Connection[Any]) -> None:
    """A detector that misses a kind of mistake would pass a record in which it was made."""
    with admin.transaction(force_rollback=True):
        for statement in MISTAKES[kind].split("; "):
            admin.execute(statement)
        found = setup.mistakes_in(admin)
        assert any(each.startswith(kind) for each in found)
    assert [] == setup.mistakes_in(admin)


def test_a_role_above_row_security_is_found(admin: psycopg.Connection[Any]) -> None:
    """Whoever can do everything would be trusted to do only what it should."""
    with admin.transaction(force_rollback=True):
        admin.execute("ALTER ROLE herdbook_app BYPASSRLS")
        assert ["the role is above row security: herdbook_app"] == setup.mistakes_in(admin)
