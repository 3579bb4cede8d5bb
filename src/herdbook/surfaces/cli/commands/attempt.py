"""One try within a run: a failed one charges what it used, even when the run ends well."""

from __future__ import annotations

import argparse

from herdbook.surfaces.cli.commands.outcome import add_used
from herdbook.surfaces.cli.inputs import used
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.terminal import line

EXAMPLES = """\
example:
  $ herdbook write acme/ci tz '"UTC"' --why "the date tests compare against UTC midnight" --session monday
  $ herdbook brief acme/ci --session tuesday
  $ herdbook attempt failure --session tuesday --used tz --note "3 of 4 pass"
  $ herdbook attempt success --session tuesday --used tz"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Say how one try within the run went, before its outcome is known."
    parser.add_argument("result", metavar="RESULT", choices=("success", "failure"), help="success or failure")
    add_used(parser)
    parser.add_argument("--note", metavar="TEXT", help="what was seen")
    parser.add_argument("--request-id", metavar="ID", help="the same id again gets the first answer, never a second attempt")


def run(invocation: Invocation) -> int:
    args = invocation.args
    session = invocation.named_session()
    answer = invocation.ask(
        "attempt", session=session, result=args.result, used=used(args.used), note=args.note, request_id=args.request_id
    )
    return invocation.show(answer, [f"attempt {answer.get('n', '')} of run {line(session)}: {args.result}"])
