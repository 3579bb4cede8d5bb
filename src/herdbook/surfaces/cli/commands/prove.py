"""What the record is worth: in sentences first, then the numbers behind them with their intervals."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.terminal import Answer, line, table

EXAMPLES = """\
example:
  $ herdbook tune acme/ci control=0.1 --why "to see what the record is worth"
  $ herdbook prove acme/ci
  $ herdbook prove --json

Runs of the control arm are told nothing of what is known. Without some of them nothing can be proved, and it says so."""
ENTRIES_MAX = 20
UNITS = {"success": "share of runs", "attempts": "a run", "seconds": "a run"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "What the record is worth at ENTITY and below it, or everywhere: told against control, 95 % intervals."
    parser.add_argument("entity", metavar="ENTITY", nargs="?", help="an entity path (default: all)")


def run(invocation: Invocation) -> int:
    answer = invocation.ask("prove", entity=invocation.args.entity)
    return invocation.show(answer, lines(answer))


def lines(answer: Answer) -> Iterator[str]:
    yield from map(line, answer["says"])
    yield f"{answer['told']} runs were told what is known, {answer['control']} were not:"
    yield from table(
        [name, interval(uplift["estimate"], uplift["low"], uplift["high"]), UNITS[name], uplift["verdict"]]
        for name, uplift in answer["uplift"].items()
    )
    yield "checks:"
    yield from table(list(checks(answer["checks"])))
    cost = answer["tokens"]
    if cost["a_run"] is not None:
        yield f"being told costs about {cost['a_run']:.0f} tokens a run, {cost['entries_a_run']:g} entries"
    if answer["entries"]:
        yield "entries left to chance, effect on success:"
        yield from table(map(entry_row, answer["entries"][:ENTRIES_MAX]))
    if len(answer["entries"]) > ENTRIES_MAX:
        yield f"  and {len(answer['entries']) - ENTRIES_MAX} more: --json has them all"


def checks(found: Answer) -> Iterator[list[str]]:
    overlap = found["overlap"]
    yield ["overlap", f"{overlap['entities']} paths with both arms, {overlap['runs']} runs, {overlap['left_out']} left out"]
    for name, meaning in (("time", "both arms at the same times"), ("placebo", "no effect on the run before")):
        passed = {True: "passed", False: "FAILED", None: "cannot be told"}[found[name]["passed"]]
        yield [name, f"{meaning}: {passed}"]


def entry_row(entry: Answer) -> list[str]:
    counts = f"{entry['served']} with, {entry['withheld']} without"
    place = f"{entry['entity']} {entry['key']} v{entry['version']}"
    return [line(place), interval(entry["effect"], entry["low"], entry["high"]), counts, entry["verdict"]]


def interval(estimate: float | None, low: float | None, high: float | None) -> str:
    if estimate is None or low is None or high is None:
        return "–"
    return f"{signed(estimate)} ({signed(low)} to {signed(high)})"


def signed(number: float) -> str:
    """With its sign, and nothing without one: minus zero would look like an effect."""
    return f"{number:+.3g}" if round(number, 12) else "0"
