"""What a model is examined on: the acts of held-out runs, good and bad, each with what came before it. It reads files, no more.

A good act is a call of a run that succeeded; a bad one is where a failed run parted from a successful one. Both are of tasks that
came up after everything the model was taught.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

Message = dict[str, Any]
Function = dict[str, Any]  # name and arguments


class Act(NamedTuple):
    """One decision: what the agent saw, and the call it made."""

    entity: str
    task: str
    prompt: list[Message]
    tools: list[dict[str, Any]]
    call: Function
    good: bool


def taught(folder: Path) -> list[Act]:
    """The calls of the training rows, which baselines may know too."""
    return [*rows(folder / "sft", "train", "completion", good=True)]


def held_out(folder: Path) -> list[Act]:
    """The calls of the held-out runs: those to copy, and those not to."""
    bad = rows(folder / "dpo", "holdout", "rejected", good=False) if (folder / "dpo").exists() else ()
    return [*bad, *rows(folder / "sft", "holdout", "completion", good=True)]


def rows(folder: Path, split: str, answer: str, *, good: bool) -> Iterator[Act]:
    """The acts in one split of a dataset in TRL's form; what is said and not called is no act."""
    places = [json.loads(line) for line in lines(folder / "rows.jsonl")]
    places = [place for place in places if place["split"] == split]
    for place, line in zip(places, lines(folder / f"{split}.jsonl"), strict=True):
        row = json.loads(line)
        calls = row[answer][0].get("tool_calls") or ()
        if calls:
            yield Act(place["entity"], place["task"], row["prompt"], row["tools"], calls[0]["function"], good)


def lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as file:
        yield from file
