"""Fit a ranker to what was shown and what came of it: what was tried, what was chosen, what is uncomfortable."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.terminal import Answer, line, table

EXAMPLES = """\
example:
  $ herdbook retrain acme/ci
  $ herdbook ranker ls
  $ herdbook retrain --method gbm --weight 0.3      # boosted trees at 30 %, whatever is better

It needs numpy, `pip install 'herdbook[learn]'`; boosted trees need 'herdbook[rank]'.
Nothing ranks until `herdbook ranker promote`."""
FEATURES_MAX = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Fit a ranker to the runs at ENTITY and below it, or to all; it is kept, and ranks nothing by itself."
    parser.add_argument("entity", metavar="ENTITY", nargs="?", help="an entity path (default: all)")
    parser.add_argument("--method", choices=("logistic", "gbm"), help="this one, whatever is better")
    parser.add_argument("--weight", type=float, metavar="W", help="its part of the score, from 0 to 1")


def run(invocation: Invocation) -> int:
    args = invocation.args
    answer = invocation.ask("retrain", entity=args.entity, method=args.method, weight=args.weight)
    return invocation.show(answer, lines(answer))


def gained(judged: Answer) -> str:
    """Over the default, with its standard error where that is known."""
    error = judged["error"]
    return f"{judged['gain']:+.3f}" + (", too few runs to say how sure" if error is None else f" ± {error:.3f}")


def lines(answer: Answer) -> Iterator[str]:
    yield from map(line, answer["says"])
    yield f"from {answer['samples']} samples of {answer['runs']} runs; chosen: {line(answer['chosen'])}"
    yield from table([line(each["candidate"]), f"{each['value']:.3f} in order", gained(each)] for each in answer["tried"])
    if answer["importances"]:
        yield "what it goes by, as loss when shuffled:"
        yield from table(
            [line(each["feature"]), f"{each['loss']:+.3f} ± {each['spread']:.3f}"]
            for each in answer["importances"][:FEATURES_MAX]
        )
    if answer["ranker"]:
        where = f" {line(answer['entity'])}" if answer["entity"] else ""
        yield f"kept as {line(answer['ranker'])}. To let it rank:  herdbook ranker promote {line(answer['ranker'])}{where}"
