"""What a DBA runs: the roles, the schema and its migrations, as SQL that can be printed and read first.

A migration whose name says `post` is for after the last old server is gone; all others must let old servers go on. A server
never changes the schema: its role may not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import resources

import psycopg

from herdbook.base.errors import HerdbookError
from herdbook.record.store.postgres.refusals import REFUSED, translated
from herdbook.record.store.queries import load_migrations

MIGRATIONS = load_migrations("postgres")
SCHEMA = len(MIGRATIONS)
APP_ROLE, OWNER_ROLE = "herdbook_app", "herdbook_owner"


def sql(name: str) -> str:
    return (resources.files("herdbook.record") / "sql" / "postgres" / f"{name}.sql").read_text(encoding="utf-8")


def is_post(name: str) -> bool:
    return "_post_" in name


def what_is_wrong(applied: Mapping[int, str] | None) -> str:
    """Why a server of this version cannot work on a schema with these migrations; empty when it can."""
    if applied is None:
        return "this database has no record in it: herdbook db init makes one"
    unknown = [name for number, name in sorted(applied.items()) if number > SCHEMA and is_post(name)]
    if unknown:
        return f"this database has the migration {unknown[0]}, made for a newer herdbook: upgrade herdbook; it was left untouched"
    missing = [name for number, name, _ in MIGRATIONS if number not in applied and not is_post(name)]
    return f"this database lacks the migration {missing[0]}: herdbook db migrate brings it up to date" if missing else ""


def script(applied: Mapping[int, str], *, post: bool) -> Iterator[str]:
    """The steps that bring a database with these migrations up to date, in order; the first makes the roles and the schema."""
    yield sql("roles")
    for number, name, text in MIGRATIONS:
        if number not in applied and (post or not is_post(name)):
            noted = sql("noted").format(number=number, name=name)
            as_owner = f"SET LOCAL ROLE {OWNER_ROLE};\nSET LOCAL search_path = herdbook, pg_temp;\nSET LOCAL lock_timeout = '5s';"
            yield f"BEGIN;\n{as_owner}\n{text}\n{noted}\n{sql('security')}\nCOMMIT;"


def applied_in(connection: psycopg.Connection[tuple[object, ...]]) -> dict[int, str] | None:
    """Which migrations a database has; None without a record in it."""
    there = connection.execute("SELECT to_regclass('herdbook.migration') IS NOT NULL").fetchone()
    if not there or not there[0]:
        return None
    found = connection.execute("SELECT number, name FROM herdbook.migration ORDER BY number").fetchall()
    return {int(str(number)): str(name) for number, name in found}


def bring_up(url: str, *, post: bool = False) -> list[str]:
    """Run the script as whoever the address logs in as, who must be allowed to; the names of what was applied."""
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            before = applied_in(connection) or {}
            for step in script(before, post=post):
                connection.execute(step.encode())
            after = applied_in(connection) or {}
            return [name for number, name in after.items() if number not in before]
    except REFUSED as problem:
        refusal: HerdbookError = translated(problem)
        raise refusal from problem
