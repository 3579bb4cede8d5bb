"""Takes its turn to write to a record, says so, and keeps it until it is told to go on."""

from __future__ import annotations

import sys
from typing import Any

import herdbook
from tests.crash.running import say


def main(record: str) -> None:
    client = herdbook.open(record, agent="holder", session="")

    def work(tx: Any) -> None:
        tx.run("set_meta", {"name": "held", "value": "1"})
        say({"holding": True})
        sys.stdin.readline()

    client.transport.service.record.store.write(work)  # type: ignore[attr-defined]  # the one in this process
    say({"done": True})


if __name__ == "__main__":
    main(sys.argv[1])
