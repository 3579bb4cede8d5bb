"""Entries that set one thing differently: the same variable of `env`, the same field, or the same key at two paths."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.terminal import Answer, Terminal, line, table

EXAMPLES = """\
example:
  $ herdbook write acme/ci proxy '{"env": {"HTTP_PROXY": "proxy:3128"}}' --why "the runners have no other way out"
  $ herdbook write acme/ci fast-proxy '{"env": {"HTTP_PROXY": "proxy:8080"}}' --why "it answered faster today"
  $ herdbook contradictions acme/ci

A briefing shows such pairs too. Supersede the one that is wrong, or give both an `applies_when`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Pairs of live entries, at a path and above it, that set one thing differently."
    parser.add_argument("entity", metavar="ENTITY", help="a path such as acme/checkout/tests")


def run(invocation: Invocation) -> int:
    answer = invocation.ask("contradictions", entity=invocation.args.entity)
    return invocation.show(answer, lines(answer, invocation.terminal))


def lines(answer: Answer, terminal: Terminal) -> Iterator[str]:
    if not answer["contradictions"]:
        yield f"nothing at {line(answer['entity'])} contradicts another entry"
    for each in answer["contradictions"]:
        yield terminal.paint(line(each["what"]), "bold")
        yield from table(side_row(side) for side in each["sides"])


def side_row(side: Answer) -> list[str]:
    said = json.dumps(side["value"], ensure_ascii=False)
    return [line(said), f"{line(side['key'])} v{side['version']}", line(side["entity"]), side["standing"]]
