"""A person's note beside an entry, at the same entity, where the next briefing finds it."""

from __future__ import annotations

import argparse

from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.terminal import line
from herdbook.surfaces.cli.watching import sitting

EXAMPLES = """\
example:
  $ herdbook note acme/deploy deploy-1f0c9a2b7d4e "the registry was slow all morning, see the provider's page"

It becomes the entry note-KEY, linked to KEY: the runbook of the agents and that of people are one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Add a note to an entry, in your own name."
    parser.add_argument("entity", metavar="ENTITY", help="a path such as acme/deploy")
    parser.add_argument("key", metavar="KEY", help="the entry it is about")
    parser.add_argument("text", metavar="TEXT", help="what the next one should know")


def run(invocation: Invocation) -> int:
    from herdbook.watch import human

    args = invocation.args
    told = human.note(sitting(invocation), args.entity, args.key, args.text)
    for warning in told["warnings"]:
        invocation.terminal.remark(f"warning: {line(warning)}")
    return invocation.show(told, [f"{line(told['key'])} version {told['version']} at {line(told['entity'])}"])
