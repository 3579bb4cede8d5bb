"""One entry in full: its value, why, who wrote it, and how it has done."""

from __future__ import annotations

import argparse

from herdbook.base import text
from herdbook.surfaces.cli.entries import card
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.parser import whole_number
from herdbook.surfaces.cli.terminal import Answer

EXAMPLES = """\
example:
  $ herdbook write acme/checkout/tests retry-budget 3 --why "the payment sandbox rejects the first two calls"
  $ herdbook read acme/checkout/tests retry-budget
  $ herdbook read acme/checkout/tests retry-budget --version 1 --json

A missing entry exits with 4 and names the nearest keys."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "One entry in full, at its current version or at a given one."
    parser.add_argument("entity", metavar="ENTITY", help="a path such as acme/checkout/tests")
    parser.add_argument("key", metavar="KEY", help="the entry's key; slashes and dots in it are only text")
    parser.add_argument("--version", metavar="N", type=whole_number, help="this version instead of the current one")


def run(invocation: Invocation) -> int:
    args = invocation.args
    entity, key = text.entity_path(args.entity), text.key(args.key)
    belongs = invocation.run(entity=entity)
    session = belongs.session if belongs else None
    answer = invocation.ask("read", entity=entity, key=key, version=args.version, session=session)
    return invocation.show_of_run(answer, lines(answer, invocation), belongs)


def lines(answer: Answer, invocation: Invocation) -> list[str]:
    shown = card(answer, invocation.terminal)
    current = answer.get("current")
    if current and current != answer.get("version"):
        shown.append(f"  superseded: the current version is {current}")
    beside = answer.get("beside")
    if beside:
        shown += ["", "The current version has not proven itself; the last one that stands:", *card(beside, invocation.terminal)]
    return shown
