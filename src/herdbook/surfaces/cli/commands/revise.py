"""Say that an outcome was something else after all. Nothing is erased: confidence becomes the refold of what is true now."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from herdbook.surfaces.cli.entries import move_rows
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.terminal import Answer, line, table

EXAMPLES = """\
example:
  $ herdbook write acme/ci tz '"UTC"' --why "the date tests compare against UTC midnight" --session monday
  $ herdbook brief acme/ci --session tuesday
  $ herdbook outcome success --session tuesday --ref ci-4711 --used tz --task-input "make the tests pass"
  $ herdbook revise ci-4711 critical_failure --why "the release it passed was rolled back within the hour"

The trace keeps both: what was said first, and what it was revised to."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Say that an outcome was something else after all: appended, never overwritten."
    parser.add_argument("ref", metavar="REF", help="the outcome's ref")
    parser.add_argument("type", metavar="TYPE", help="success, minor_failure, failure or critical_failure")
    parser.add_argument("--why", metavar="TEXT", required=True, help="what is known now that was not known then")
    parser.add_argument("--request-id", metavar="ID", help="the same id again gets the first answer, never a second revision")


def run(invocation: Invocation) -> int:
    args = invocation.args
    answer = invocation.ask("revise_outcome", ref=args.ref, type=args.type, why=args.why, request_id=args.request_id)
    return invocation.show(answer, lines(answer))


def lines(answer: Answer) -> Iterator[str]:
    change = f"{line(answer.get('was', ''))} → {line(answer.get('type', ''))}"
    yield f"{line(answer.get('ref', ''))}: {change} (revision {answer.get('revision', '?')})"
    moved = answer.get("moved") or []
    yield "moved:" if moved else "moved: nothing"
    yield from table(move_rows(moved))
