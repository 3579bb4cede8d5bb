"""The trigger's cases of the other engine, on PostgreSQL: plain SQL by a superuser moves trust by the same rules."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest
from psycopg.rows import tuple_row

from herdbook.record.triggers import TRIGGERS
from herdbook.testing.records import Desk
from tests.record import test_trigger as other

known = other.known  # the fixture
REPLACE = "REPLACE INTO multiplier (tenant, path, type, factor) VALUES (1, ?, 'failure', ?)"
UPSERT = """INSERT INTO multiplier (tenant, path, type, factor) VALUES (1, %s, 'failure', %s)
ON CONFLICT (tenant, path, type) DO UPDATE SET factor = excluded.factor"""


class Named(dict[Any, Any]):
    """A row by names and by numbers."""

    def __missing__(self, place: int) -> Any:
        return list(self.values())[place]


def named(cursor: psycopg.Cursor[Any]) -> Any:
    names = [column.name for column in cursor.description or ()]
    return lambda values: Named(zip(names, values, strict=True))


class Shell:
    """psql, with the words of the other engine's driver: its marks for parameters, and its class for what is refused."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.row_factory: Any = None

    def execute(self, statement: str, params: Sequence[Any] = ()) -> psycopg.Cursor[Any]:
        cursor: psycopg.Cursor[Any] = self.connection.cursor(row_factory=named if self.row_factory else tuple_row)
        words = UPSERT if statement == REPLACE else statement.replace("?", "%s")
        try:
            return cursor.execute(words.encode(), params)
        except (psycopg.IntegrityError, psycopg.DataError, psycopg.InternalError, psycopg.DatabaseError) as problem:
            raise sqlite3.IntegrityError(str(problem)) from problem


pytestmark = pytest.mark.slow


@pytest.fixture
def raw(admin: psycopg.Connection[Any]) -> Shell:
    """A superuser in a session that replicates, where triggers that are not ENABLE ALWAYS stay silent."""
    admin.execute("SET session_replication_role = replica")
    return Shell(admin)


def test_plain_sql_moves_trust(known: Desk, admin: psycopg.Connection[Any]) -> None:
    """An outcome that somebody wrote with psql would leave trust as it was."""
    shell: Any = Shell(admin)
    shell.execute(other.CAUSE, (1, other.outcome_id(shell, "failure"), other.version_id(shell, "a")))
    assert (0.45, 1) == (known.read("a")["confidence"], known.read("a")["moves"])


SAME = [
    "test_the_trigger_moves_confidence_by_itself",
    "test_many_causes_in_one_statement_each_move",
    "test_a_cause_counts_once",
    "test_the_trigger_refuses_what_it_does_not_know",
    "test_a_factor_out_of_bounds_is_refused",
    "test_a_factor_that_is_no_number_means_the_tables",
    "test_the_log_cannot_be_made_up",
    "test_a_move_that_is_told_whole_moves_the_claim",
    "test_a_move_that_is_not_the_next_one_is_refused",
    "test_a_move_told_of_another_entry_is_refused",
    "test_a_foreign_revision_folds_again",
    "test_the_nearest_multiplier_wins",
    "test_each_tenant_has_its_own_multipliers",
    "test_without_a_multiplier_nothing_moves",
    "test_what_was_written_stays",
    "test_no_column_of_the_move_log_changes",
]
globals().update({name: getattr(other, name) for name in SAME})


CONFLICTS = {
    "rows": "INSERT INTO outcome_cause (tenant, outcome, version) VALUES (1, ?, ?), (1, ?, ?) ON CONFLICT DO NOTHING",
    "select": """INSERT INTO outcome_cause (tenant, outcome, version)
      SELECT * FROM (VALUES (1, ?::bigint, ?::bigint), (1, ?::bigint, ?::bigint)) t ON CONFLICT DO NOTHING""",
}


@pytest.mark.parametrize("form", CONFLICTS)
def test_the_same_cause_twice_in_one_statement_counts_once(known: Desk, raw: Shell, form: str) -> None:
    """A loader that names a cause twice would move trust twice, and the log would hold one move."""
    raw.execute(CONFLICTS[form], (other.outcome_id(raw, "failure"), other.version_id(raw, "a")) * 2)  # type: ignore[arg-type]
    assert (0.45, 1) == (known.read("a")["confidence"], known.read("a")["moves"])
    assert [] == known.service.record.store.check(1)


@pytest.mark.parametrize("again", [1, 3])
def test_a_cause_sent_again_later_moves_nothing(known: Desk, raw: Shell, again: int) -> None:
    """A loader that is started again would move trust again."""
    once = "INSERT INTO outcome_cause (tenant, outcome, version) VALUES (1, ?, ?) ON CONFLICT DO NOTHING"
    for _ in range(1 + again):
        raw.execute(once, (other.outcome_id(raw, "failure"), other.version_id(raw, "a")))  # type: ignore[arg-type]
    assert (0.45, 1) == (known.read("a")["confidence"], known.read("a")["moves"])
    assert [] == known.service.record.store.check(1)


@pytest.mark.parametrize("count", [1, 7, 8, 9, 64, 73])
def test_any_number_of_causes_moves_each(ann: Desk, count: int) -> None:
    """Causes are told in blocks: one at the edge of a block would be left out, or told twice."""
    keys = [f"k{n}" for n in range(count)]
    for key in keys:
        ann.write(key, 1)
    ann.begin("s")
    for key in keys:
        ann.read(key, session="s")
    moved = ann.outcome("s", "failure")["moved"]
    assert [(key, 0.5, 0.45) for key in sorted(keys)] == sorted((move["key"], move["before"], move["after"]) for move in moved)
    assert [] == ann.service.record.store.check(1)


def test_what_a_doctor_looks_for_is_what_there_is(ann: Desk, admin: psycopg.Connection[Any]) -> None:
    """A trigger that is missing on a server would not be missed, or one that is not needed there would always be."""
    rows = admin.execute(
        "SELECT tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
        " WHERE relnamespace = 'herdbook'::regnamespace AND NOT tgisinternal"
    ).fetchall()
    assert {name for (name,) in rows} == TRIGGERS["postgres"]
    assert [] == ann.do("status")["triggers_missing"]
