"""Other products as policies: their published packages, unchanged, in an environment and a process of their own.

Each is set up once for a user, which needs a package registry; where it cannot be, the policy says so and is left out. They get
the embedder that herdbook has, so that what differs is their rules.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.fleet.likeness import Likeness
from bench.fleet.policies.policy import Briefing, Nothing, packed
from bench.fleet.world import COMMON, Note, Run
from bench.servers import Unavailable

WORKERS = Path(__file__).parent.parent / "workers"


class Foreign(Nothing):
    """One worker, spoken to in lines of JSON; it may ask for an embedding before it answers."""

    packages: tuple[str, ...]
    worker: str

    def __init__(self, tokens_max: int, likeness: Likeness) -> None:
        super().__init__(tokens_max)
        if not likeness.embeds:
            raise Unavailable("it needs an embedder: pip install 'herdbook[embed]'")
        self.likeness = likeness
        self.home = tempfile.TemporaryDirectory(prefix="bench-fleet-")
        command = [str(installed(self.packages) / "bin" / "python"), str(WORKERS / self.worker), self.home.name]
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": self.home.name}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True
        )

    def ask(self, do: str, **fields: Any) -> Any:
        """One request, with the embeddings it asks for on the way."""
        self.tell({"do": do, **fields})
        while True:
            line = self.process.stdout.readline() if self.process.stdout else ""
            if not line:
                raise Unavailable(f"its worker ended with {self.process.wait()}")
            answer = json.loads(line)
            if not (isinstance(answer, dict) and "embed" in answer):
                return answer
            self.tell(self.likeness.vector(answer["embed"]))

    def tell(self, what: Any) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()

    def close(self) -> None:
        if self.process.stdin:
            self.process.stdin.close()
        self.process.wait(timeout=30)
        self.home.cleanup()


class Amfs(Foreign):
    """AMFS by its SDK: retrieve, write, commit_outcome with what was used."""

    packages = ("amfs==0.5.42",)
    worker = "amfs_worker.py"

    def brief(self, run: Run) -> Briefing:
        self.ask("begin", agent=run.name)
        found = self.ask("brief", paths=[run.entity.path, COMMON], task=run.task)
        return packed((note_of(each["entity"], each["key"], each["value"]) for each in found), self.tokens_max)

    def write(self, run: Run, note: Note) -> None:
        value = {"value": note.value, "why": note.why}
        self.ask("write", entity=note.entity, key=note.key, value=value, confidence=note.confidence)

    def finish(self, run: Run, result: str, used: list[Note]) -> None:
        keys = [f"{note.entity}/{note.key}" for note in used]
        self.ask("finish", ref=run.name, type=result, used=keys, task=run.task)

    def worth(self, note: Note) -> float | None:
        found = self.ask("worth", entity=note.entity, key=note.key)["confidence"]
        return None if found is None else float(found)


class Mem0(Foreign):
    """mem0's open source: notes as they are, found by likeness."""

    packages = ("mem0ai==2.2.1",)
    worker = "mem0_worker.py"

    def brief(self, run: Run) -> Briefing:
        found = self.ask("brief", paths=[run.entity.path, COMMON], task=run.task)
        return packed((note_of(each["entity"], each["key"], each) for each in found), self.tokens_max)

    def write(self, run: Run, note: Note) -> None:
        kept = {"entity": note.entity, "key": note.key, "value": note.value, "why": note.why}
        self.ask("write", entity=note.entity, text=note.text, note=kept)


def note_of(entity: str, key: str, kept: dict[str, Any]) -> Note:
    return Note(entity, key, kept["value"], kept["why"])


def installed(packages: tuple[str, ...]) -> Path:
    """A virtual environment with these packages, made once for a user and kept."""
    place = Path(tempfile.gettempdir()) / f"herdbook-bench-{os.getuid()}" / "-".join(packages).replace("==", "-")
    if (place / "complete").exists() and place.stat().st_uid == os.getuid():
        return place
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(f"its packages cannot be installed: {done.stderr.strip().splitlines()[-1:]}")
    (place / "complete").touch()
    return place
