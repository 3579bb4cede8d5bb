"""What changed between two versions of an entry."""

from __future__ import annotations

import argparse

from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.parser import whole_number
from herdbook.surfaces.cli.terminal import Answer, Terminal, compact, line, prose

EXAMPLES = """\
example:
  $ herdbook write acme/checkout/tests retry-budget 3 --why "the payment sandbox rejects the first two calls"
  $ herdbook write acme/checkout/tests retry-budget 5 --why "under load it rejects the first four"
  $ herdbook diff acme/checkout/tests retry-budget        # the last two versions
  $ herdbook diff acme/checkout/tests retry-budget 1 2"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "What changed between two versions of an entry: by default the last two."
    parser.add_argument("entity", metavar="ENTITY", help="a path such as acme/checkout/tests")
    parser.add_argument("key", metavar="KEY", help="the entry's key")
    parser.add_argument("old", metavar="OLD", nargs="?", type=whole_number, help="the earlier version")
    parser.add_argument("new", metavar="NEW", nargs="?", type=whole_number, help="the later version")


def run(invocation: Invocation) -> int:
    args = invocation.args
    answer = invocation.ask("diff", entity=args.entity, key=args.key, old=args.old, new=args.new)
    return invocation.show(answer, lines(answer, invocation.terminal))


def lines(answer: Answer, terminal: Terminal) -> list[str]:
    versions = f"v{answer.get('old')} → v{answer.get('new')}"
    shown = [f"{line(answer.get('entity', ''))}  {line(answer.get('key', ''))}  {versions}"]
    changed = answer.get("changed") or []
    if not changed:
        return [*shown, "  nothing changed"]
    # The value and the why are in the text below, line by line.
    if not answer.get("old"):
        changed = []  # everything in a first version is new: its text below says it all
    shown += [
        f"  {line(each.get('field'))}: {compact(each.get('old'))} → {compact(each.get('new'))}"
        for each in changed
        if each.get("field") not in ("value", "why")
    ]
    text = prose(answer.get("text", "")).rstrip("\n")
    return [*shown, *(painted(each, terminal) for each in text.split("\n"))] if text else shown


def painted(text: str, terminal: Terminal) -> str:
    if text.startswith("@@"):
        return terminal.paint(text, "cyan")
    if text.startswith("+"):
        return terminal.paint(text, "green")
    return terminal.paint(text, "red") if text.startswith("-") else text
