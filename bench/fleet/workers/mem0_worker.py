"""mem0 behind lines of JSON, run by an interpreter that has its packages: write, brief.

It stores what it is given (`infer=False`: a model that rewrites notes would have to be online) in its own vector store on disk,
with our embedder in place of a hosted one. It learns nothing from outcomes, so it is told none.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

os.environ["MEM0_TELEMETRY"] = "False"
os.environ["MEM0_DIR"] = sys.argv[1]

from mem0 import Memory  # type: ignore[import-not-found, unused-ignore]

logging.disable(logging.CRITICAL)
DIMENSIONS = 384


def told() -> Any:
    return json.loads(sys.stdin.readline())


def say(what: Any) -> None:
    print(json.dumps(what), flush=True)


class Embedder:
    """Asks the bench, which has the model, and remembers."""

    def __init__(self) -> None:
        self.known: dict[str, list[float]] = {}

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        if text not in self.known:
            say({"embed": text})
            self.known[text] = told()
        return self.known[text]

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(text) for text in texts]


def main(root: Path) -> None:
    memory = Memory.from_config(
        {
            "vector_store": {
                "provider": "qdrant",
                "config": {"path": str(root / "qdrant"), "embedding_model_dims": DIMENSIONS, "collection_name": "fleet"},
            },
            "llm": {"provider": "openai", "config": {"api_key": "none"}},
            "embedder": {"provider": "openai", "config": {"api_key": "none", "embedding_dims": DIMENSIONS}},
            "history_db_path": str(root / "history.db"),
        }
    )
    memory.embedding_model = Embedder()
    for line in sys.stdin:
        asked = json.loads(line)
        do = asked.pop("do")
        if do == "write":
            memory.add(asked["text"], user_id=asked["entity"], metadata={"note": json.dumps(asked["note"])}, infer=False)
            say({})
        elif do == "brief":
            found = []
            for path in asked["paths"]:
                hits = memory.search(asked["task"], filters={"user_id": path}, top_k=40, threshold=0.0)["results"]
                found += [(hit["score"], json.loads(hit["metadata"]["note"])) for hit in hits]
            say([note for _, note in sorted(found, key=lambda each: -each[0])])
        else:
            say({})


main(Path(sys.argv[1]))
