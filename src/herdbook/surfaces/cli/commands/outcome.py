"""What happened in the end: the one thing that moves trust."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from typing import Any

from herdbook.surfaces.cli.entries import is_attempt, move_rows
from herdbook.surfaces.cli.inputs import optional_json, text_of, used
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.terminal import Answer, line, table

EXAMPLES = """\
example:
  $ herdbook write acme/ci tz '"UTC"' --why "the date tests compare against UTC midnight" --session monday
  $ herdbook brief acme/ci --session tuesday
  $ herdbook outcome success --session tuesday --ref ci-4711 --used tz --task-input "make the tests pass"
  $ herdbook outcome failure --session monday --task-input "find out why the tests fail at night" --end

TYPE is success, minor_failure, failure or critical_failure. The same --ref again is counted once."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Say how a run ended. It moves the confidence of what the run used, or else of everything it was served,\n"
        "and says whether the run can be trained on."
    )
    parser.add_argument("type", metavar="TYPE", help="success, minor_failure, failure or critical_failure")
    parser.add_argument("--ref", metavar="REF", help="a name for this outcome; sent twice it counts once (made if absent)")
    parser.add_argument("--task-input", metavar="TEXT", help="what the run was asked to do; - or @file reads it")
    add_used(parser)
    parser.add_argument("--observed", metavar="TEXT", nargs="+", action="extend", help="conditions that occurred")
    parser.add_argument("--artifacts", metavar="JSON", help="what it left behind: commits, files, links; - reads it")
    parser.add_argument("--verified-by", metavar="NAME", help="who says so; kept as a claim, it gives no standing")
    parser.add_argument("--end", action="store_true", help="the run is over: end its session too")


def add_used(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--used",
        metavar="KEY",
        nargs="+",
        action="extend",
        help="what was acted on: a KEY this run was served, or ENTITY#KEY (#KEY for a key with a # in it)",
    )


def run(invocation: Invocation) -> int:
    args = invocation.args
    fields: dict[str, Any] = {
        "ref": args.ref,
        "task_input": None if args.task_input is None else text_of(args.task_input, what="task input"),
        "used": used(args.used),
        "observed": args.observed,
        "artifacts": optional_json(args.artifacts, what="artifacts"),
        "verified_by": args.verified_by,
    }
    session = invocation.named_session()
    answer = invocation.ask("commit_outcome", session=session, type=args.type, **fields)
    if args.end:
        invocation.ask("end_session", session=session)
    for warning in answer.get("warnings") or []:
        invocation.terminal.remark(f"warning: {warning}")
    return invocation.show(answer, lines(answer))


def lines(answer: Answer) -> Iterator[str]:
    ref = line(answer.get("ref", ""))
    attested = "attested" if answer.get("attested") else "claimed, not attested"
    yield f"{line(answer.get('type', ''))}  {ref}  ({attested})"
    yield from moved_lines(answer)
    missing = [line(each) for each in answer.get("missing") or []]
    if answer.get("trainable"):
        yield "trainable: yes"
    else:
        yield "trainable: no" + (f", missing {', '.join(missing)}" if missing else "")
    yield ""
    yield f"the whole run: herdbook trace {shlex.quote(ref)}"


def moved_lines(answer: Answer) -> Iterator[str]:
    moved = answer.get("moved") or []
    yield "moved:" if moved else "moved: nothing, since nothing was read or used"
    # What a failed attempt charged is evidence alone, so those moves are no step of the confidence.
    yield from table(move_rows(sorted(moved, key=is_attempt)))
