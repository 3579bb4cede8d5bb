"""Copy the whole record into one file, while it is in use, and compare the two. The seal key stays where it is."""

from __future__ import annotations

import argparse
from pathlib import Path

from herdbook.base.clock import SystemClock, iso
from herdbook.base.errors import NotFound
from herdbook.surfaces.cli.invocation import Invocation, how_to_start, place, shown_path
from herdbook.surfaces.cli.problems import Usage
from herdbook.surfaces.cli.terminal import line

EXAMPLES = """\
example:
  $ herdbook backup /backups/record-2026-11-30
  $ herdbook backup copy --record postgresql://admin@db.example/herdbook   # needs pg_dump, and a login above row security

It makes two files that belong together, FILE and FILE.json, and never writes over one. herdbook restore FILE puts them back.
The seal key is in neither: keep a copy of it somewhere else."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Copy the whole record into FILE, and compare the two. The record may be in use."
    parser.add_argument("file", metavar="FILE", type=Path, help="where the copy goes; it must not be there yet")


def run(invocation: Invocation) -> int:
    from herdbook.record import backup

    if invocation.remote:
        raise Usage("a copy is taken where the record is: run this on the server's machine, or give --record")
    if invocation.record_is_missing():
        raise NotFound(f"there is no record at {place(invocation.settings)}: {how_to_start(invocation.settings)}")
    file: Path = invocation.args.file
    copy = backup.take(invocation.settings.record, file, at=SystemClock().now())
    key = shown_path(invocation.settings.seal_key_file)
    invocation.terminal.remark(f"the seal key is not in it: keep a copy of {key} somewhere else")
    answer = {"file": str(file), "engine": copy.engine, "schema": copy.schema, "at": iso(copy.at), "rows": copy.rows}
    return invocation.show(
        {**answer, "sha256": copy.sha256},
        [f"{line(str(file))}: {copy.rows} rows of {len(copy.tables)} tables, the same as in the record"],
    )
