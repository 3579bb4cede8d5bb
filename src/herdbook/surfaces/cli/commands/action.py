"""One tool call of a run, as it happened: part of what can be reconstructed and trained on."""

from __future__ import annotations

import argparse

from herdbook.surfaces.cli.inputs import optional_json
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.terminal import line

EXAMPLES = """\
example:
  $ herdbook brief acme/ci --session monday
  $ herdbook action pytest --session monday --args '{"argv": ["-q"]}' --result '{"passed": 3, "failed": 1}' --failed

The run has to be there: brief, read, search and write start it under the name they are given."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Record one tool call of the run."
    parser.add_argument("tool", metavar="TOOL", help="what was called")
    parser.add_argument("--args", dest="tool_args", metavar="JSON", help="what it was called with; - or @file reads it")
    parser.add_argument("--result", metavar="JSON", help="what it gave back; - or @file reads it")
    went = parser.add_mutually_exclusive_group()
    went.add_argument("--ok", dest="ok", action="store_const", const=True, help="it went well")
    went.add_argument("--failed", dest="ok", action="store_const", const=False, help="it did not")
    parser.add_argument("--request-id", metavar="ID", help="the same id again gets the first answer, never a second action")


def run(invocation: Invocation) -> int:
    args = invocation.args
    session = invocation.named_session()
    given = optional_json(args.tool_args, what="args")
    result = optional_json(args.result, what="result")
    answer = invocation.ask(
        "record_action", session=session, tool=args.tool, args=given, result=result, ok=args.ok, request_id=args.request_id
    )
    return invocation.show(answer, [f"action {answer.get('n', '')} of run {line(session)}: {line(args.tool)}"])
