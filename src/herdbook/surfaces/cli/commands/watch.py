"""`herdbook watch`: set the watcher up, run it, open what it did, and disagree with it."""

from __future__ import annotations

import argparse
from pathlib import Path

from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.parser import OPTIONS, Help, number, whole_number

EXAMPLES = """\
example:
  $ herdbook watch init oncall     # gates.py, its tests and watch.toml: yours from then on
  $ echo 'Reason: OOMKilled' | herdbook watch classify -
  $ herdbook watch class incident-2026-08-14-api-startup-probe-timeout --label cold_image \\
      --pattern "startup probe failed" --why "the image is slow to pull; the old revision serves meanwhile"
  $ herdbook watch work --once     # what waits, each from a fresh box
  $ herdbook watch status

herdbook watch serve takes hooks; their secrets come from the variables that watch.toml names. herdbook watch why
1f0c9a2b7d4e shows what the watch of that deploy read before it did what it did; herdbook watch dispute takes
confidence from it. The gates in that directory decide what the watcher may do by itself; nothing else can."""

DESCRIPTIONS = {
    "init": "Write gates.py, its tests and watch.toml. They are yours: nothing that is there is overwritten.",
    "serve": "Take hooks and put jobs, until a signal. Each hook's secret is in the variable that watch.toml names for it.",
    "work": "Watch what waits, one job at a time, each from a fresh box. It needs the record itself, not a server.",
    "execute": "Take Google Cloud Tasks that carry Google's word for this address and account, and do the jobs they bring.",
    "status": "What runs, waits and is done, newest first: the key, the state, what was seen, repeats, and the gate's reason.",
    "why": "What a watch read before it did what it did, in the order of its trace; then the verdicts and what they rest on.",
    "classify": "What the classifier makes of these lines, without a watch: nothing is written.",
    "dispute": "Commit a failure against everything the watch was served: it loses confidence. Once for each watch.",
    "class": "Name what a watch saw. The next one that sees a line with all of a pattern's words knows it by that name.",
    "resolve": "Say how it ended. A watch that is open ends with it; for a class it is one more time that somebody acted on it.",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Watch deploys and alerts, each from a fresh box; code and the record's history decide what may follow."
    acts = parser.add_subparsers(dest="act", metavar="ACT", required=True)
    init = acts.add_parser("init", help="write gates.py, its tests and watch.toml into a repository")
    init.add_argument("directory", metavar="DIR", nargs="?", type=Path, default=Path("oncall"), help="where (oncall)")
    running(acts)
    looking(acts)
    saying(acts)
    for name, act in acts.choices.items():
        act.formatter_class = Help
        act.description = DESCRIPTIONS[name]
        everywhere(act)


def everywhere(parser: argparse.ArgumentParser) -> None:
    """What every command knows may stand behind the act, too; left out there, what stands before it counts."""
    group = parser.add_argument_group("everywhere")
    for name, option in OPTIONS.items():
        group.add_argument(f"--{name}", default=argparse.SUPPRESS, **option)


def running(acts: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    serve = acts.add_parser("serve", help="take hooks and put jobs: the dispatcher, which can do nothing else")
    serve.add_argument("--host", default="127.0.0.1", help="the address to listen on (127.0.0.1)")
    serve.add_argument("--port", type=whole_number, default=8766, help="the port (8766; 0 takes a free one)")
    work = acts.add_parser("work", help="do the jobs, each from a fresh box; only this makes boxes")
    work.add_argument("--once", action="store_true", help="end when no job waits")
    work.add_argument("--provider", metavar="NAME", default="auto", help="what makes the boxes (auto: the strongest here)")
    work.add_argument(
        "--idle-seconds", metavar="N", type=number, default=2.0, help="how long to wait when there is nothing to do (2)"
    )
    execute = acts.add_parser("execute", help="the same for jobs that Google Cloud Tasks brings")
    execute.add_argument("--host", default="127.0.0.1", help="the address to listen on (127.0.0.1)")
    execute.add_argument("--port", type=whole_number, default=8767, help="the port (8767; 0 takes a free one)")
    execute.add_argument("--provider", metavar="NAME", default="auto", help="what makes the boxes (auto: the strongest here)")
    for each in (serve, work, execute):
        configured(each)


def looking(acts: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    status = acts.add_parser("status", help="what runs, waits and is done, with verdict and reason")
    status.add_argument("--limit", metavar="N", type=whole_number, default=20, help="at most this many (20)")
    why = acts.add_parser("why", help="what a watch read before it did what it did")
    why.add_argument("watch", metavar="DEPLOY", help="a deploy by its sha, or the key of a watch")
    classify = acts.add_parser("classify", help="what these logs would be taken for, and why")
    classify.add_argument("file", metavar="FILE", help="a file of lines; - reads them from standard input")


def saying(acts: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    dispute = acts.add_parser("dispute", help="it was wrong: take confidence from what it read")
    dispute.add_argument("watch", metavar="DEPLOY", help="a deploy by its sha, or the key of a watch")
    dispute.add_argument("--why", metavar="TEXT", required=True, help="what was really so")
    named = acts.add_parser("class", help="name a class of incident: what it looks like and what it is")
    named.add_argument("key", metavar="KEY", help="as incident-2026-08-14-api-startup-probe-timeout")
    named.add_argument("--label", required=True, help="as the classifier names it: cold_image, product_regression, ...")
    named.add_argument("--pattern", metavar="WORDS", action="append", default=[], help="words that all occur in such a line")
    named.add_argument("--why", metavar="TEXT", required=True, help="what it is and how it is known")
    named.add_argument("--fix", metavar="PATH=FILE", action="append", default=[], help="a file, whole, that mends it")
    named.add_argument("--of", metavar="KEY", help="the entry that showed it first")
    ended = acts.add_parser("resolve", help="say how an open watch ended, or acting on a class")
    ended.add_argument("key", metavar="KEY", help="a watch that is open, or the class that was acted on")
    ended.add_argument("outcome", metavar="OUTCOME", help="success, minor_failure, failure or critical_failure")
    ended.add_argument("--why", metavar="TEXT", required=True, help="what was seen")
    ended.add_argument("--ref", metavar="REF", help="a name for this outcome: sent twice it counts once")
    for each in (named, ended):
        configured(each)


def configured(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        metavar="FILE",
        type=Path,
        default=Path("oncall/watch.toml"),
        help="the watcher's settings (oncall/watch.toml)",
    )


def run(invocation: Invocation) -> int:
    from herdbook.surfaces.cli import watching

    return watching.ACTS[invocation.args.act](invocation)
