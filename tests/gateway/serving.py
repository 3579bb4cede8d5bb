"""A record, a gateway over a vault, boxes with their sockets, and a listener for passes: all of it real, on this machine."""

from __future__ import annotations

import http.client
import json
import socket
from pathlib import Path
from typing import Any

from herdbook.base import settings
from herdbook.base.clock import SystemClock, TickClock
from herdbook.base.http_edge import Edge
from herdbook.base.http_serve import LoopThread, bind_tcp
from herdbook.gateway.app import GatewayApp
from herdbook.gateway.audit import Audit, lines
from herdbook.gateway.identity import LiveBoxes
from herdbook.gateway.keeping import Gatekeeper
from herdbook.gateway.opening import LIMITS, audit_folder, open_vault
from herdbook.gateway.upstream import Upstream as Pools
from herdbook.record.record import Record
from herdbook.service.callers import Caller, local_caller
from herdbook.service.door import Service
from herdbook.surfaces.rest.box_sockets import BoxSockets
from tests.rest.serving import PATIENCE_SECONDS, Reply

HOST = Caller(1, "host", frozenset({"host"}), channel="python", connections=("*",))
SECRET = "canary-Zm9v+/secret~1234567890=="


class Connection(http.client.HTTPConnection):
    """To a port, or to a unix socket."""

    def __init__(self, address: Any) -> None:
        super().__init__("localhost", timeout=PATIENCE_SECONDS)
        self.address = address

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_INET if isinstance(self.address, tuple) else socket.AF_UNIX)
        self.sock.settimeout(PATIENCE_SECONDS)
        self.sock.connect(self.address)


class World:
    """Everything there is, in one folder."""

    def __init__(self, folder: Path, *, clock: TickClock | None = None, pools: Pools | None = None) -> None:
        self.settings = settings.load({"HERDBOOK_HOME": str(folder)})
        self.clock = clock or SystemClock()
        self.pools = pools
        self.service = Service(Record.open(self.settings.record, key_file=self.settings.seal_key_file), self.clock)
        self.keeper = Gatekeeper.of(self.settings, by="operator")
        self.sockets = BoxSockets(self.service, identity="operator", gateway=self.open_app)
        self.paths: dict[str, str] = {}
        self.thread = LoopThread("test-gateway")
        self.app = self.open_app(self.as_host)
        self.sock = bind_tcp("127.0.0.1", 0)
        self.listener = self.thread.call(Edge(self.app, limits=LIMITS).listen(self.sock, state=self.app.open_state()))

    def as_host(self, verb: str, fields: dict[str, Any]) -> dict[str, Any]:
        return dict(self.service.perform(HOST, verb, fields))

    def open_app(self, call: Any) -> GatewayApp:
        log = Audit(audit_folder(self.settings), self.clock)
        return GatewayApp(open_vault(self.settings), log, LiveBoxes(call, self.clock), upstream=self.pools)

    def close(self) -> None:
        self.sockets.close()
        self.thread.call(self.listener.close())
        self.thread.call(self.app.close())
        self.thread.stop()
        self.service.close()

    # --- boxes ---

    def box(self, name: str, *, label: str = "ci", lease_seconds: int = 120) -> str:
        """A live box with its socket; what runs in it would have that path and nothing else."""
        self.as_host(
            "box_open",
            {
                "box": name, "provider": "bubblewrap", "isolation": "namespace", "label": label, "owner": "test",
                "lease_seconds": lease_seconds,
            },
        )  # fmt: skip
        path, _ = self.sockets.open(name)
        self.paths[name] = str(path)
        return name

    def end(self, box: str) -> None:
        self.as_host("box_close", {"box": box})

    def token(self, box: str, **fields: Any) -> str:
        return str(self.service.perform(HOST, "box_pass", {"box": box, **fields})["token"])

    # --- calls ---

    def ask(self, box: str, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """As what runs in that box."""
        return asked(self.paths[box], method, path, body, headers)

    def ask_outside(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """As anybody who can reach the gateway's port."""
        return asked(self.sock.getsockname(), method, path, body, headers)

    def audit(self) -> list[dict[str, Any]]:
        return lines(audit_folder(self.settings))

    def connect(
        self, name: str, base: str, *, allow: tuple[str, ...] = ("* /**",), label: str | None = "ci", **more: Any
    ) -> None:
        """A connection to a service on this machine, granted to a label."""
        fields = {"credential": {"type": "bearer"}, "secret": SECRET, "private": True, **more}
        self.keeper.add(name, base=base, allow=allow, **fields)
        if label is not None:
            self.keeper.grant(name, label=label)


def asked(address: Any, method: str, path: str, body: Any, headers: dict[str, str]) -> Reply:
    connection = Connection(address)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
    finally:
        connection.close()


def raw(address: Any, data: bytes) -> bytes:
    """These bytes as they are; what came back until the end."""
    with socket.socket(socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE_SECONDS)
        sock.connect(address)
        sock.sendall(data)
        found = b""
        while piece := sock.recv(65_536):
            found += piece
        return found


def code(reply: Reply) -> str:
    return str(json.loads(reply.body)["error"]["code"])


OPERATOR = local_caller("operator")
