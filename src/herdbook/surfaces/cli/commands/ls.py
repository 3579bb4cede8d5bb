"""What there is: paths and the entries at them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from herdbook.surfaces.cli.entries import decimal, standing
from herdbook.surfaces.cli.invocation import Invocation, next_page
from herdbook.surfaces.cli.parser import whole_number
from herdbook.surfaces.cli.terminal import Answer, Terminal, line, table

EXAMPLES = """\
example:
  $ herdbook ls
  $ herdbook ls acme/checkout --limit 20"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Entity paths and the entries at them, in order, a page at a time."
    parser.add_argument("entity", metavar="ENTITY", nargs="?", help="only this path and what is below it")
    parser.add_argument("--after", metavar="PATH", help="go on behind this path: the `next` of the page before")
    parser.add_argument("--limit", metavar="N", type=whole_number, help="at most this many (100)")


def run(invocation: Invocation) -> int:
    args = invocation.args
    answer = invocation.ask("list", entity=args.entity, after=args.after, limit=args.limit)
    invocation.show(answer, lines(answer, invocation))
    if answer.get("next"):
        invocation.terminal.remark(f"there is more: {next_page('ls', args, after=answer['next'])}")
    return 0


def lines(answer: Answer, invocation: Invocation) -> Iterator[str]:
    paths = answer.get("paths") or []
    if not paths:
        yield f"Nothing is known{' under ' + line(answer['entity']) if answer.get('entity') else ' yet'}."
    for path in paths:
        yield invocation.terminal.paint(line(path.get("entity", "")), "bold")
        yield from table(
            [line(each["key"]), f"v{each['version'] or '?'}", decimal(each.get("confidence")), stands(each, invocation.terminal)]
            for each in path.get("entries") or []
        )


def stands(entry: Answer, terminal: Terminal) -> str:
    return f"refused: {line(entry['refused'])}" if entry.get("refused") else standing(entry, terminal)
