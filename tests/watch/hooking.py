"""A dispatcher on a real socket over a real record, and senders that sign as the real ones do."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from herdbook.base.clock import Clock, SystemClock
from herdbook.base.http_edge import Edge, EdgeLimits
from herdbook.base.http_serve import LoopThread, bind_tcp
from herdbook.client import Client
from herdbook.record.record import Record
from herdbook.service.callers import local_caller
from herdbook.service.door import Service
from herdbook.service.local import LocalTransport
from herdbook.watch.config import Config, Deploy
from herdbook.watch.config import Service as Watched
from herdbook.watch.dispatch import BODY_BYTES_MAX, Dispatch
from herdbook.watch.queue import Queue, RecordQueue

SECRET = b"It's a Secret to Everybody"
SECRETS = dict.fromkeys(("deploy", "statuspage", "google", "alertmanager", "grafana", "pagerduty", "generic"), SECRET)
CONFIG = Config(
    org="acme",
    directory=Path(),
    deploy=Deploy(repository="acme/app", source="acme/library"),
    services={"api": Watched(name="api", source="file")},
)


def open_service(folder: Path, clock: Clock | None = None) -> Service:
    return Service(Record.open(folder / "record.db", key_file=folder / "seal.key"), clock or SystemClock())


def client_of(service: Service) -> Client:
    return Client(LocalTransport(service, local_caller("watcher")), session="")


def sha_of(n: int) -> str:
    return hashlib.sha1(str(n).encode()).hexdigest()


def deploy_of(n: int, **more: Any) -> bytes:
    shas = {"before": sha_of(n - 1), "after": sha_of(n)}
    return json.dumps({"repositories": {"acme/app": shas, "acme/library": shas}, "services": ["api"], **more}).encode()


def signature(body: bytes, secret: bytes = SECRET) -> dict[str, str]:
    return {"X-Hub-Signature-256": "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()}


def pagerduty(body: bytes, secret: bytes = SECRET) -> dict[str, str]:
    right = hmac.new(secret, body, hashlib.sha256).hexdigest()
    return {"X-PagerDuty-Signature": f"v1={'0' * 64},v1={right}"}


def bearer(secret: bytes = SECRET) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret.decode()}"}


class Hooks:
    """The dispatcher's address, and one call on a connection of its own."""

    def __init__(self, app: Dispatch) -> None:
        self.app = app
        self.sock = bind_tcp("127.0.0.1", 0)
        self.address = self.sock.getsockname()
        self.thread = LoopThread("test-dispatch")
        self.listener = self.thread.call(Edge(app, limits=EdgeLimits(body_bytes=BODY_BYTES_MAX)).listen(self.sock))

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection(self.address[0], self.address[1], timeout=30)
        try:
            connection.request("POST", path, body, {"Content-Type": "application/json", **headers})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def deploy(self, body: bytes) -> tuple[int, dict[str, Any]]:
        return self.post("/hooks/deploy", body, signature(body))

    def close(self) -> None:
        self.thread.call(self.listener.close())
        self.thread.call(self.app.close())
        self.thread.stop()


@contextmanager
def dispatching(
    book: Client, *, config: Config = CONFIG, queue: Queue | None = None, clock: Clock | None = None
) -> Iterator[Hooks]:
    hooks = Hooks(Dispatch(config, book, queue or RecordQueue(book), secrets=SECRETS, clock=clock or SystemClock()))
    try:
        yield hooks
    finally:
        hooks.close()
