"""AMFS behind lines of JSON, run by an interpreter that has its packages: write, brief, finish, worth.

Its own rules, unchanged: the SDK in process over its filesystem adapter, ranking on the client. It is given our embedder, and its
own clock, since it takes no other: to it the whole fleet lives within minutes.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

from amfs import AgentMemory, OutcomeType  # type: ignore[import-not-found, unused-ignore]
from amfs_core.embedder import EmbedderABC  # type: ignore[import-not-found, unused-ignore]
from amfs_filesystem.adapter import FilesystemAdapter  # type: ignore[import-not-found, unused-ignore]

logging.disable(logging.CRITICAL)


def told() -> Any:
    return json.loads(sys.stdin.readline())


def say(what: Any) -> None:
    print(json.dumps(what), flush=True)


class Embedder(EmbedderABC):  # type: ignore[misc, unused-ignore]
    """Asks the bench, which has the model, and remembers."""

    def __init__(self) -> None:
        self.known: dict[str, list[float]] = {}

    def embed(self, text: str) -> list[float]:
        if text not in self.known:
            say({"embed": text})
            self.known[text] = told()
        return self.known[text]


def main(root: Path) -> None:
    adapter, embedder = FilesystemAdapter(root, "default"), Embedder()
    memory = AgentMemory(agent_id="nobody", adapter=adapter, embedder=embedder)
    for line in sys.stdin:
        asked = json.loads(line)
        do = asked.pop("do")
        if do == "begin":
            memory = AgentMemory(agent_id=asked["agent"], adapter=adapter, embedder=embedder)
            say({})
        elif do == "write":
            more = {} if asked["confidence"] is None else {"confidence": asked["confidence"]}
            memory.write(asked["entity"], asked["key"], asked["value"], **more)
            say({})
        elif do == "brief":
            found = [each for path in asked["paths"] for each in memory.retrieve(asked["task"], entity_path=path, limit=40)]
            found.sort(key=lambda each: -each.score)
            say([{"entity": each.entry.entity_path, "key": each.entry.key, "value": each.entry.value} for each in found])
        elif do == "finish":
            memory.commit_outcome(asked["ref"], OutcomeType(asked["type"]), asked["used"], task_input=asked["task"])
            say({})
        else:
            entry = memory.read(asked["entity"], asked["key"])
            say({"confidence": None if entry is None else entry.confidence})


main(Path(sys.argv[1]))
