"""herdbook itself, through the client object only: a box that reads, writes and claims; a host that attests by the exit code.

Simulated time is handed in. What it thinks of a note is asked with `history`, which is no read.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from bench.fleet.policies.policy import Briefing, Nothing
from bench.fleet.scenario import Scenario
from bench.fleet.world import Note, Run
from herdbook.base.clock import TickClock
from herdbook.base.settings import load
from herdbook.client import Client
from herdbook.service.callers import box_caller, local_caller
from herdbook.service.local import LocalTransport
from herdbook.service.opening import open_service

FLAGS = {"dead_ends": "dead end", "contested": "contested", "entries": ""}


class Herdbook(Nothing):
    """A record of its own in a temporary directory, and a new client for every run's box."""

    def __init__(self, scenario: Scenario, embed: str, *, tuned: dict[str, float | str] | None = None) -> None:
        super().__init__(scenario.tokens)
        self.home = tempfile.TemporaryDirectory(prefix="bench-fleet-")
        home = Path(self.home.name)
        settings = load({"HERDBOOK_HOME": str(home), "HERDBOOK_SYNCHRONOUS": "NORMAL", "HERDBOOK_EMBED": embed})
        self.clock, self.minutes = TickClock(), scenario.minutes
        self.service = open_service(settings, clock=self.clock)
        self.embeds = embed != "off"
        self.host = Client(LocalTransport(self.service, local_caller("host")), agent="host")
        if tuned:
            self.host.call("tune", {"values": tuned})
        self.box: Client = self.host
        self.foreign = 0

    def client(self, box: str, task: str | None = None, identity: str = "fleet") -> Client:
        return Client(LocalTransport(self.service, box_caller(box, identity=identity)), agent="fixer", task=task)

    def brief(self, run: Run) -> Briefing:
        self.clock.tick(seconds=60 * self.minutes)
        self.box = self.client(run.name, run.task)
        while self.embeds and self.host.call("embed", {})["waiting"]:
            pass  # what takes minutes of a fleet's time takes none here: a seed is one world, however busy the machine
        answer = self.box.brief(run.entity.path, task=run.task, tokens=self.tokens_max)
        blocks = ("dead_ends", "entries", "contested")
        return Briefing([note_of(entry, FLAGS[block]) for block in blocks for entry in answer[block]], answer["tokens"])

    def write(self, run: Run, note: Note) -> None:
        keep(self.box, note)

    def plant(self, run: Run, note: Note) -> None:
        """By another box in a session of its own, whose outcomes nobody attests."""
        self.foreign += 1
        other = self.client(f"other-{self.foreign}", identity="fleet" if not note.claims else "intruder")
        keep(other, note)
        if note.claims:
            for _ in range(3):
                other.commit_outcome("success", used=[{"entity": note.entity, "key": note.key}])

    def attempt(self, run: Run, used: list[Note]) -> None:
        self.box.attempt("failure", [place_of(note) for note in used])

    def finish(self, run: Run, result: str, used: list[Note]) -> None:
        self.box.commit_outcome(run.name, result, used=[place_of(note) for note in used])
        self.host.attest(run.name, exit_code=0 if result == "success" else 1)

    def worth(self, note: Note) -> float | None:
        versions = self.host.history(note.entity, note.key)["versions"]
        return float(versions[-1]["evidence"])

    def close(self) -> None:
        self.service.close()
        self.home.cleanup()


def keep(client: Client, note: Note) -> None:
    kind: dict[str, Any] = {"kind": "experience", "worked": False} if note.flag == "dead end" else {}
    client.write(note.entity, note.key, note.value, why=note.why, confidence=note.confidence, **kind)


def note_of(entry: dict[str, Any], flag: str) -> Note:
    return Note(entry["entity"], entry["key"], entry["value"], entry["why"] or "", flag=flag, version=entry["version"])


def place_of(note: Note) -> dict[str, Any]:
    return {"entity": note.entity, "key": note.key, "version": note.version}
