"""Many processes over one record, each saying when every operation began and ended, by one clock, and what came of it."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import herdbook
from tests.crash.running import say

ENTITY = "acme/ci"


def main(place: Path, plan: dict[str, Any]) -> None:
    """`plan`: writers, readers, keys, seconds. Children begin together, write a file each, and end by themselves."""
    herdbook.open(place / "record.db", agent="warm", session="").close()
    reader, writer = os.pipe()
    roles = ["write"] * plan["writers"] + ["read"] * plan["readers"]
    children = []
    for number, role in enumerate(roles):
        child = os.fork()
        if child == 0:
            try:
                work(place, plan, number, role, gate=reader)
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    say({"children": children})
    sys.stdin.readline()
    os.write(writer, b"g" * len(children))
    say({"ended": [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]})


def work(place: Path, plan: dict[str, Any], number: int, role: str, *, gate: int) -> None:
    client = herdbook.open(place / "record.db", agent=f"p{number}", session="")
    client.list()
    keys = [f"k{nth}" for nth in range(plan["keys"])]
    with (place / f"log-{number}.jsonl").open("w", buffering=1) as log:
        os.read(gate, 1)
        end = time.monotonic() + plan["seconds"]
        nth = 0
        while time.monotonic() < end:
            key = keys[(number * 7 + nth) % len(keys)]
            log.write(json.dumps(one(client, role, key, f"{number}-{nth}")) + "\n")
            nth += 1


def one(client: herdbook.Client, role: str, key: str, name: str) -> dict[str, Any]:
    """One operation, and all that a checker of histories needs of it."""
    said: dict[str, Any] = {"role": role, "key": key, "name": name, "begun": time.monotonic_ns(), "version": None}
    try:
        if role == "write":
            said["version"] = client.write(ENTITY, key, name, why="w", request_id=name)["version"]
        else:
            answer = client.read(ENTITY, key)
            said |= {"version": answer["version"], "saw": answer["value"]}
    except herdbook.HerdbookError as problem:
        said["error"] = problem.code
    return said | {"ended": time.monotonic_ns()}


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
