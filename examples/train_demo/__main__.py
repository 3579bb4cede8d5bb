"""`python -m examples.train_demo`: from a fleet's record to a model of its own that answers an unmodified client.

Everything goes through the commands a person would type; a step that does not end as it has to ends the demo with code 1.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from examples.train_demo import fleet
from herdbook.slowloop.models.acts import Act, held_out

TRAINING: Final = (
    "--base",
    "tiny",
    "--epochs",
    "16",
    "--batch",
    "8",
    "--rate",
    "0.003",
    "--length",
    "256",
    "--holdout",
    "0.3",
    "--threads",
    "1",
)
ALIAS: Final = "fixer"
BASE_ALIAS: Final = "fixer-base"
ASKED: Final = 4


class Stage:
    """A home in a temporary folder, and commands in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.began = time.monotonic()
        self.environment = {**os.environ, "HERDBOOK_HOME": str(folder / "home"), "HERDBOOK_EMBED": "off", "PYTHONUNBUFFERED": "1"}

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "herdbook", *words]

    def run(self, *words: str, ok: bool = True) -> str:
        """One command, shown with what it says; the demo ends where it fails, or where it should have."""
        print(
            f"\n[{time.monotonic() - self.began:4.0f} s] $ herdbook {' '.join(words).replace(str(self.folder), '.')}", flush=True
        )
        done = subprocess.run(self.command(*words), env=self.environment, capture_output=True, text=True, check=False)
        said = (done.stdout + done.stderr).replace(str(self.folder), ".").rstrip()
        print("\n".join(f"  {line}" for line in said.splitlines()[-14:]), flush=True)
        if (done.returncode == 0) != ok:
            raise SystemExit(f"that ended with {done.returncode}")
        return done.stdout

    @contextmanager
    def running(self, *words: str) -> Iterator[str]:
        """A command that stays, from its first line until the block ends."""
        print(f"\n[{time.monotonic() - self.began:4.0f} s] $ herdbook {' '.join(words)} &", flush=True)
        with subprocess.Popen(self.command(*words), env=self.environment, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                if not line:
                    raise SystemExit("that did not start")
                print(f"  {line}", end="", flush=True)
                found = re.search(r"http://[\w.:]+", line)
                if found is None:
                    raise SystemExit("that did not say where it is")
                yield found[0]
            finally:
                process.terminate()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="herdbook-train-") as folder:
        stage = Stage(Path(folder))
        (stage.folder / "home").mkdir()
        stage.run("demo", "--provider", os.environ.get("HERDBOOK_DEMO_PROVIDER", "auto"))
        print(f"\nA fleet of {fleet.RUNS} runs over three services fills the same record ...", flush=True)
        fleet.fill(stage.folder / "home")
        play(stage)
        print(f"\nAll of it in {time.monotonic() - stage.began:.0f} s.")


def play(stage: Stage) -> None:
    job = stage.folder / "job"
    stage.run("models", "train", str(job), "--entity", "fleet", *TRAINING)
    stage.run("models", "evaluate", str(job), "mine", "--threads", "1")
    (model,) = json.loads(stage.run("models", "ls", "--json"))["models"]
    with stage.running("models", "serve", "laptop", "--threads", "1"):
        for alias in (ALIAS, BASE_ALIAS):
            stage.run("models", "route", alias, "laptop", str(job / "base"))
        stage.run("models", "promote", model["artefact"], ALIAS, "laptop", str(job / "model"), "--why", "it beats all three")
        with stage.running("serve", "--port", "0") as url:
            ask(url, held_out(job / "data"))
        stage.run("models", "compare", ALIAS)
        stage.run("models", "rollback", ALIAS, "--why", "the demo is over")


def ask(url: str, acts: list[Act]) -> None:
    """An unmodified client, a few held-out tasks, two models."""
    from openai import OpenAI

    chosen = [act for act in acts if act.good and act.prompt[-1]["role"] == "user"][:ASKED]
    right = dict.fromkeys((ALIAS, BASE_ALIAS), 0)
    with OpenAI(base_url=f"{url}/v1", api_key="none") as client:
        for act in chosen:
            print(f"\n{act.prompt[-1]['content']!r} at {act.entity}\n  what succeeded: {act.call}", flush=True)
            for alias in right:
                said = called(client, alias, act)
                right[alias] += said == act.call
                print(f"  {alias:<14}: {said}", flush=True)
    print("\nright: " + ", ".join(f"{alias} {count} of {len(chosen)}" for alias, count in right.items()))
    if right[ALIAS] <= right[BASE_ALIAS]:
        raise SystemExit("the trained model has to be right where the base is wrong")


def called(client: Any, alias: str, act: Act) -> dict[str, Any] | None:
    answer = client.chat.completions.create(model=alias, messages=act.prompt, tools=act.tools, temperature=0, max_tokens=64)
    calls = answer.choices[0].message.tool_calls
    return {"name": calls[0].function.name, "arguments": json.loads(calls[0].function.arguments)} if calls else None


if __name__ == "__main__":
    main()
