"""The benches of the repository, where this herdbook runs out of it: they are no part of the installed package."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import herdbook
from herdbook.base.errors import InvalidRequest
from herdbook.surfaces.cli.invocation import Invocation

EXAMPLES = """\
example:
  $ herdbook bench fleet --help
  herdbook bench fleet --kinds ci --seeds 1:3 --policies herdbook,newest-first,oracle
  herdbook bench fleet --scenario mine.toml
  herdbook bench briefing

Everything behind `bench` is handed on as it is."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Run a bench of the repository: `fleet`, or those that measure what herdbook claims about its speed."
    parser.add_argument("arguments", metavar="...", nargs=argparse.REMAINDER, help="which bench, and its own options")


def run(invocation: Invocation) -> int:
    root = checkout()
    if root is None:
        raise InvalidRequest("benches are in the repository, not in the package: clone it, and run `python -m bench` there")
    path = os.pathsep.join([str(root), str(root / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    arguments = [sys.executable, "-m", "bench", *invocation.args.arguments]
    return subprocess.run(arguments, env=os.environ | {"PYTHONPATH": path}, check=False).returncode


def checkout() -> Path | None:
    """The repository this package runs out of, if it does."""
    root = Path(herdbook.__file__).resolve().parents[2]
    return root if (root / "bench" / "fleet" / "command.py").is_file() else None
