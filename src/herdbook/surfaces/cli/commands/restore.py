"""Put a copy back where there is no record. What it holds is checked first; nothing that is there is touched."""

from __future__ import annotations

import argparse
from pathlib import Path

from herdbook.base.clock import SystemClock, iso
from herdbook.surfaces.cli.invocation import Invocation, place, shown_path
from herdbook.surfaces.cli.problems import Usage
from herdbook.surfaces.cli.terminal import line

EXAMPLES = """\
example:
  $ herdbook restore /backups/record-2026-11-30                  # to where the record was
  $ herdbook restore /backups/record-2026-11-30 --record try.db  # to try the copy
  $ herdbook restore copy --record postgresql://admin@db.example/empty   # needs pg_restore

Stop what uses the record first. What is left of an old one must be moved away, and is named. Then herdbook doctor."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Put a copy that herdbook backup has made where there is no record."
    parser.add_argument("file", metavar="FILE", type=Path, help="the copy; FILE.json lies beside it")


def run(invocation: Invocation) -> int:
    from herdbook.record import backup

    if invocation.remote:
        raise Usage("a copy is restored where the record is: run this on the server's machine, or give --record")
    settings, file = invocation.settings, invocation.args.file
    copy = backup.restore(file, settings.record, key_file=settings.seal_key_file, at=SystemClock().now())
    if not settings.seal_key_file.exists():
        invocation.terminal.remark(f"the seal key is not at {shown_path(settings.seal_key_file)}: put it back from its own copy")
    again = backup.erase_again(settings.record, key_file=settings.seal_key_file)
    if again is None:
        invocation.terminal.remark(
            "no list of erasures lies beside the seal key: what was erased after this copy was made has to be erased again"
        )
    answer = {"file": str(file), "engine": copy.engine, "schema": copy.schema, "at": iso(copy.at), "rows": copy.rows}
    return invocation.show(
        {**answer, "record": str(settings.record), "erased_again": again},
        [
            f"{line(place(settings))}: {copy.rows} rows of {len(copy.tables)} tables, as of {iso(copy.at)}",
            *([f"erased again what was erased since: {again} erasures"] if again else []),
        ],
    )
