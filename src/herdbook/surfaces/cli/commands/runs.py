"""How runs ended, the newest first: where somebody begins who knows no ref yet."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from herdbook.surfaces.cli.entries import verdict, when
from herdbook.surfaces.cli.invocation import Invocation, next_page
from herdbook.surfaces.cli.parser import whole_number
from herdbook.surfaces.cli.terminal import Answer, Terminal, clipped, line, table

TYPES = ("success", "minor_failure", "failure", "critical_failure")
EXAMPLES = """\
example:
  $ herdbook runs
  $ herdbook runs acme/ci --type failure --limit 20

herdbook trace REF shows one of them, step by step."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "How runs ended, the newest first, each with the REF that herdbook trace takes."
    parser.add_argument("entity", metavar="ENTITY", nargs="?", help="only runs about this path and what is below it")
    parser.add_argument("--type", choices=TYPES, help="only those that count as this now, revisions included")
    parser.add_argument("--after", metavar="PLACE", help="go on behind this place: the `next` of the page before")
    parser.add_argument("--limit", metavar="N", type=whole_number, help="at most this many (100)")


def run(invocation: Invocation) -> int:
    args = invocation.args
    answer = invocation.ask("outcomes", entity=args.entity, type=args.type, after=args.after, limit=args.limit)
    nothing = "No run has ended so." if args.entity or args.type else "No run has ended yet."
    invocation.show(answer, lines(answer, invocation.terminal, nothing=nothing))
    if answer.get("next"):
        invocation.terminal.remark(f"there is more: {next_page('runs', args, after=answer['next'])}")
    return 0


def lines(answer: Answer, terminal: Terminal, *, nothing: str) -> Iterator[str]:
    if not answer.get("outcomes"):
        yield "No run that ended so is on this page." if answer.get("next") else nothing
    yield from table((row(each, terminal) for each in answer.get("outcomes") or []), indent="")


def row(each: Answer, terminal: Terminal) -> list[str]:
    now, then = line(each.get("effective_type") or each.get("type", "")), line(each.get("type", ""))
    ended = verdict(now, terminal) + ("" if now == then else f" (was {then})")
    who = line(each.get("agent") or "?") + (f" in {line(each['box'])}" if each.get("box") else "")
    vouched = "attested" if each.get("attested") else ""
    return [
        when(each.get("at")),
        ended,
        vouched,
        line(each.get("ref", "")),
        line(each.get("entity") or ""),
        who,
        clipped(each.get("task") or ""),
    ]
