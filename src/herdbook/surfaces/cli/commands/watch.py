"""`herdbook watch`: set the watcher up, run it, and open what it did."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.parser import whole_number
from herdbook.surfaces.cli.terminal import line

EXAMPLES = """\
example:
  $ herdbook watch init oncall     # gates.py, its tests and watch.toml: yours from then on
  $ herdbook watch classify app.log
  $ herdbook watch serve           # takes hooks; the secrets come from the variables that watch.toml names

The gates in that directory decide what the watcher may do by itself; nothing else in it can."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Watch deploys and alerts, each from a fresh box; code and the record's history decide what may follow."
    acts = parser.add_subparsers(dest="act", metavar="ACT", required=True)
    init = acts.add_parser("init", help="write gates.py, its tests and watch.toml into a repository")
    init.add_argument("directory", metavar="DIR", nargs="?", type=Path, default=Path("oncall"), help="where (oncall)")
    classify = acts.add_parser("classify", help="what these logs would be taken for, and why")
    serve = acts.add_parser("serve", help="take hooks and put jobs: the dispatcher, which can do nothing else")
    serve.add_argument("--config", metavar="FILE", type=Path, default=Path("oncall/watch.toml"), help="oncall/watch.toml")
    serve.add_argument("--host", default="127.0.0.1", help="the address to listen on (127.0.0.1)")
    serve.add_argument("--port", type=whole_number, default=8766, help="the port (8766; 0 takes a free one)")
    classify.add_argument("file", metavar="FILE", help="a file of lines; - reads them from standard input")


def run(invocation: Invocation) -> int:
    return ACTS[invocation.args.act](invocation)


def init(invocation: Invocation) -> int:
    from herdbook.watch import principal

    written = principal.init(invocation.args.directory)
    return invocation.show({"written": [str(path) for path in written]}, [f"wrote {path}" for path in written])


def classify(invocation: Invocation) -> int:
    from herdbook.watch.classify import classify_from_logs
    from herdbook.watch.findings import Line

    name = invocation.args.file
    text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8", errors="replace")
    found = classify_from_logs([Line(each) for each in text.splitlines()])
    doubts = [f"  it may also be {each}" for each in found.signals.ambiguous_with]
    lines = [
        found.label,
        *(f"  {line(each)}" for each in found.signals.lines),
        *doubts,
        *(f"  {each}" for each in found.signals.states),
    ]
    return invocation.show({"label": found.label, "signals": asdict(found.signals)}, lines)


def serve(invocation: Invocation) -> int:
    from herdbook.surfaces.cli import watching

    return watching.serve(invocation)


ACTS = {"init": init, "classify": classify, "serve": serve}
