"""The rankers there are: listed, promoted, taken back."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from herdbook.surfaces.cli.commands import tune
from herdbook.surfaces.cli.commands.retrain import gained
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.problems import Usage
from herdbook.surfaces.cli.terminal import Answer, line, table

EXAMPLES = """\
example:
  $ herdbook ranker ls --shadow
  herdbook ranker promote 3f0c5a9d1e7b2460 acme/ci --why "better in shadow for a week"
  herdbook ranker rollback acme/ci"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "List the rankers that were fitted, let one rank at a path, or go back to what ranked before."
    parser.add_argument("what", choices=("ls", "promote", "rollback"))
    parser.add_argument("words", metavar="RANKER|ENTITY", nargs="*", help="promote: the ranker and a path; rollback: a path")
    parser.add_argument("--weight", type=float, metavar="W", help="its part of the score (default: the one it was judged with)")
    parser.add_argument("--shadow", action="store_true", help="also how each would have ordered what was shown since it was made")
    parser.add_argument("--why", metavar="TEXT", help="the reason, for whoever looks at the history")


def run(invocation: Invocation) -> int:
    args, words = invocation.args, list(invocation.args.words)
    if args.what == "ls":
        answer = invocation.ask("rankers", shadow=args.shadow or None)
        return invocation.show(answer, lines(answer))
    if args.what == "promote" and not words:
        raise Usage("say which ranker: herdbook ranker ls shows them")
    ranker = words.pop(0) if args.what == "promote" else None
    if len(words) > 1:
        raise Usage("one path at most")
    entity = words[0] if words else None
    if ranker is not None:
        answer = invocation.ask("promote", ranker=ranker, entity=entity, weight=args.weight, why=args.why)
    else:
        answer = invocation.ask("rollback", what="ranker", entity=entity, why=args.why)
    return invocation.show(answer, tune.lines(answer))


def lines(answer: Answer) -> Iterator[str]:
    if not answer["rankers"]:
        yield "no ranker was fitted yet: herdbook retrain"
    for each in answer["rankers"]:
        if each["refused"]:
            yield f"{line(each['ranker'])}: {line(each['refused'])}"
            continue
        where = ", ".join(map(line, each["ranks_at"])) or "nowhere"
        whose = line(each["entity"] or "all paths")
        yield f"{line(each['ranker'])} of {line(each['at'])}, ranks at: {where}"
        judged, since = each["judged"], each.get("shadow")
        rows = [[f"{each['method']} at {each['weight']:g}", f"from {each['samples']} samples of {whose}", gain(judged)]]
        if since is not None:
            rows.append(["in shadow", f"{since.get('samples', 0)} samples since", gain(since)])
        yield from table(rows)


def gain(found: Answer) -> str:
    return "not enough data" if found.get("gain") is None else f"{gained(found)} over the default"
