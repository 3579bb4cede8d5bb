"""What was tried and did not work, so that the next run skips it before spending anything on it."""

from __future__ import annotations

import argparse

from herdbook.record.trust import DEAD_END_CONFIDENCE
from herdbook.surfaces.cli.commands.write import add_entry_arguments, written
from herdbook.surfaces.cli.invocation import Invocation

EXAMPLES = """\
example:
  $ herdbook dead-end acme/checkout/tests async-client "swap in the async client" --text \\
      --why "it deadlocks under this pool size: all 50 connections wait for each other"

Briefings show dead ends in a block of their own."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Write an experience that did not work, so that the next run skips it."
    add_entry_arguments(parser, confidence=DEAD_END_CONFIDENCE)


def run(invocation: Invocation) -> int:
    stated = invocation.args.confidence
    return written(invocation, kind="experience", worked=False, confidence=DEAD_END_CONFIDENCE if stated is None else stated)
