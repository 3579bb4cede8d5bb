"""Erase somebody, or a path, from what the record tells and teaches; first it says what that would come to."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Final

from herdbook.client import new_id
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.problems import Usage
from herdbook.surfaces.cli.terminal import Answer, line, table

KINDS: Final = ("session", "author", "identity", "entity", "text")
EXAMPLES = """\
example:
  herdbook erase author:ann                        # what it would come to; nothing is done
  herdbook erase author:ann --yes --why "request 17"
  herdbook erase text:ann@example.com              # every run and entry in which that stands
  herdbook erase entity:acme/checkout              # a path and what is below it
  $ herdbook erase --ls                            # what was erased, and by whom

A subject is KIND:NAME: session (a run), author (an agent, or a person who wrote), identity (the owner of a credential),
entity, or text. What is erased is told to nobody any more, and no new training set has it. Its rows stay, sealed, in the
record's file: who may open that file without herdbook can still read them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Erase a subject: it is no longer told, and in no new training set. It needs the scope admin."
    parser.add_argument(
        "subject", metavar="SUBJECT", nargs="?", help="author:NAME, session:RUN, identity:NAME, entity:PATH or text:TEXT"
    )
    parser.add_argument("--yes", action="store_true", help="do it; without, it is only shown what it would come to")
    parser.add_argument("--ls", action="store_true", help="list the erasures, or those of the subject")
    parser.add_argument("--why", metavar="TEXT", help="the reason, for whoever looks at the list")


def run(invocation: Invocation) -> int:
    args = invocation.args
    if args.subject is None and not args.ls:
        raise Usage("say whom: herdbook erase author:NAME (see herdbook erase --help)")
    kind, colon, subject = (args.subject or ":").partition(":")
    if args.subject is not None and (kind not in KINDS or not colon or not subject):
        raise Usage(f"a subject is KIND:NAME, where the kind is one of {', '.join(KINDS)}")
    if args.ls:
        answer = invocation.ask("erasures", **({"kind": kind, "subject": subject} if args.subject else {}))
        return invocation.show(answer, list_lines(answer))
    if not args.yes:
        answer = invocation.ask("erase_preview", kind=kind, subject=subject)
        return invocation.show(answer, [*lines(answer, "would erase"), "nothing was erased: add --yes to do it"])
    answer = invocation.ask("erase", kind=kind, subject=subject, why=args.why, request_id=new_id("e"))
    return invocation.show(answer, [*lines(answer, f"erasure {line(answer['erasure'])}:"), *backup_lines(answer)])


def lines(answer: Answer, head: str) -> Iterator[str]:
    yield f"{head} {answer['sessions']:,} runs and {answer['versions']:,} versions of entries"
    if answer["readers"]:
        yield f"  {answer['readers']:,} other runs were served these versions: they stay, without them"
    if answer["artefacts"]:
        yield "these have learned from it; make them again, and withdraw them:"
    else:
        yield "  no dataset or model that the record knows of has learned from it"
    yield from table(
        [line(each["artefact"]), each["kind"], line(each["name"]), f"{each['runs']:,} runs"] for each in answer["artefacts"]
    )


def backup_lines(answer: Answer) -> Iterator[str]:
    if not answer["backups"]:
        yield "it could not be noted beside the seal key: after a restore of an older backup, erase again"


def list_lines(answer: Answer) -> Iterator[str]:
    if not answer["erasures"]:
        yield "nothing was erased"
    yield from table(
        (
            [line(each["erasure"]), each["kind"], came_to(each), each["at"], f"by {line(each['by'])}", line(each["why"] or "")]
            for each in answer["erasures"]
        ),
        indent="",
    )


def came_to(each: Answer) -> str:
    return f"{each['sessions']:,} runs, {each['versions']:,} versions"
