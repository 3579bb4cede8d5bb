"""Who did what, when, and what came of it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from herdbook.surfaces.cli.entries import when
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.parser import whole_number
from herdbook.surfaces.cli.terminal import Answer, line, table

EXAMPLES = """\
example:
  $ herdbook audit
  $ herdbook audit --who acme-ci --code forbidden --limit 20
  $ herdbook audit --check     # is every row as it was written, and none missing from a chain

What comes over a server or from a box is kept, and every change of keys and tenants; it needs the scope admin."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Who did what through a server, newest first: names only, never values. It needs the scope admin."
    parser.add_argument("--who", metavar="NAME", help="an identity, a key's id, or a box")
    parser.add_argument("--verb", metavar="VERB", dest="act", help="only this verb")
    parser.add_argument("--entity", metavar="PATH", help="only this path and what is below it")
    parser.add_argument("--code", metavar="CODE", help="ok, or the code of a refusal")
    parser.add_argument("--since", metavar="TIME", help="from this ISO 8601 time on")
    parser.add_argument("--until", metavar="TIME", help="before this ISO 8601 time")
    parser.add_argument("--limit", metavar="N", type=whole_number, help="at most this many (100)")
    parser.add_argument("--check", action="store_true", help="check every chain; exit 1 where something is not as it was written")


def run(invocation: Invocation) -> int:
    args = invocation.args
    names = ("who", "act", "entity", "code", "since", "until", "limit")
    asked = {name: getattr(args, name) for name in names}
    answer = invocation.ask("audit", **asked, check=args.check or None)
    invocation.show(answer, lines(answer, narrowed=any(asked.values())))
    return 1 if answer.get("problems") else 0


def lines(answer: Answer, *, narrowed: bool) -> Iterator[str]:
    acts = answer.get("acts") or []
    if not acts:
        yield "Nothing of the kind was done through a server." if narrowed else "Nobody did anything through a server."
    yield from table((row(each) for each in acts), indent="")
    if answer.get("next"):
        yield "There is more: narrow it with --until."
    if "problems" in answer:
        yield from answer["problems"] or ["Every row is as it was written, and no chain lacks one."]


def row(each: Answer) -> list[str]:
    who = line(each.get("identity", "")) + (f" ({line(each['key'])})" if each.get("key") else "")
    what = " ".join(f"{line(name)}={line(value)}" for name, value in (each.get("what") or {}).items())
    told = f"{line(each.get('code', ''))}{'' if each.get('seal') != 'broken' else ' SEAL BROKEN'}"
    return [
        when(each.get("at")),
        who,
        line(each.get("box") or ""),
        line(each.get("verb", "")),
        line(each.get("entity") or ""),
        what,
        told,
    ]
