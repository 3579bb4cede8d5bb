"""Vouch for an outcome from outside the box. Only an attested success lets an entry stand."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from herdbook.surfaces.cli.entries import move_rows, where
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.parser import whole_number
from herdbook.surfaces.cli.problems import Usage
from herdbook.surfaces.cli.terminal import Answer, line, table

EXAMPLES = """\
example:
  $ herdbook write acme/ci tz '"UTC"' --why "the date tests compare against UTC midnight" --session monday
  $ herdbook brief acme/ci --session tuesday
  $ herdbook outcome success --session tuesday --ref ci-4711 --used tz --task-input "make the tests pass"
  $ herdbook attest ci-4711 --exit-code 0
  $ herdbook outcome success --session tuesday --ref ci-4712 --task-input "deploy it"
  $ herdbook attest ci-4712 --result failure --note "the deploy was rolled back"

It needs the scope attest: the box's host, CI, or a human; never the box itself."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Vouch for an outcome: with the exit code that was seen, or with a result."
    parser.add_argument("ref", metavar="REF", help="the outcome's ref")
    parser.add_argument("--exit-code", metavar="N", type=whole_number, help="what the process ended with; 0 is success")
    parser.add_argument("--result", choices=("success", "failure"), help="what was seen, where there is no exit code")
    parser.add_argument("--note", metavar="TEXT", help="how it was seen")


def run(invocation: Invocation) -> int:
    args = invocation.args
    if args.exit_code is None and args.result is None:
        raise Usage("say what was seen: --exit-code N, or --result success or failure")
    answer = invocation.ask("attest", ref=args.ref, exit_code=args.exit_code, result=args.result, note=args.note)
    return invocation.show(answer, lines(answer))


def lines(answer: Answer) -> Iterator[str]:
    seen = line(answer.get("result", ""))
    code = answer.get("exit_code")
    with_code = "" if code is None else f", exit code {code}"
    yield f"{line(answer.get('ref', ''))}: {seen} attested by {line(answer.get('by') or '?')}{with_code}"
    moved = answer.get("moved") or []
    if moved:
        yield "moved:"
        yield from table(move_rows(moved))
    standing = answer.get("standing") or []
    yield "standing:" if standing else "standing: unchanged"
    yield from table([*where(each), f"{line(each.get('before'))} → {line(each.get('after'))}"] for each in standing)
