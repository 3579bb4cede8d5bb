"""Stopping under load: nothing that was acknowledged is lost, and what was accepted is answered."""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from herdbook.base.http_edge import EdgeLimits
from herdbook.service.callers import local_caller
from herdbook.service.door import Service
from tests.rest.serving import ENTRY, Server, open_service, serving

CLIENTS = 8
CALLER = local_caller("tester")


def posted(fields: dict[str, Any]) -> bytes:
    body = json.dumps(fields).encode()
    head = "POST /v1/write HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return (head % len(body)).encode() + body


WRITE = posted({**ENTRY, "value": 1, "why": "because"})


class Writing(threading.Thread):
    """Writes until the server is gone; remembers each id as acknowledged, refused or unknown."""

    def __init__(self, server: Server, number: int, *, enough: threading.Barrier) -> None:
        super().__init__(daemon=True)
        self.server, self.number, self.enough = server, number, enough
        self.acknowledged: list[tuple[str, int]] = []
        self.said: Counter[str] = Counter()

    def run(self) -> None:
        with self.server.connect() as wire:
            for count in range(100_000):
                if count == 20:
                    self.enough.wait()
                request_id = f"{self.number}-{count}"
                fields = {"entity": f"acme/{self.number}", "key": "k", "value": count, "why": "w", "request_id": request_id}
                reply = wire.reply() if wire.send(posted(fields)) else None
                if reply is None:
                    self.said["gone"] += 1
                    return
                self.said[str(reply.status)] += 1
                if reply.status == 200:
                    self.acknowledged.append((request_id, reply.json["version"]))
                if reply.headers.get("connection") == "close":
                    return


def hold(service: Service, gate: threading.Event, reached: threading.Event) -> None:
    """Let commits wait at the gate, as on a slow disk."""
    real = service.commit

    def slow(plans: Any) -> Any:
        reached.set()
        assert gate.wait(30)
        return real(plans)

    service.commit = slow  # type: ignore[method-assign]


def history(service: Service, number: int) -> list[Any]:
    answer = service.perform(CALLER, "history", {"entity": f"acme/{number}", "key": "k"})
    return [version["value"] for version in answer["versions"]]


def test_a_stop_under_load_loses_nothing(tmp_path: Path) -> None:
    """A deployment would lose writes that clients were told are safe."""
    service = open_service(tmp_path)
    enough = threading.Barrier(CLIENTS + 1)
    with serving(service) as server:
        clients = [Writing(server, number, enough=enough) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        enough.wait(timeout=60)
        server.stop()
    for client in clients:
        client.join(timeout=60)
    service.close()
    reopened = open_service(tmp_path)
    for client in clients:
        assert set(client.said) <= {"200", "503", "gone"}, client.said
        kept = history(reopened, client.number)
        assert list(range(len(kept))) == kept, "a gap"
        assert len(client.acknowledged) <= len(kept) <= len(client.acknowledged) + 1, "at most one was not told of"
        for request_id, version in client.acknowledged:
            assert kept[version - 1] == int(request_id.split("-")[1])
    reopened.close()


def test_what_was_accepted_is_answered(service: Service) -> None:
    """A client whose request was whole before the stop would not know what became of it."""
    gate, reached = threading.Event(), threading.Event()
    hold(service, gate, reached)
    with serving(service) as server, server.connect() as wire, server.connect() as idle:
        wire.send(WRITE)
        assert reached.wait(30)
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        assert idle.reply() is None, "an idle connection is closed at once"
        gate.set()
        answer = wire.next()
        stopping.join(timeout=30)
    assert (200, 1, "close") == (answer.status, answer.json["version"], answer.headers["connection"])
    assert 1 == service.perform(CALLER, "read", ENTRY)["value"]


def test_half_a_request_does_not_hold_up_a_stop(service: Service) -> None:
    """One client that sends slowly would keep a server from stopping."""
    with serving(service, limits=EdgeLimits(stop_seconds=0.4)) as server, server.connect() as wire:
        wire.send(WRITE[:-1])
        server.get("/healthz")  # so that the head has arrived
        server.stop()
        answer = wire.next()
    assert (503, "unavailable") == (answer.status, answer.code)


def test_a_client_that_hung_up_was_still_accepted(service: Service) -> None:
    """A client that retries after its own timeout would make a second version, were the first only half done."""
    gate, reached = threading.Event(), threading.Event()
    hold(service, gate, reached)
    with serving(service) as server:
        with server.connect() as wire:
            wire.send(WRITE)
            assert reached.wait(30)
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        gate.set()
        stopping.join(timeout=30)
    assert 1 == service.perform(CALLER, "read", ENTRY)["value"]
