"""Recorded runs of tau-bench told to a record as any agent would tell them: what it was given, each call, and how it ended."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from herdbook.testing.records import Book, Desk

OURS = Path(__file__).parent / "tau_bench" / "airline.json"
WHOLE = "TAU_BENCH_AIRLINE"


def loaded(path: Path | None = None) -> list[dict[str, Any]]:
    """The runs of a file, with the system prompt that ours holds once."""
    said = json.loads((path or OURS).read_text(encoding="utf-8"))
    if isinstance(said, list):
        return said
    system = {"role": "system", "content": said["policy"]}
    return [run | {"traj": [system, *run["traj"]]} for run in said["runs"]]


def whole() -> list[dict[str, Any]] | None:
    """All 200, where somebody has them."""
    named = os.environ.get(WHOLE)
    return loaded(Path(named)) if named else None


def tell(desk: Desk, book: Book, run: dict[str, Any]) -> None:
    """One recorded run. The last word of a run without an answer to its call is left as it is: so are runs that broke off."""
    session = f"airline-{run['task_id']:02}-{run['trial']}"
    desk.do("start_session", session=session, agent="gpt-4o", entity="airline/desk")
    messages = run["traj"]
    answers = {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}
    for message in messages:
        if message["role"] == "tool":
            continue
        for call in message.get("tool_calls") or []:
            book.clock.tick(seconds=1)
            told = {"tool": call["function"]["name"], "args": json.loads(call["function"]["arguments"])}
            desk.do("record_action", session=session, **told, result=answers.get(call["id"]))
        if message.get("content"):
            book.clock.tick(seconds=1)
            desk.do("record_context", session=session, name=message["role"], text=message["content"])
    book.clock.tick(seconds=1)
    asked = run["info"]["task"]["instruction"]
    kind = "success" if run["reward"] == 1.0 else "failure"
    desk.outcome(session, kind, ref=f"{session}.end", task_input=asked)
