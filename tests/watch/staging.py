"""A worker with a real record, real boxes and the real gateway, over a log that a test writes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from herdbook.base import settings
from herdbook.boxes.providers import choose
from herdbook.client import Client
from herdbook.service.callers import local_caller
from herdbook.service.local import LocalTransport
from herdbook.service.opening import local_identity
from herdbook.watch.boxes import LABELS, Boxes
from herdbook.watch.config import Config, Deploy, Service
from herdbook.watch.gates import should_draft_pr
from herdbook.watch.queue import Job, RecordQueue
from herdbook.watch.worker import Worker
from herdbook.wiring import BoxWiring
from tests.watch.hooking import sha_of

ENTITY = "acme/deploy"
PROBE = 'Default STARTUP TCP probe failed 1 time consecutively for container "api" on port 8080. The instance was not started.'
LEAST = "\n".join(
    [
        "Exception on /search [GET]",
        "Traceback (most recent call last):",
        '  File "/app/search.py", line 9, in search',
        "AssertionError: search returned the least trusted entry first",
    ]
)


@dataclass
class Stage:
    """Everything a watch needs, in one folder."""

    home: Path
    wiring: BoxWiring
    config: Config
    on_step: Callable[[str], None] = lambda step: None
    closers: list[Callable[[], None]] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return self.home / "api.jsonl"

    def book(self) -> Client:
        return self.wiring.open_record()

    def sit(self, task: str) -> Client:
        """A person, in a session of their own."""
        caller = local_caller(local_identity(), channel="cli")
        return Client(LocalTransport(self.wiring.service, caller), agent="a person", task=task)

    def logged(self, *texts: str, level: str = "ERROR", at: float | None = None) -> None:
        with self.log.open("a", encoding="utf-8") as file:
            for text in texts:
                file.write(json.dumps({"time": at or time.time(), "severity": level, "message": text}) + "\n")

    def revisions(self, **state: Any) -> None:
        (self.home / "api.state.json").write_text(json.dumps(state))

    def worker(self, name: str = "w1", *, lease_seconds: int = 60) -> Worker:
        provider = choose(state_dir=self.wiring.boxes_dir)
        boxes = Boxes(self.book(), provider, self.wiring.open_socket)
        self.closers.append(boxes.close)
        return Worker(name, self.config, self.book(), boxes, should_draft_pr, on_step=self.on_step, lease_seconds=lease_seconds)

    def deploy(self, n: int, **shas: str) -> str:
        """Put a deploy in the queue, as the dispatcher would."""
        pair = {"before": sha_of(n - 1), "after": sha_of(n), **shas}
        key = f"deploy-{pair['after'][:12]}"
        body = {"kind": "deploy", "repositories": {"acme/app": pair}, "services": ["api"]}
        RecordQueue(self.book()).put(Job(key=key, body=body))
        return key

    def watched(self, key: str) -> dict[str, Any]:
        """Work until this job is done: its result."""
        worker = self.worker()
        while worker.once():
            pass
        [job] = RecordQueue(self.book()).jobs(key=key)
        assert "done" == job["state"], job
        result: dict[str, Any] = job["result"]
        return result

    def entry(self, key: str) -> dict[str, Any]:
        return self.book().read(ENTITY, key)

    def boxes_left(self) -> list[str]:
        provider = choose(state_dir=self.wiring.boxes_dir)
        rows = [row["box"] for label in LABELS for row in self.book().box_list(label=label, live=True, limit=100)["boxes"]]
        return rows + [box.id for label in LABELS for box in provider.list(label)]


def config_of(home: Path, **connections: str) -> Config:
    service = Service(name="api", source="file", options={"path": str(home / "api.jsonl"), "state": str(home / "api.state.json")})
    deploy = Deploy(repository="acme/app", watch_seconds=0.8, poll_seconds=0.1, budget_seconds=300)
    return Config(org="acme", directory=home, deploy=deploy, services={"api": service}, connections=connections)


@contextmanager
def staging(home: Path, *, record: str = "", **connections: str) -> Iterator[Stage]:
    """`record` is the address of a PostgreSQL database; without one it is a file."""
    home.mkdir(parents=True, exist_ok=True)
    found = settings.load({"HERDBOOK_HOME": str(home / "herdbook"), **({"HERDBOOK_RECORD": record} if record else {})})
    wiring = BoxWiring(replace(found))
    stage = Stage(home, wiring, config_of(home, **connections))
    try:
        yield stage
    finally:
        for close in stage.closers:
            close()
        wiring.close()
