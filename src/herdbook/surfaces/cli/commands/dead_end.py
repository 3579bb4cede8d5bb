"""What was tried and did not work, so that the next run skips it before spending anything on it."""

from __future__ import annotations

import argparse

from herdbook.base.errors import InvalidRequest
from herdbook.record.trust import DEAD_END_CONFIDENCE
from herdbook.surfaces.cli.commands.write import add_entry_arguments, written
from herdbook.surfaces.cli.invocation import Invocation

EXAMPLES = """\
example:
  $ herdbook dead-end acme/checkout/tests async-client "swap in the async client" --text \\
      --why "it deadlocks under this pool size: all 50 connections wait for each other"
  $ herdbook dead-end acme/checkout/tests --approach "raise the pool to 200" --why "the database allows 100"

Briefings show what was tried before anything else, where the task is about it. With --approach, the key is its signature: one
approach tried again is one entry still, and `herdbook fanout` heeds it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Write an experience that did not work, so that the next run skips it."
    add_entry_arguments(parser, confidence=DEAD_END_CONFIDENCE, nargs="?")
    parser.add_argument("--approach", metavar="TEXT", help="what was tried, in place of KEY and VALUE")


def run(invocation: Invocation) -> int:
    args = invocation.args
    if (args.approach is None) == (args.value is None) or (args.approach is not None and args.key is not None):
        raise InvalidRequest("give KEY and VALUE, or --approach alone")
    stated = args.confidence
    return written(invocation, kind="experience", worked=False, confidence=DEAD_END_CONFIDENCE if stated is None else stated)
