"""`herdbook demo`: a second box that starts where the first one ended, on this machine, in boxes that are really isolated.

It refuses to run where no provider can isolate, unless `--provider unsafe-process` is asked for by name.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shlex
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

from herdbook.boxes.host import Host
from herdbook.boxes.provider import WEAKEST_FIRST
from herdbook.boxes.providers import AUTO, PROVIDERS, choose
from herdbook.client import Client
from herdbook.surfaces.demo.acts import Play, Played
from herdbook.surfaces.demo.events import Committed, Known, Wrote
from herdbook.surfaces.demo.events import as_json as told
from herdbook.surfaces.demo.narration import Narration
from herdbook.surfaces.demo.stage import LABEL, OWN, Stage, Turn, suite_files

ENTITY_ROOT: Final = "herdbook-demo/checkout"
OFF: Final = ("", "0", "false", "no", "off")
FLOAT_DIGITS: Final = 6

EXAMPLES = """\
example:
  $ herdbook demo                    # five acts, told as they happen
  $ herdbook demo --json             # one object with everything that was measured
  $ KEEP=1 herdbook demo             # leave both boxes for the next run, which then need not make them
  $ cp -r src/herdbook/surfaces/demo/suite mine
  $ herdbook demo --suite mine       # your own: turn away more calls in mine/sandbox.py, and the acts follow

Every run has an entity path of its own, so it starts cold. The record stays: the commands printed at the end look into it.
Exit code 1 says that an act did not end as it has to, or that no provider can isolate boxes here."""


class Wiring(Protocol):
    """What the composition root hands in. Whoever made it closes it, after `run` has returned."""

    @property
    def boxes_dir(self) -> Path:
        """Where box providers of this machine keep their boxes."""
        ...

    def open_record(self) -> Client:
        """The record with its operator's scopes: read, attest, host. Called once, when boxes are known to work here."""
        ...

    def open_socket(self, box: str) -> tuple[str, Callable[[], None]]:
        """Where this box reaches the record, the same path each time for the same box; and how to close it."""
        ...


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Two isolated boxes and one record. The first agent finds out by trying how to get a test suite green; the second, "
        "in a box that never ran it, starts from what the first wrote down. Everything shown is measured while it happens."
    )
    parser.add_argument(
        "--provider", choices=(AUTO, *PROVIDERS), default=AUTO, help="what makes the boxes (auto: the strongest here)"
    )
    parser.add_argument("--isolation-min", choices=WEAKEST_FIRST[1:], help="refuse to run in less")
    kept = os.environ.get("KEEP", "").lower() not in OFF
    parser.add_argument(
        "--keep", action="store_true", default=kept, help="keep boxes a and b; the next run with it reuses them (KEEP=1)"
    )
    parser.add_argument("--suite", type=Path, metavar="DIR", help="another project than ours: a directory with unittest files")
    parser.add_argument(
        "--json", action="store_true", help="print one object: the acts, the two counts of attempts, the history, ..."
    )


def run(wiring: Wiring, args: argparse.Namespace) -> int:
    """Play it. Raises CannotIsolate, naming what is missing, where no box can be isolated."""
    began = time.monotonic()
    suite = suite_files(args.suite or OWN / "suite")
    provider = choose(args.provider, minimum=args.isolation_min, state_dir=wiring.boxes_dir)
    narration = Narration(None if args.json else sys.stdout)
    suffix = secrets.token_hex(3)
    entity = f"{ENTITY_ROOT}/{time.strftime('%Y%m%d-%H%M%S')}-{suffix}"
    book = wiring.open_record()
    with Host(book, provider, open_socket=wiring.open_socket, label=LABEL) as host:
        stage = Stage(book, provider, host, suite=suite, suffix=suffix)
        narration.line(f"Two boxes and one record, at the entity path {entity}")
        swept = stage.sweep()
        if swept:
            narration.line(f"  destroyed {swept} boxes that a killed demo left behind")
        played = Play(stage, narration, entity, began=began, keep=args.keep).perform()
    if args.json:
        print(json.dumps(rounded(as_json(played)), indent=2))
    else:
        follow_up(narration, played, args)
    return 0 if played.failed is None else 1


def as_json(played: Played) -> dict[str, Any]:
    """The one object: everything in it happened, nothing is a constant of the demo."""
    failed = played.failed
    return {
        "entity": played.entity,
        "acts": [act(turn) for turn in played.turns],
        "attempts_cold": played.runs(2),
        "attempts_inherited": played.runs(3),
        "history": played.history,
        "confidence": played.confidence,
        "boxes": played.boxes,
        "seconds": played.seconds,
        "failed": None if failed is None else {"act": failed.number, "message": failed.message},
    }


def rounded(value: Any) -> Any:
    """Every measured number with as many digits as mean something."""
    if isinstance(value, dict):
        return {name: rounded(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(member) for member in value]
    return round(value, FLOAT_DIGITS) if isinstance(value, float) else value


def act(turn: Turn) -> dict[str, Any]:
    """One agent's part of an act; what the third box does afterwards has the number 6."""
    outcomes = [told(event) for event in turn.all(Committed)]
    return {
        "number": turn.number,
        "agent": turn.actor.agent,
        "box": turn.actor.box.id,
        "load": turn.load,
        "known": [told(entry) for entry in turn.known],
        "runs": [told(event) for event in turn.runs],
        "wrote": [told(event) for event in turn.all(Wrote)],
        "outcome": outcomes[-1] if outcomes else None,
        "attested": turn.attested,
        "exit_code": turn.exit_code,
        "error": turn.problem if turn.exit_code else None,
    }


def follow_up(narration: Narration, played: Played, args: argparse.Namespace) -> None:
    """Where to look next, as commands that work as they are printed: a play that failed left less to look at."""
    place = f" --record {shlex.quote(args.record)}" if getattr(args, "record", None) else ""
    commands = [f"{words}{place}" for words in worth_a_look(played)]
    if any(not box["destroyed"] for box in played.boxes):
        commands.append(f"box ls --live{place}   # kept boxes; box rm BOX ends one")
    if commands:
        narration.line()
        narration.line("Look for yourself:")
    for words in commands:
        narration.line(f"  {program()} {words}")


def worth_a_look(played: Played) -> list[str]:
    """The entry that was superseded, or else the last one that was written; what is known; and the last run."""
    keys = [event.key for turn in played.turns for event in turn.all(Wrote)]
    runs = [event.session for turn in played.turns for event in turn.all(Known)]
    refs = [event.ref for turn in played.turns for event in turn.all(Committed)]
    found = []
    if keys:
        key = "retry-budget" if "retry-budget" in keys else keys[-1]
        found += [f"why {played.entity} {key}", f"history {played.entity} {key}", f"brief {played.entity}"]
    return [*found, *(f"trace {shlex.quote(name)}" for name in (refs or runs)[-1:])]


def program() -> str:
    """How this command was called, if its name alone does not find it."""
    if shutil.which("herdbook"):
        return "herdbook"
    called = Path(sys.argv[0])
    return os.path.relpath(called) if called.name == "herdbook" else f"{Path(sys.executable).name} -m herdbook"
