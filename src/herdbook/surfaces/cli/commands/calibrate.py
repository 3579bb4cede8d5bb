"""What outcomes should do to confidence at a path, and how fast it should fade: reported, promoted, taken back."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from herdbook.base import files
from herdbook.surfaces.cli.commands import tune
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.terminal import Answer, line, table

EXAMPLES = """\
example:
  $ herdbook calibrate acme/ci
  $ herdbook calibrate acme/ci --svg reliability.svg
  $ herdbook calibrate acme/ci --promote --why "critical failures repeat here"
  herdbook calibrate acme/ci --rollback"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Numbers of a path's own, from its runs, beside the defaults; with a reliability diagram of confidence."
    parser.add_argument("entity", metavar="ENTITY", nargs="?", help="an entity path (default: all)")
    change = parser.add_mutually_exclusive_group()
    change.add_argument("--promote", action="store_true", help="set what may act")
    change.add_argument(
        "--rollback", action="store_true", help="set back what was promoted last at this path; again: what was before that"
    )
    parser.add_argument("--svg", metavar="FILE", type=Path, help="write the reliability diagram there")
    parser.add_argument("--why", metavar="TEXT", help="the reason, for whoever looks at the history")


def run(invocation: Invocation) -> int:
    args = invocation.args
    if args.rollback:
        answer = invocation.ask("rollback", what="calibration", entity=args.entity, why=args.why)
        return invocation.show(answer, tune.lines(answer))
    answer = invocation.ask("calibrate", entity=args.entity, promote=args.promote or None, why=args.why)
    if args.svg:
        files.write(args.svg, answer["reliability"]["svg"].encode())
    return invocation.show(answer, lines(answer))


def lines(answer: Answer) -> Iterator[str]:
    yield from map(line, answer["says"])
    yield f"from {answer['runs']} runs; {'promoted' if answer['promoted'] else 'nothing was changed'}"
    yield from table(map(multiplier_row, answer["multipliers"]))
    life = answer["half_life"]
    if life["days"] is not None:
        yield f"half-life {life['days']:g} days ({life['low']:g} to {life['high']:g}), from {life['events']} stale entries"
    if answer["read_age_days"] is not None:
        yield f"what was read was {answer['read_age_days']:g} days old in the middle: that measures who reads, not what is true"
    yield "confidence when shown, and how often it then held:"
    yield from table(
        [f"{each['low']:.1f} to {each['high']:.1f}", f"{each['came']:.0%} ± {each['half']:.0%}", f"{each['count']} uses"]
        for each in answer["reliability"]["bins"]
    )


def multiplier_row(rate: Answer) -> list[str]:
    learnt = "not enough data" if rate["multiplier"] is None else f"x{rate['multiplier']:.3f}"
    acts = "acts" if rate["acts"] else ""
    return [line(rate["type"]), f"x{rate['default']:g} by default", learnt, f"{rate['again']} of {rate['cases']} again", acts]
