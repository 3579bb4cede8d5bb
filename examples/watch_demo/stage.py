"""Everything a watch needs, real but small, in one folder: record, gateway, dispatcher, worker, boxes.

Beside them a toy, its repository, a fake GitHub, a chat.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from examples.watch_demo.chat import Chat
from examples.watch_demo.github import GitHub
from examples.watch_demo.platform import Platform
from examples.watch_demo.repository import Repository
from herdbook.base import settings
from herdbook.base.clock import SystemClock
from herdbook.base.http_edge import Edge
from herdbook.base.http_serve import LoopThread, bind_tcp
from herdbook.boxes.providers import choose
from herdbook.client import Client
from herdbook.gateway.keeping import Gatekeeper
from herdbook.service.callers import local_caller
from herdbook.service.local import LocalTransport
from herdbook.service.opening import local_identity
from herdbook.watch.boxes import ACTOR, ERRAND, LABELS, Boxes
from herdbook.watch.config import Config, Deploy, Service
from herdbook.watch.dispatch import Dispatch
from herdbook.watch.gates import should_draft_pr
from herdbook.watch.queue import RecordQueue
from herdbook.watch.worker import Worker
from herdbook.wiring import BoxWiring

REPOSITORY, LIBRARY = "acme/app", "acme/library"
ENTITY = "acme/deploy"
SECRET = b"a secret that the workflow and the dispatcher share"
TOKEN, CHAT_PATH = "ghp-of-the-demo-only", "/services/T000/B000/demo-only"
READS = [f"GET /repos/{REPOSITORY}/**", f"GET /repos/{LIBRARY}/**"]
WRITES = [
    f"GET /repos/{REPOSITORY}/**",
    f"POST /repos/{REPOSITORY}/git/refs",
    f"PUT /repos/{REPOSITORY}/contents/**",
    f"POST /repos/{REPOSITORY}/pulls",
]


@dataclass
class Stage:
    """Opened by `open_stage`, closed by `close`."""

    folder: Path
    repository: Repository
    github: GitHub
    chat: Chat
    platform: Platform
    wiring: BoxWiring
    config: Config
    on_step: Callable[[str], None] = lambda step: None
    closers: list[Callable[[], None]] = field(default_factory=list)

    def book(self) -> Client:
        return self.wiring.open_record()

    def sit(self, task: str) -> Client:
        """A person, in a run of their own."""
        return Client(LocalTransport(self.wiring.service, local_caller(local_identity(), channel="cli")), agent="ann", task=task)

    def worker(self, name: str = "worker-1") -> Worker:
        provider = choose(state_dir=self.wiring.boxes_dir)
        boxes = Boxes(self.book(), provider, self.wiring.open_socket)
        self.closers.append(boxes.close)
        return Worker(name, self.config, self.book(), boxes, should_draft_pr, on_step=self.on_step)

    def dispatch(self) -> str:
        """The dispatcher's address."""
        book = self.book()
        app = Dispatch(
            self.config, book, RecordQueue(book), secrets={"deploy": SECRET, "alertmanager": SECRET}, clock=SystemClock()
        )
        sock, thread = bind_tcp("127.0.0.1", 0), LoopThread("demo-dispatch")
        listener = thread.call(Edge(app).listen(sock))

        def close() -> None:
            thread.call(listener.close())
            thread.call(app.close())
            thread.stop()

        self.closers.append(close)
        return f"http://127.0.0.1:{sock.getsockname()[1]}"

    def told(self, url: str, before: str, after: str) -> dict[str, Any]:
        """What the workflow's last step posts: both repositories, signed."""
        shas = {"before": before, "after": after}
        body = json.dumps({"repositories": {REPOSITORY: shas, LIBRARY: shas}, "services": ["api"]}).encode()
        signature = "sha256=" + hmac.new(SECRET, body, hashlib.sha256).hexdigest()
        request = urllib.request.Request(
            f"{url}/hooks/deploy", body, {"X-Hub-Signature-256": signature, "Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return {**json.loads(answer.read()), "http": answer.status}

    def watched(self, worker: Worker, key: str, *, path: str = "/search") -> dict[str, Any]:
        """The worker's part, while people use the service."""
        stopped = threading.Event()

        def traffic() -> None:
            while not stopped.wait(0.1):
                self.platform.visited(path, times=1)

        thread = threading.Thread(target=traffic)
        thread.start()
        try:
            while worker.once():
                pass
        finally:
            stopped.set()
            thread.join()
        [job] = RecordQueue(self.book()).jobs(key=key)
        assert job["state"] == "done", job
        result: dict[str, Any] = job["result"]
        return result

    def boxes_left(self) -> list[str]:
        provider = choose(state_dir=self.wiring.boxes_dir)
        rows = [row["box"] for label in LABELS for row in self.book().box_list(label=label, live=True, limit=100)["boxes"]]
        return rows + [box.id for label in LABELS for box in provider.list(label)]

    def close(self) -> None:
        while self.closers:
            self.closers.pop()()
        self.wiring.close()
        self.platform.close()
        self.github.close()
        self.chat.close()


def open_stage(folder: Path, *, watch_seconds: float = 2.5) -> Stage:
    repository = Repository(folder / "app.git")
    github, chat = GitHub(REPOSITORY, repository, TOKEN), Chat(CHAT_PATH)
    platform = Platform("api", repository, folder)
    chosen = settings.load({"HERDBOOK_HOME": str(folder / "herdbook")})
    wiring = BoxWiring(chosen)
    wiring.open_record()
    connect(Gatekeeper.of(chosen, by="the operator"), github.url, chat.url)
    service = Service(name="api", source="file", options={"path": str(platform.log), "state": str(platform.state)})
    deploy = Deploy(repository=REPOSITORY, source=LIBRARY, watch_seconds=watch_seconds, poll_seconds=0.2, budget_seconds=300)
    connections = {"github": "github", "drafts": "github-drafts", "slack": "slack"}
    config = Config(org="acme", directory=folder, deploy=deploy, services={"api": service}, connections=connections)
    return Stage(folder, repository, github, chat, platform, wiring, config)


def connect(keeper: Gatekeeper, github: str, chat: str) -> None:
    """The actor's boxes may read, errands may write: the gateway knows them apart by their labels."""
    keeper.add("github", base=github, credential={"type": "bearer"}, secret=TOKEN, allow=READS, private=True)
    keeper.grant("github", label=ACTOR)
    keeper.add("github-drafts", base=github, credential={"type": "bearer"}, secret=TOKEN, allow=WRITES, private=True)
    keeper.grant("github-drafts", label=ERRAND)
    keeper.add("slack", base=chat, credential={"type": "path"}, secret=CHAT_PATH, allow=["POST /"], private=True)
    keeper.grant("slack", label=ERRAND)
