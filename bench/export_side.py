"""One turn of one side of `bench.export`, in a process of its own: seconds and megabytes as JSON."""

from __future__ import annotations

import json
import resource
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

from bench.export import BARE


def bare(record: Path, out: Path) -> None:
    """What anybody would write who has the file and no questions."""
    columns = ("session", "agent", "entity", "started_at", "contexts", "actions", "outcomes")
    with closing(sqlite3.connect(record)) as raw, out.open("w", encoding="utf-8") as file:
        for row in raw.execute(BARE):
            told = dict(zip(columns, row[:4], strict=False)) | {
                name: json.loads(text) for name, text in zip(columns[4:], row[4:], strict=True)
            }
            file.write(json.dumps(told, ensure_ascii=False) + "\n")


def exported(record: Path, out: Path, *, unscrubbed: bool) -> None:
    """The command's own way: pages of the verb `runs`, and the dataset made known to the record."""
    import herdbook
    from herdbook.slowloop.export.dataset import Choices, export
    from herdbook.slowloop.export.registering import Registrar

    with herdbook.open(record, agent="bench") as book:
        choices = Choices(kind="kto", unscrubbed=unscrubbed)
        keep = Registrar(lambda verb, fields: book.call(verb, dict(fields)))
        made = export(lambda fields: book.call("runs", dict(fields)), out, choices, keep=keep)
        assert made.manifest["used_runs"] == made.manifest["runs"], made.manifest["left_out"]


def main(side: str, record: Path, out: Path) -> None:
    began = (
        time.process_time()
    )  # of the processor: both sides use one core, and other work on the machine would weigh on each alone
    if side == "bare":
        bare(record, out)
    else:
        exported(record, out, unscrubbed=side == "unscrubbed")
    print(json.dumps({"seconds": time.process_time() - began, "megabytes": megabytes()}))


def megabytes() -> float:
    """The most this process has had at once. What getrusage tells begins with what the parent had when it started this one."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
