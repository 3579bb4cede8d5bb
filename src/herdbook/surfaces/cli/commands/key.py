"""Access keys: made, listed, ended, replaced. A key is shown once, when it is made."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Final

from herdbook.surfaces.cli.durations import seconds
from herdbook.surfaces.cli.entries import when
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.parser import whole_number
from herdbook.surfaces.cli.problems import Usage
from herdbook.surfaces.cli.terminal import Answer, line, table

ACTS: Final = ("create", "ls", "revoke", "rotate")
EXAMPLES = """\
example:
  $ herdbook key create acme-ci --role writer --reach acme/checkout --attest --expires 90d
  $ herdbook key create dashboard --role reader --rate 600
  $ herdbook key ls
  $ herdbook key rotate acme-ci --grace 1h    # a new one; the old one goes on for an hour
  $ herdbook key revoke dashboard             # by name or id: opens nothing from the next request on

A key is shown once. Whoever uses it sets HERDBOOK_KEY to it, and HERDBOOK_URL to the server."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Make, list, end or replace the access keys of this tenant. It needs the scope admin."
    parser.add_argument("act", metavar="ACT", choices=ACTS, help="create, ls, revoke or rotate")
    parser.add_argument("name", metavar="NAME", nargs="?", help="the key's name; for revoke and rotate its id will do")
    parser.add_argument("--role", help="reader, writer (the default), box, host, watcher, admin or operator")
    parser.add_argument(
        "--reach", metavar="PATTERN", action="append", help="entity paths it reaches, `*` for any one part; may be repeated"
    )
    parser.add_argument("--verb", metavar="VERB", action="append", help="only this verb of the role's; may be repeated")
    parser.add_argument("--connection", metavar="NAME", action="append", help="a gateway connection it may use; may be repeated")
    parser.add_argument("--identity", metavar="NAME", help="who writes with it, as others will see it (its name)")
    parser.add_argument("--attest", action="store_true", help="it may vouch for outcomes: CI, a host, a human; never a box")
    parser.add_argument("--expires", metavar="TIME", type=seconds, help="it ends by itself after so long: 90d, 12h, 30m")
    parser.add_argument("--rate", metavar="N", type=whole_number, help="at most so many requests a minute")
    parser.add_argument("--quota", metavar="N", type=whole_number, help="at most so many changes a day")
    parser.add_argument("--grace", metavar="TIME", type=seconds, help="for rotate: how long the old key goes on (0)")


def run(invocation: Invocation) -> int:
    args = invocation.args
    if (args.act == "ls") != (args.name is None):
        raise Usage("create, revoke and rotate take a name, ls takes none (see herdbook key --help)")
    return {"create": created, "ls": listed, "revoke": revoked, "rotate": rotated}[args.act](invocation)


def created(invocation: Invocation) -> int:
    args = invocation.args
    asked = {
        "name": args.name,
        "role": args.role,
        "identity": args.identity,
        "reach": args.reach,
        "verbs": args.verb,
        "connections": args.connection,
        "attest": args.attest or None,
        "seconds": args.expires,
        "rate_minute": args.rate,
        "quota_day": args.quota,
    }
    answer = invocation.ask("key_create", **asked)
    return invocation.show(answer, told(answer))


def rotated(invocation: Invocation) -> int:
    answer = invocation.ask("key_rotate", name=invocation.args.name, grace_seconds=invocation.args.grace)
    return invocation.show(answer, told(answer))


def told(answer: Answer) -> Iterator[str]:
    yield line(answer.get("key", ""))
    yield f"{summary(answer)}. This is the only time it is shown."


def summary(each: Answer) -> str:
    attests = ", may attest" if each.get("attest") else ""
    reach = ", ".join(line(pattern) for pattern in each.get("reach") or [])
    until = f", until {when(each['ends_at'])}" if each.get("ends_at") else ""
    return f"{line(each.get('name', ''))}: {line(each.get('role', ''))} of {reach}{attests}{until}"


def listed(invocation: Invocation) -> int:
    answer = invocation.ask("key_list")
    return invocation.show(answer, list_lines(answer))


def list_lines(answer: Answer) -> Iterator[str]:
    keys = answer.get("keys") or []
    if not keys:
        yield "There are no keys."
    yield from table((row(each) for each in keys), indent="")


def row(each: Answer) -> list[str]:
    state = "live" if each.get("live") else "ended"
    until = f"until {when(each['ends_at'])}" if each.get("ends_at") else ""
    reach = " ".join(line(pattern) for pattern in each.get("reach") or [])
    role = line(each.get("role", "")) + (" attest" if each.get("attest") else "")
    return [line(each.get("name", "")), line(each.get("id", "")), role, state, reach, when(each.get("created_at")), until]


def revoked(invocation: Invocation) -> int:
    answer = invocation.ask("key_revoke", name=invocation.args.name)
    return invocation.show(answer, [f"revoked {line(each)}" for each in answer.get("revoked") or []])
