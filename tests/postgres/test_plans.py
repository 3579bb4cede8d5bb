"""What is asked often walks an index, as the app and under row security, whatever the planner knows of the tables.

Which of several indexes is right shows only in a large record: `python -m bench on_postgres` compares ten thousand to a million.
"""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from herdbook.record.store.postgres.connection import QUERIES, opened_for, prepare
from herdbook.record.store.postgres.setup import APP_ROLE
from herdbook.testing.records import Desk
from tests.postgres_server import LOGIN, server

LARGE = {"version", "entry", "claim", "read", "outcome", "outcome_cause", "trace", "action", "context", "attempt", "text_token"}
HOT: dict[str, dict[str, Any]] = {  # by query, what it is asked with
    "heads": {"paths": "[1, 2]"},
    "versions": {"versions": "[1, 2]"},
    "session": {"session": "s"},
    "served_claims": {"session": "s"},
    "causes_of": {"versions": "[1, 2]"},
    "reads_of_session": {"session": "s", "reads": 0},
    "actions_of": {"session": "s", "actions": 0},
    "contexts_of": {"session": "s", "contexts": 0},
    "attempts_of": {"session": "s", "attempts": 0},
    "writes_of": {"session": "s", "writes": 0},
    "moves_of_outcome": {"outcome": 1},
    "last_trace": {"session": "s"},
    "outcome": {"ref": "o"},
    "counted_already": {"entries": "[1]", "identity": "ann", "day": 1},
    "changes": {"after": 0, "limit": 5},
    "changes_below": {"after": 0, "limit": 5, "path": "a", "low": "a/", "high": "a0"},
    "changes_of_own": {"after": 0, "limit": 5, "identity": "ann"},
    "newest_outcomes": {"before": 9, "limit": 5},
    "newest_outcomes_below": {"before": 9, "limit": 5, "path": "a", "low": "a/", "high": "a0"},
    "newest_outcomes_of_own": {"before": 9, "limit": 5, "identity": "ann"},
    "newest_outcomes_of_box": {"before": 9, "limit": 5, "box": "b"},
    "match_text": {"tokens": '["a"]', "limit": 5},
}


def plan_of(database: str, query: str, asked: dict[str, Any]) -> dict[str, Any]:
    """How the app's own login would answer it, under row security."""
    with psycopg.connect(server().url(database, login=LOGIN), autocommit=True) as app:
        prepare(app, role=APP_ROLE, timeouts={})
        with app.transaction():
            opened_for(app, 1)
            row = app.execute(f"EXPLAIN (FORMAT JSON) {QUERIES[query]}".encode(), {"tenant": 1, **asked}).fetchone()
    assert row is not None
    plan = row[0] if isinstance(row[0], list) else json.loads(row[0])
    found: dict[str, Any] = plan[0]["Plan"]
    return found


def scanned(plan: dict[str, Any]) -> set[str]:
    """Tables that a plan reads from one end to the other."""
    mine = {plan["Relation Name"]} if plan["Node Type"] == "Seq Scan" else set()
    return mine.union(*(scanned(part) for part in plan.get("Plans", [])))


@pytest.mark.slow
@pytest.mark.parametrize("analyzed", [False, True])
@pytest.mark.parametrize("query", HOT)
def test_a_hot_query_walks_an_index(ann: Desk, database: str, query: str, analyzed: bool) -> None:
    """An answer would cost by what the record holds, and not by what was asked."""
    for n in range(5):
        ann.write(f"k{n}", n)
    if analyzed:
        with server().admin(database) as admin:
            admin.execute("ANALYZE")
    assert set() == scanned(plan_of(database, query, HOT[query])) & LARGE


def index_conditions(plan: dict[str, Any], table: str) -> list[str]:
    """By what a table's rows are found."""
    mine = [str(plan.get("Index Cond", ""))] if plan.get("Relation Name") == table else []
    return mine + [condition for part in plan.get("Plans", []) for condition in index_conditions(part, table)]


@pytest.mark.slow
def test_what_counted_today_is_looked_up_by_entry(ann: Desk, database: str) -> None:
    """An outcome would cost by all that its identity committed that day, where tables were analyzed while they were small."""
    ann.write("k", 1)
    with server().admin(database) as admin:
        admin.execute("ANALYZE")
    plan = plan_of(database, "counted_already", {"entries": "[1, 2]", "identity": "ann", "day": 1})
    conditions = index_conditions(plan, "counted")
    assert conditions
    assert all("entry" in condition for condition in conditions), conditions
