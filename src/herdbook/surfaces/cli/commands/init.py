"""Start a record on this machine: its file, its seal key, and a sentence on what to do next."""

from __future__ import annotations

import argparse
from pathlib import Path

from herdbook.surfaces.cli.invocation import Invocation, place, shown_path
from herdbook.surfaces.cli.problems import Usage

EXAMPLES = """\
example:
  $ herdbook init
  $ herdbook write acme/ci tz '{"env": {"TZ": "UTC"}}' --why "the date tests compare against UTC midnight"
  $ herdbook brief acme/ci

Running it again changes nothing. Back up the seal key apart from the record: with both, anyone could rewrite history."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Start the record and its seal key; where they are is printed. A record that exists is left as it is."


def run(invocation: Invocation) -> int:
    if invocation.remote:
        raise Usage("init starts a record on this machine: give --record PATH instead of --url, or unset HERDBOOK_URL")
    settings = invocation.settings
    started = invocation.record_is_missing()
    invocation.opened(announce=False)
    status = invocation.ask("status")
    answer = {
        "record": str(settings.record),
        "seal_key_file": str(settings.seal_key_file),
        "seal_key_missing": not settings.seal_key_file.exists(),
        "created": started,
        "schema": status.get("schema"),
    }
    lines = [
        f"{'A new record is at' if started else 'There is a record already, left as it is, at'} {place(settings)}",
        where_the_key_is(settings.seal_key_file),
        "",
        "Next:",
        '  herdbook write acme/ci tz \'{"env": {"TZ": "UTC"}}\' --why "the date tests compare against UTC midnight"',
        "  herdbook brief acme/ci",
        "  herdbook doctor",
    ]
    return invocation.show(answer, lines)


def where_the_key_is(path: Path) -> str:
    """An old record is never given another key: one that is gone has to come back from its own backup."""
    if path.exists():
        return f"Its seal key is at {shown_path(path)}: keep a copy apart from the record."
    return f"Its seal key is missing: put it back at {shown_path(path)} from its own backup; until then nothing can be written."
