"""Entries whose text matches, best first."""

from __future__ import annotations

import argparse

from herdbook.surfaces.cli.entries import brief_line, explanations
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.parser import whole_number
from herdbook.surfaces.cli.terminal import Answer, line

EXAMPLES = """\
example:
  $ herdbook write acme/checkout pool 50 --why "the connection pool of the gateway has 50 places"
  $ herdbook search how large is the pool
  $ herdbook search "connection pool" --entity acme/checkout --limit 5"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Entries whose key, value or why matches WORDS, best first; superseded versions are not found."
    parser.add_argument("words", metavar="WORDS", nargs="+", help="what to look for, in any script")
    parser.add_argument("--entity", metavar="ENTITY", help="only this path, what is below it and what it inherits")
    parser.add_argument("--explain", action="store_true", help="say of each entry which score and rank every leg gives it")
    parser.add_argument("--limit", metavar="N", type=whole_number, help="at most this many (20)")


def run(invocation: Invocation) -> int:
    args = invocation.args
    query = " ".join(args.words)
    belongs = invocation.run(entity=args.entity)
    session = belongs.session if belongs else None
    answer = invocation.ask(
        "search", query=query, entity=args.entity, limit=args.limit, session=session, explain=args.explain or None
    )
    return invocation.show_of_run(answer, found(answer, invocation), belongs)


def found(answer: Answer, invocation: Invocation) -> list[str]:
    results = answer.get("results") or []
    if not results:
        where = f" under {line(answer['entity'])}" if answer.get("entity") else ""
        return [f"Nothing matches {line(answer.get('query', ''))!r}{where}."]
    lines = []
    for position, entry in enumerate(results, start=1):
        first, *rest = brief_line(entry, invocation.terminal)
        lines += [f"{entry.get('rank', position):>3}  {first}", *(f"   {each}" for each in rest)]
    return [*lines, *explanations(answer, results), f"{len(results)} found"]
