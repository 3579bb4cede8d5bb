"""How ranking, credit and experiments work at a path and below it: shown, or set."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.problems import Usage
from herdbook.surfaces.cli.terminal import Answer, compact, line, table

EXAMPLES = """\
example:
  $ herdbook tune acme/ci holdback=0.15 --why "to see which notes help"
  $ herdbook tune acme/ci
  $ herdbook tune half_life_days=60
  $ herdbook tune acme/ci holdback=

Without a path it holds everywhere; the nearest path wins. An empty value goes back to what the path above says."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Show or set how ranking, credit and experiments work at ENTITY and below it, or everywhere."
    parser.add_argument("words", metavar="ENTITY|NAME=VALUE", nargs="*", help="a path first, then what to set")
    parser.add_argument("--why", metavar="TEXT", help="the reason, for whoever looks at the history")
    parser.add_argument("--history", action="store_true", help="also show everything that was ever set at this very path")


def run(invocation: Invocation) -> int:
    args = invocation.args
    entity = args.words[0] if args.words and "=" not in args.words[0] else None
    values = dict(map(setting, args.words[0 if entity is None else 1 :]))
    if values:
        answer = invocation.ask("tune", entity=entity, values=values, why=args.why)
    else:
        answer = invocation.ask("tuning", entity=entity, history=args.history or None)
    return invocation.show(answer, lines(answer))


def setting(word: str) -> tuple[str, float | str | None]:
    """NAME=VALUE: a number where it looks like one, nothing where there is nothing."""
    name, separator, value = word.partition("=")
    if not separator or not name:
        raise Usage(f"{word[:80]!r} is not NAME=VALUE, such as holdback=0.15")
    if not value:
        return name, None
    try:
        return name, float(value)
    except ValueError:
        return name, value


def lines(answer: Answer) -> Iterator[str]:
    yield f"at {line(answer.get('entity') or 'every path')}:"
    rows = answer.get("tuning") or []
    yield from table(
        [
            line(row["name"]),
            line(compact(row["value"])),
            line(f"set at {row['set_at']}" if row["set_at"] else "default"),
            row["meaning"],
        ]
        for row in rows
    )
    for row in answer.get("history") or []:
        why = f": {line(row['why'])}" if row.get("why") else ""
        yield f"{line(row['at'])} {line(row['name'])} = {line(compact(row['value']))} by {line(row['by'])}{why}"
