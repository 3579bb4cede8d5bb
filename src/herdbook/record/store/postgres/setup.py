"""What a DBA runs: the roles, the schema and its migrations, as SQL that can be printed and read first.

A migration whose name says `post` is for after the last old server is gone; all others must let old servers go on. A server
never changes the schema: its role may not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors
from psycopg.sql import SQL, Identifier, Literal

from herdbook.base.errors import InvalidRequest
from herdbook.record.store.postgres.refusals import REFUSED, not_let_in, translated
from herdbook.record.store.queries import load_migrations

MIGRATIONS = load_migrations("postgres")
SCHEMA = len(MIGRATIONS)
CONNECT_SECONDS = 5
STEP_TRIES = 6  # of a migration, each of which waits up to five seconds for a lock
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


def steps(applied: Mapping[int, str], *, post: bool, distributed: bool) -> Iterator[str]:
    """What brings a database with these migrations up to date, in order, each a transaction; the first makes roles and schema."""
    yield sql("roles")
    for number, name, text in MIGRATIONS:
        if number not in applied and (post or not is_post(name)):
            noted = sql("noted").format(number=number, name=name)
            yield as_owner(f"{text}\n{noted}\n{sql('security')}", distributed=distributed)
    if distributed:
        yield f"BEGIN;\n{sql('distributed')}\nCOMMIT;"


def as_owner(statements: str, *, distributed: bool = False) -> str:
    opened = f"SET LOCAL ROLE {OWNER_ROLE};\nSET LOCAL search_path = herdbook, pg_temp;\nSET LOCAL lock_timeout = '5s';"
    triggers = "\nSET LOCAL citus.enable_unsafe_triggers = on;" if distributed else ""
    return f"BEGIN;\n{opened}{triggers}\n{statements}\nCOMMIT;"


class Setup:
    """What `herdbook db` does, as whoever the address logs in as."""

    @staticmethod
    def printable(url: str | None, *, post: bool, distributed: bool) -> str:
        """What would be run on that database, or on an empty one."""
        applied: Mapping[int, str] = {}
        if url is not None:
            with logged_in(url) as connection:
                applied = applied_in(connection) or {}
        return "\n\n".join(steps(applied, post=post, distributed=distributed))

    @staticmethod
    def bring_up(url: str, *, post: bool = False, distributed: bool = False) -> list[str]:
        """Run it; the names of what was applied. Done twice, or by two at once, it is done once.

        Row security and triggers that somebody turned off, or a restore without the schema did, are turned on again.
        """
        with logged_in(url) as connection:
            if distributed:
                refuse_one_node(connection)
            before = applied_in(connection) or {}
            for step in steps(before, post=post, distributed=distributed):
                taken(connection, step)
            if mistakes_in(connection):
                taken(connection, as_owner(sql("security")))
            after = applied_in(connection) or {}
            return [name for number, name in after.items() if number not in before]

    @staticmethod
    def make_login(url: str, passfile: Path) -> str:
        """The login that a server's passfile is of: a member of the app's role and nothing else. Its name.

        The server of the database is told a digest, so the password is in no log of statements.
        """
        name, password = named_in(passfile)
        with logged_in(url) as connection, connection.transaction():
            there = connection.execute("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = %s", (name,)).fetchone()
            if there and there[0]:
                raise InvalidRequest(f"{name} is above row security: name a login of the server's own in its passfile")
            verb = SQL("ALTER ROLE" if there else "CREATE ROLE")
            digest = connection.pgconn.encrypt_password(password.encode(), name.encode(), b"scram-sha-256").decode()
            connection.execute(SQL("{} {} LOGIN PASSWORD {}").format(verb, Identifier(name), Literal(digest)))
            connection.execute(SQL("GRANT {} TO {}").format(Identifier(APP_ROLE), Identifier(name)))
        return name

    @staticmethod
    def how_it_is(url: str) -> dict[str, Any]:
        """What is applied, what is missing, and what of the catalogue would let tenants see one another."""
        with logged_in(url) as connection:
            applied = applied_in(connection)
            return {
                "server": str(connection.info.server_version // 10_000),
                "applied": list((applied or {}).values()),
                "missing": [name for number, name, _ in MIGRATIONS if number not in (applied or {})],
                "wrong": what_is_wrong(applied),
                "mistakes": [] if applied is None else mistakes_in(connection),
            }


def refuse_one_node(connection: psycopg.Connection[Any]) -> None:
    """Before anything is made: what spreads tables is there only on a cluster."""
    there = connection.execute("SELECT to_regclass('pg_dist_partition') IS NOT NULL").fetchone()
    if not there or not there[0]:
        raise InvalidRequest("this database is not of a Citus cluster: CREATE EXTENSION citus in it, or leave --distributed out")


def taken(connection: psycopg.Connection[Any], step: str) -> None:
    """Run one step. Servers that write meanwhile may be in its way, and it in theirs: then it is undone, and tried again."""
    for left in reversed(range(STEP_TRIES)):
        try:
            connection.execute(step.encode())
            return
        except (errors.DeadlockDetected, errors.LockNotAvailable):
            connection.execute("ROLLBACK")
            if not left:
                raise


def named_in(passfile: Path) -> tuple[str, str]:
    """User and password of the first line of a passfile, as libpq reads it: host:port:database:user:password."""
    try:
        lines = [line for line in passfile.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidRequest(f"the passfile {passfile} cannot be read: {problem}") from problem
    parts = [re.sub(r"\\(.)", r"\1", part) for part in re.findall(r"((?:[^:\\]|\\.)*)(?::|$)", lines[0] if lines else "")]
    if len(parts) < 5 or not parts[3] or parts[3] == "*" or not parts[4]:
        raise InvalidRequest(
            f"the passfile {passfile} lacks a user or password: a line of it is host:port:database:user:password"
        )
    return parts[3], parts[4]


def connected(url: str, *, autocommit: bool = False) -> psycopg.Connection[Any]:
    try:
        return psycopg.connect(url, autocommit=autocommit, connect_timeout=CONNECT_SECONDS)
    except psycopg.OperationalError as problem:
        raise not_let_in(problem) from problem


@contextmanager
def logged_in(url: str) -> Iterator[psycopg.Connection[Any]]:
    try:
        with connected(url, autocommit=True) as connection:
            yield connection
    except REFUSED as problem:
        raise translated(problem) from problem


def applied_in(connection: psycopg.Connection[Any]) -> dict[int, str] | None:
    """Which migrations a database has; None without a record in it."""
    there = connection.execute("SELECT to_regclass('herdbook.migration') IS NOT NULL").fetchone()
    if not there or not there[0]:
        return None
    return dict(connection.execute("SELECT number, name FROM herdbook.migration ORDER BY number").fetchall())


def mistakes_in(connection: psycopg.Connection[Any]) -> list[str]:
    """One sentence for each mistake in the catalogue; empty when tenants are kept apart."""
    return [f"{kind}: {place}" for kind, place in connection.execute(sql("lint").encode()).fetchall()]


def unbalanced_in(connection: psycopg.Connection[Any]) -> list[str]:
    """Claims without their entry, or with a confidence that their last move does not say, as rows restored alone leave them."""
    found = connection.execute(sql("unbalanced").encode()).fetchall()
    return [
        f"the moves of entry {entry} do not add up to its confidence" if there else f"entry {entry} has claims and is not there"
        for entry, there in found
    ]
