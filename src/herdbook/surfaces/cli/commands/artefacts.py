"""The datasets and models that the record knows of: what each was made from, and what became of it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from herdbook.client import new_id
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.problems import Usage
from herdbook.surfaces.cli.terminal import Answer, Terminal, line, table

EXAMPLES = """\
example:
  $ herdbook artefacts                     # datasets and models, the newest first
  $ herdbook artefacts --kind dataset
  herdbook artefacts 3f0c5a9d1e7b2460      # one, with its history
  herdbook artefacts --run ci-8841         # those that have learned from a run
  herdbook artefacts 3f0c5a9d1e7b2460 --withdraw --why "it holds a run that was erased"    # its history stays"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "List the datasets that were exported and the models that were trained, with what they were made from."
    parser.add_argument("artefact", metavar="ID", nargs="?", help="only this one, with its history")
    parser.add_argument("--run", metavar="SESSION", help="only those that have learned from this run")
    parser.add_argument("--withdraw", action="store_true", help="say that this one is not to be used any more")
    parser.add_argument("--why", metavar="TEXT", help="the reason, for whoever looks at its history")
    parser.add_argument("--kind", choices=("dataset", "model"), help="only these")


def run(invocation: Invocation) -> int:
    args = invocation.args
    if args.withdraw:
        if args.artefact is None:
            raise Usage("say which: herdbook artefacts ID --withdraw")
        invocation.ask("artefact_set", artefact=args.artefact, status="withdrawn", why=args.why, request_id=new_id("r"))
    answer = invocation.ask("artefact_list", artefact=args.artefact, run=args.run, kind=args.kind)
    return invocation.show(answer, lines(answer, invocation.terminal, whole=args.artefact is not None))


def lines(answer: Answer, terminal: Terminal, *, whole: bool) -> Iterator[str]:
    if not answer["artefacts"]:
        yield "none: herdbook export training makes a dataset"
    yield from table((row(each) for each in answer["artefacts"]), indent="")
    for each in answer["artefacts"] if whole else ():
        yield f"made from: {', '.join(map(line, each['parents'])) or 'the record'}; sha256 {line(each['hash'])}"
        yield from table(
            [line(state["at"]), line(state["status"]), line(state["by"]), line(state["why"] or "")] for state in each["history"]
        )


def row(each: Answer) -> list[str]:
    if each["refused"]:
        return [line(each["artefact"]), each["kind"], line(each["name"]), line(each["refused"])]
    return [
        line(each["artefact"]),
        each["kind"],
        line(each["name"]),
        line(each["status"]),
        line(each["at"]),
        f"by {line(each['by'])}",
    ]
