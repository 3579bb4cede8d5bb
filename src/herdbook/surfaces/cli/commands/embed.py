"""Make entries findable by meaning: those that have no vector yet, until all have one."""

from __future__ import annotations

import argparse

from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.terminal import line

EXAMPLES = """\
example:
  $ herdbook embed

A server does this by itself, and so does any command that asks, a little at a time. After a change of the model all of it is
made again; words answer meanwhile."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Embed every entry that has no vector yet. It needs an embedder: pip install 'herdbook[embed]'."


def run(invocation: Invocation) -> int:
    answer = invocation.ask("embed")
    while answer["waiting"]:
        invocation.terminal.remark(f"{answer['embedded']} of {answer['entries']} embedded")
        before, answer = answer, invocation.ask("embed")
        if answer["waiting"] >= before["waiting"]:
            break  # what is left cannot be embedded: its seal is broken, and doctor says so
    if answer["missing"]:
        invocation.show(answer, [f"nothing was embedded: {line(answer['missing'])}"])
        return 1
    return invocation.show(answer, [f"{answer['embedded']} of {answer['entries']} entries embedded, in {line(answer['space'])}"])
