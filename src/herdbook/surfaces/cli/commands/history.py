"""Every version of an entry, oldest first: who wrote what, where, and why."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from herdbook.surfaces.cli.entries import author, counted, decimal, indented, kind, standing, when
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.terminal import Answer, compact, line

EXAMPLES = """\
example:
  $ herdbook write acme/checkout/tests retry-budget 3 --why "the payment sandbox rejects the first two calls"
  $ herdbook write acme/checkout/tests retry-budget 5 --why "under load it rejects the first four"
  $ herdbook history acme/checkout/tests retry-budget
  $ herdbook diff acme/checkout/tests retry-budget    # what changed between the last two"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Every version of an entry, oldest first, with its author, box, value and why."
    parser.add_argument("entity", metavar="ENTITY", help="a path such as acme/checkout/tests")
    parser.add_argument("key", metavar="KEY", help="the entry's key")


def run(invocation: Invocation) -> int:
    answer = invocation.ask("history", entity=invocation.args.entity, key=invocation.args.key)
    return invocation.show(answer, lines(answer, invocation))


def lines(answer: Answer, invocation: Invocation) -> Iterator[str]:
    versions = answer.get("versions") or []
    yield f"{line(answer.get('entity', ''))}  {line(answer.get('key', ''))}: {counted(len(versions), 'version')}, oldest first"
    for each in versions:
        if "error" in each:
            yield f"refused: {line(each['error'].get('message', ''))}"
            continue
        sure = f"{standing(each, invocation.terminal)} {decimal(each.get('confidence'))}"
        yield f"v{each.get('version')}  {when(each.get('at'))}  {author(each)}  {kind(each)}, {sure}"
        yield f"    {compact(each.get('value'))}"
        yield f"    why: {indented(each['why'])}" if each.get("why") else "    no why was given"
