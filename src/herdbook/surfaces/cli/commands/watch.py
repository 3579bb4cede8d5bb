"""`herdbook watch`: set the watcher up, run it, and open what it did."""

from __future__ import annotations

import argparse
from pathlib import Path

from herdbook.surfaces.cli.invocation import Invocation

EXAMPLES = """\
example:
  $ herdbook watch init oncall     # gates.py, its tests and watch.toml: yours from then on

The gates in that directory decide what the watcher may do by itself; nothing else in it can."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Watch deploys and alerts, each from a fresh box; code and the record's history decide what may follow."
    acts = parser.add_subparsers(dest="act", metavar="ACT", required=True)
    init = acts.add_parser("init", help="write gates.py, its tests and watch.toml into a repository")
    init.add_argument("directory", metavar="DIR", nargs="?", type=Path, default=Path("oncall"), help="where (oncall)")


def run(invocation: Invocation) -> int:
    return ACTS[invocation.args.act](invocation)


def init(invocation: Invocation) -> int:
    from herdbook.watch import principal

    written = principal.init(invocation.args.directory)
    return invocation.show({"written": [str(path) for path in written]}, [f"wrote {path}" for path in written])


ACTS = {"init": init}
