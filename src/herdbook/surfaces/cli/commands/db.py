"""The record's database: made and brought up to date by its DBA, looked at by anybody. A server itself never changes a schema."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from herdbook.base.errors import ExtraMissing
from herdbook.base.settings import Database
from herdbook.surfaces.cli.invocation import Invocation, place
from herdbook.surfaces.cli.problems import Usage
from herdbook.surfaces.cli.terminal import Answer

if TYPE_CHECKING:
    from herdbook.record.store.postgres import setup

ACTS: Final = ("init", "migrate", "status")
EXAMPLES = """\
example:
  $ herdbook db init --print-sql                    # for a DBA to read, and to run with psql
  $ herdbook db init --record postgresql://admin@db.example/herdbook
  $ herdbook db status --record postgresql://admin@db.example/herdbook
  $ herdbook db migrate --record postgresql://admin@db.example/herdbook          # before the new servers start
  $ herdbook db migrate --post --record postgresql://admin@db.example/herdbook   # after the last old one has ended

Log in as somebody who may create roles and a schema. A server logs in as a member of herdbook_app, which owns nothing:
  CREATE ROLE myserver LOGIN PASSWORD '...' IN ROLE herdbook_app
or let --login-of make it, out of the passfile that the server will read (host:port:database:user:password)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Make a record in a PostgreSQL database, bring its schema up to date, or say how it is."
    parser.add_argument("act", metavar="ACT", choices=ACTS, help="init, migrate or status")
    parser.add_argument("--print-sql", action="store_true", help="print what would be run, and run nothing")
    parser.add_argument("--post", action="store_true", help="also the migrations that no older server survives")
    parser.add_argument(
        "--login-of", metavar="PASSFILE", type=Path, help="also make the login that is in this passfile of a server"
    )
    parser.add_argument("--distributed", action="store_true", help="then spread the tables over a Citus cluster, by tenant")


def run(invocation: Invocation) -> int:
    args, database = invocation.args, invocation.settings.record
    tools = database_tools()
    if not isinstance(database, Database):
        if args.act != "init" or not args.print_sql:
            raise Usage("db is for a record in PostgreSQL: give --record postgresql://ADMIN@HOST/DATABASE, or init --print-sql")
        return printed(invocation, tools.printable(None, post=True, distributed=args.distributed))
    if args.act == "status":
        found = tools.how_it_is(database.url)
        return shown(invocation, found)
    if args.print_sql:
        return printed(invocation, tools.printable(database.url, post=args.post, distributed=args.distributed))
    applied = tools.bring_up(database.url, post=args.post or args.act == "init", distributed=args.distributed)
    login = None if args.login_of is None else tools.make_login(database.url, args.login_of)
    answer = {"record": str(database), "applied": applied, "login": login}
    told = [f"{name}: applied" for name in applied] or ["the schema is up to date"]
    return invocation.show(answer, [*told, *([] if login is None else [f"{login}: may log in, as a server"])])


def database_tools() -> type[setup.Setup]:
    try:
        from herdbook.record.store.postgres.setup import Setup
    except ImportError as problem:
        raise ExtraMissing.of("postgres", what="the driver of PostgreSQL") from problem
    return Setup


def printed(invocation: Invocation, text: str) -> int:
    return invocation.show({"sql": text}, text.splitlines())


def shown(invocation: Invocation, found: Answer) -> int:
    """Exit code 1 where a server could not work on it, or where a tenant could see another."""
    invocation.show(found, lines(invocation, found))
    return 1 if found["wrong"] or found["mistakes"] else 0


def lines(invocation: Invocation, found: Answer) -> Iterator[str]:
    yield f"record: {place(invocation.settings)}, PostgreSQL {found['server']}"
    yield f"applied: {', '.join(found['applied']) or 'nothing'}"
    yield f"to do: {', '.join(found['missing']) or 'nothing'}"
    yield f"a server of this version {'cannot work on it: ' + found['wrong'] if found['wrong'] else 'works on it'}"
    yield from (f"mistake: {each}" for each in found["mistakes"])
    if found["applied"] and not found["mistakes"]:
        yield "tenants are kept apart: row security, keys, functions and rights are as they should be"
