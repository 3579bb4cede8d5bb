"""What is known about a path, for a task, best first: the first thing a run asks."""

from __future__ import annotations

import argparse

from herdbook.surfaces.cli.entries import explanations
from herdbook.surfaces.cli.inputs import text_of
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.parser import whole_number
from herdbook.surfaces.cli.terminal import Answer, line, prose

EXAMPLES = """\
example:
  $ herdbook write acme/checkout/tests retry-budget 3 --why "the payment sandbox rejects the first two calls"
  $ herdbook brief acme/checkout/tests --task "make the checkout tests pass"
  $ echo "make the checkout tests pass" | herdbook brief acme/checkout/tests --task - --tokens 800 --session run-17

What is read here is remembered as read by this run, so that its outcome can move the trust of it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "What is known about ENTITY and what it inherits from the paths above it, within a token budget."
    parser.add_argument("entity", metavar="ENTITY", help="a path such as acme/checkout/tests")
    parser.add_argument("--task", metavar="TEXT", help="what is to be done: it narrows what is told; - or @file reads it")
    parser.add_argument("--tokens", metavar="N", type=whole_number, help="the budget of the briefing (2000)")
    parser.add_argument("--explain", action="store_true", help="say of each entry which score and rank every leg gives it")
    parser.add_argument("--names", action="store_true", help="also name what was left out, and why")


def run(invocation: Invocation) -> int:
    args = invocation.args
    task = None if args.task is None else text_of(args.task, what="task")
    belongs = invocation.run(entity=args.entity, task=task)
    answer = invocation.ask(
        "brief",
        entity=args.entity,
        task=task,
        tokens=args.tokens,
        names=args.names or None,
        explain=args.explain or None,
        session=belongs.session if belongs else None,
    )
    return invocation.show_of_run(answer, [*briefing(answer), *explanations(answer, shown(answer))], belongs)


def shown(answer: Answer) -> list[Answer]:
    """All entries in the order of the text."""
    found = [entry for block in ("dead_ends", "contested", "entries") for entry in answer.get(block) or []]
    return sorted(found, key=lambda entry: int(entry.get("rank", 0)))


def briefing(answer: Answer) -> list[str]:
    """The briefing as it is; where nothing is known, that, with the nearest paths something is known about."""
    if answer.get("known") or answer.get("entries") or answer.get("dead_ends") or answer.get("refused"):
        return prose(answer.get("markdown", "")).rstrip("\n").split("\n")
    lines = [f"Nothing is known here yet: {line(answer.get('entity', ''))}"]
    similar = answer.get("similar") or []
    if similar:
        lines.append("Something is known about: " + ", ".join(line(each) for each in similar))
    return lines
