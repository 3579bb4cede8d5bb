"""Tenants: customers or companies whose rows no key of another one reaches. For whoever runs the server."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Final

from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.parser import whole_number
from herdbook.surfaces.cli.problems import Usage
from herdbook.surfaces.cli.terminal import Answer, line, table

ACTS: Final = ("create", "ls", "limit", "admit")
EXAMPLES = """\
example:
  $ herdbook tenant create globex --quota 100000    # and its first admin key, shown once
  $ herdbook tenant ls
  $ herdbook tenant limit globex --rate 6000
  $ herdbook tenant admit globex                    # another admin key, for one that was lost

One SQLite file is one trust domain: whoever may open the file reads every tenant in it. Over a server, keys keep them apart."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Make and list tenants, and say what each may ask for. It needs the scope operator."
    parser.add_argument("act", metavar="ACT", choices=ACTS, help="create, ls, limit or admit")
    parser.add_argument("name", metavar="NAME", nargs="?", help="the tenant")
    parser.add_argument("--rate", metavar="N", type=whole_number, help="at most so many requests a minute, over all its keys")
    parser.add_argument("--quota", metavar="N", type=whole_number, help="at most so many changes a day, over all its keys")


def run(invocation: Invocation) -> int:
    args = invocation.args
    if (args.act == "ls") != (args.name is None):
        raise Usage("create, limit and admit take a name, ls takes none (see herdbook tenant --help)")
    if args.act == "ls":
        answer = invocation.ask("tenant_list")
        return invocation.show(answer, table((row(each) for each in answer.get("tenants") or []), indent=""))
    if args.act == "admit":
        answer = invocation.ask("tenant_admit", tenant=args.name)
    else:
        answer = invocation.ask(f"tenant_{args.act}", tenant=args.name, rate_minute=args.rate, quota_day=args.quota)
    return invocation.show(answer, told(answer))


def told(answer: Answer) -> Iterator[str]:
    if answer.get("key"):
        yield line(answer["key"])
        yield f"{line(answer.get('tenant', ''))}: its admin's key. This is the only time it is shown."
    else:
        yield from table([row(answer)], indent="")


def row(each: Answer) -> list[str]:
    rate, quota = each.get("rate_minute"), each.get("quota_day")
    return [
        line(each.get("tenant", "")),
        f"number {each.get('number')}",
        f"{rate} requests a minute" if rate else "any rate",
        f"{quota} changes a day" if quota else "any number of changes",
    ]
