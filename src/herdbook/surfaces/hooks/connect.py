"""Putting an agent, or git, inside the loop: its own configuration gets our tools and hooks, and can be put back to the byte."""

from __future__ import annotations

import argparse
import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Protocol

from herdbook.base import text
from herdbook.base.repository import entity_of
from herdbook.base.settings import Settings
from herdbook.surfaces.hooks.agents import AGENTS
from herdbook.surfaces.hooks.files import Done, Kept, put, take

EXAMPLES: Final = """\
example:
  $ herdbook connect claude-code --entity acme/checkout --dry-run    # what would change
  $ herdbook connect claude-code --entity acme/checkout
  $ herdbook connect claude-code --remove                            # every file as it was, to the byte"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write AGENT's own configuration in this folder: the tools, and hooks that brief it when it starts, record what it\n"
        "does, and tell how its run ended from the last test run, not from what it thinks of itself."
    )
    parser.add_argument("of", metavar="AGENT", choices=AGENTS, help=f"one of {', '.join(AGENTS)}")
    parser.add_argument("--entity", metavar="PATH", help="the path its runs are about (the repository's owner/name)")
    parser.add_argument("--dry-run", action="store_true", help="show the changes, make none")
    parser.add_argument("--remove", action="store_true", help="put every file back as it was")


class Invoked(Protocol):
    """A command line, as it was read."""

    args: argparse.Namespace
    settings: Settings


def run(invocation: Invoked) -> int:
    args, home, folder = invocation.args, invocation.settings.home, Path(os.getcwd())
    entity = text.entity_path(args.entity or entity_of(str(folder)))
    kept, act = Kept(home), take if args.remove else put
    done = [act(edit, kept, dry_run=args.dry_run) for edit in AGENTS[args.of](folder, entity)]
    if args.json:
        print(json.dumps({"agent": args.of, "entity": entity, "files": [as_dict(each) for each in done]}, indent=2))
        return 0
    for each in done:
        print(f"{each.path}: {f'would be {each.what}' if args.dry_run and each.diff else each.what}")
        if args.dry_run and each.diff:
            print(each.diff)
    if not (args.remove or args.dry_run):
        print(f"{args.of} is connected, about {entity}. To undo it: herdbook connect {args.of} --remove")
        if args.of != "git" and find_spec("mcp") is None:
            print("Its hooks work now; its tools need the extra, in this same Python: pip install 'herdbook[mcp]'")
    return 0


def as_dict(done: Done) -> dict[str, str]:
    return {"path": str(done.path), "what": done.what, "diff": done.diff}
