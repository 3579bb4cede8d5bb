"""The principal's gates.py, asked in a process of its own: whatever that file does, the worker is not in it.

usage: python -m herdbook.watch.gate_process FILE, with the question as JSON on standard input; without a question it says whether
the file can be run. What the file prints goes to the log, and nothing that it starts is waited for.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from typing import Any

from herdbook.watch.findings import Instance, KnownClass, Signals, Verdict


def main() -> None:
    answer = os.dup(1)
    os.dup2(2, 1)  # so that a `print` in the file is no part of the answer
    try:
        told = answered(sys.argv[1], json.load(sys.stdin))
    except (Exception, SystemExit) as problem:  # because it is a person's file, which may do anything
        told = {"failed": f"{type(problem).__name__}: {problem}"[:300]}
    with os.fdopen(answer, "w") as out:
        json.dump(told, out)
    sys.stdout.flush()
    os._exit(0)  # not by way of what the file may have left to be done at the end


def answered(file: str, question: dict[str, Any]) -> dict[str, Any]:
    """`verdict`, or what is `missing` or `odd`."""
    spec = importlib.util.spec_from_file_location("principals_gates", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    gate = getattr(module, "should_draft_pr", None)
    if not callable(gate):
        return {"missing": "should_draft_pr"}
    if not question:
        return {"ready": True}
    known = question["matched_class"]
    matched = None if known is None else KnownClass(**{**known, "patterns": tuple(known["patterns"])})
    signals = Signals(**{name: tuple(texts) for name, texts in question["signals"].items()})
    said = gate(question["label"], signals, matched, [Instance(**each) for each in question["history"]])
    if not isinstance(said, Verdict):
        return {"odd": f"{said!r:.80}"}
    return {"verdict": said.as_dict()}


if __name__ == "__main__":
    main()
