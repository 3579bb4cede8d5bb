"""A copy of a record in PostgreSQL, by its own pg_dump and pg_restore, and compared with the record table by table.

Whoever copies must be above row security, as a superuser is: a server's own login sees one tenant at a time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.sql import SQL, Identifier

from herdbook.base.errors import Broken, Conflict, Unavailable
from herdbook.record.store.postgres.refusals import REFUSED, translated
from herdbook.record.store.postgres.setup import applied_in, logged_in, mistakes_in, sql, what_is_wrong
from herdbook.record.store.rows_digest import MODULUS, Tables, difference

SECRETS = {"password": "PGPASSWORD", "sslpassword": "PGSSLPASSWORD"}


def dump(url: str, draft: Path) -> Tables:
    """Dump the record's schema as of one moment, with what every table held then."""
    needed("pg_dump", f"--format=custom --schema=herdbook --file={draft.name}")
    with logged_in(url) as raw:
        wrong = what_is_wrong(applied_in(raw))
        if wrong:
            raise Broken(wrong)
        try:
            with raw.transaction():
                raw.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                moment = one(raw, "SELECT pg_export_snapshot()")
                found = tables_of(raw)
                run("pg_dump", url, ["--format=custom", "--schema=herdbook", f"--snapshot={moment}", f"--file={draft}"])
        except psycopg.errors.InsufficientPrivilege as problem:
            raise Broken("this login sees one tenant at a time: log in as a superuser, or as a role with BYPASSRLS") from problem
    return found


def load(url: str, file: Path, expected: Tables) -> None:
    """Restore into a database with no record in it, whole or not at all, and compare."""
    needed("pg_restore", f"--exit-on-error --single-transaction {file.name}")
    with logged_in(url) as raw:
        if one(raw, "SELECT to_regnamespace('herdbook') IS NOT NULL"):
            raise Conflict("there is a record in this database already: create another database, and restore into that")
        with raw.transaction():
            raw.execute(sql("roles").encode())
            raw.execute("DROP SCHEMA herdbook CASCADE")  # just made with the roles: the copy brings its own
    run("pg_restore", url, ["--exit-on-error", "--single-transaction", str(file)])
    with logged_in(url) as raw:
        found = tables_of(raw)
        wrong = difference(expected, found) or "; ".join(mistakes_in(raw))
        # Until the server does that by itself, questions are planned as if the tables were empty. Only these: the catalogues are
        # shared by all databases, and two restores would meet there.
        raw.execute(SQL("ANALYZE {}").format(SQL(", ").join(Identifier("herdbook", name) for name in found)))
    if wrong:
        raise Broken(f"what was restored is not what was copied ({wrong}): drop this database, and restore another copy")


def tables_of(raw: psycopg.Connection[Any]) -> Tables:
    """What every table holds. The server adds up the digests, so that no row travels."""
    found: Tables = {}
    try:
        with raw.transaction():
            raw.execute("SET LOCAL row_security = off")  # else what is hidden would be missing, and nobody told
            names = raw.execute(
                "SELECT relname FROM pg_class WHERE relnamespace = 'herdbook'::regnamespace AND relkind IN ('r', 'p') ORDER BY 1"
            )
            for (name,) in names.fetchall():
                count, high, low = raw.execute(DIGEST.format(name=name).encode()).fetchall()[0]
                found[name] = (count, f"{(int(high) * (1 << 64) + int(low)) % MODULUS:032x}")
    except psycopg.errors.InsufficientPrivilege:
        raise
    except REFUSED as problem:
        raise translated(problem) from problem
    return found


DIGEST = """
SELECT count(*), coalesce(sum(('x' || substr(h, 1, 16))::bit(64)::bigint::numeric), 0),
  coalesce(sum(('x' || substr(h, 17, 16))::bit(64)::bigint::numeric), 0)
FROM (SELECT encode(sha256(convert_to(t::text, 'UTF8')), 'hex') AS h FROM herdbook."{name}" t) digests"""


def one(raw: psycopg.Connection[Any], question: str) -> Any:
    return raw.execute(question.encode()).fetchall()[0][0]


def needed(program: str, how: str) -> None:
    if shutil.which(program) is None:
        raise Unavailable(
            f"{program} is not on the PATH: install PostgreSQL's client programs, of the server's version or newer, or run it"
            f" where they are: {program} {how}"
        )


def run(program: str, url: str, arguments: Sequence[str]) -> None:
    """Run one of PostgreSQL's programs on that database. A password goes through the environment, where others cannot read it."""
    parts = conninfo_to_dict(url)
    secrets = {variable: str(parts.pop(name)) for name, variable in SECRETS.items() if name in parts}
    line = [program, "--no-password", f"--dbname={make_conninfo('', **parts)}", *arguments]
    done = subprocess.run(line, env={**os.environ, **secrets}, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[0]
        raise Broken(f"{program} could not do it ({said}): nothing was kept")
