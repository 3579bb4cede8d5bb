"""A real server on a real socket in a background thread, and clients that may misbehave."""

from __future__ import annotations

import http.client
import json
import select
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from herdbook.base.clock import SystemClock
from herdbook.base.http_edge import Edge, EdgeLimits, Listener
from herdbook.base.http_serve import LoopThread, bind_tcp, bind_unix
from herdbook.record.record import Record
from herdbook.service.door import Service
from herdbook.surfaces.rest.app import Mount, RestApp
from herdbook.surfaces.rest.auth import door
from herdbook.surfaces.rest.pages import MakeWeb
from herdbook.surfaces.rest.spans import RequestSpans

KEY = "a-key-of-enough-length"
PATIENCE_SECONDS = 20.0
ENTRY = {"entity": "acme/ci", "key": "retries"}

# Verbs that are refused in a small story: they need what a fit over many runs leaves, and their own tests make that.
NEED_A_FIT = frozenset({"promote", "rollback", "model_promote", "model_rollback"})


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        found = json.loads(self.body)
        assert isinstance(found, dict)
        return found

    @property
    def code(self) -> str:
        """The error's code; that the shape is the documented one is checked on the way."""
        error = self.json["error"]
        assert {"code", "message", "retry"} <= set(error), error
        assert isinstance(error["message"], str), error
        assert len(error["message"]) > 10, error
        return str(error["code"])


def open_service(folder: Path) -> Service:
    return Service(Record.open(folder / "record.db", key_file=folder / "seal.key"), SystemClock())


class Server:
    """One served service. `stop` is the graceful stop that `herdbook serve` makes."""

    def __init__(
        self,
        service: Service,
        sock: socket.socket,
        *,
        key: str | None,
        limits: EdgeLimits | None,
        waiting_max: int,
        mcp: Mount | None = None,
        spans: RequestSpans | None = None,
        upstreams: Path | None = None,
        web: MakeWeb | None = None,
    ) -> None:
        self.app = RestApp(service, waiting_max=waiting_max, mcp=mcp, spans=spans, upstreams=upstreams, web=web)
        self.edge = Edge(self.app, limits=limits, on_refusal=self.app.metrics.refused)
        self.thread = LoopThread("test-server")
        self.address = sock.getsockname()
        self.family = sock.family
        self.key = key
        state = {"door": door(service, key, identity="tester", on_unix=sock.family == socket.AF_UNIX)}
        self.listener: Listener = self.thread.call(self.edge.listen(sock, state=state))

    def stop(self) -> None:
        self.thread.call(self.listener.close())
        self.thread.call(self.app.close())
        self.thread.stop()

    def dial(self) -> socket.socket:
        sock = socket.socket(self.family, socket.SOCK_STREAM)
        sock.settimeout(PATIENCE_SECONDS)
        sock.connect(self.address)
        return sock

    def connect(self) -> Wire:
        return Wire(self.dial())

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """One request on a connection of its own."""
        connection = UnixConnection(self) if self.family == socket.AF_UNIX else http.client.HTTPConnection(*self.address)
        connection.timeout = PATIENCE_SECONDS
        sent = {"Content-Type": "application/json"} if body is not None else {}
        sent |= {"Authorization": f"Bearer {self.key}"} if self.key else {}
        try:
            connection.request(method, path, body, {**sent, **(headers or {})})
            answer = connection.getresponse()
            return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def post(self, verb: str, fields: Any, **headers: str) -> Reply:
        return self.ask("POST", f"/v1/{verb}", json.dumps(fields).encode(), headers=headers)

    def get(self, path: str, **headers: str) -> Reply:
        return self.ask("GET", path, headers=headers)

    def raw(self, data: bytes) -> Reply | None:
        """Send these bytes as they are; None when the connection closed without an answer."""
        with self.connect() as wire:
            wire.send(data)
            return wire.reply()


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, server: Server) -> None:
        super().__init__("localhost")
        self.server = server

    def connect(self) -> None:
        self.sock = self.server.dial()


class Wire:
    """One connection, byte by byte."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.file = sock.makefile("rb")

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
        self.sock.close()

    def send(self, data: bytes) -> bool:
        """Whether all of it was taken; a server may answer and close before."""
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def answered(self, *, within_seconds: float = 0) -> bool:
        """Whether there is anything to read, be it the end."""
        return bool(select.select([self.sock], [], [], within_seconds)[0])

    def reply(self) -> Reply | None:
        """The next answer, or None when the connection closed without one."""
        try:
            line = self.file.readline()
            if not line:
                return None
            headers = {name.lower(): value for name, value in http.client.parse_headers(self.file).items()}
            return Reply(int(line.split()[1]), headers, self.file.read(int(headers["content-length"])))
        except ConnectionResetError:
            return None

    def next(self) -> Reply:
        reply = self.reply()
        assert reply is not None, "the connection closed without an answer"
        return reply

    def drip(self, byte: bytes) -> Reply | None:
        """Send one byte at a time until the server says something."""
        while not self.answered(within_seconds=0.02):
            self.send(byte)
        return self.reply()


@contextmanager
def serving(
    service: Service,
    *,
    key: str | None = None,
    unix: Path | None = None,
    limits: EdgeLimits | None = None,
    waiting_max: int = 4_096,
    mcp: Mount | None = None,
    spans: RequestSpans | None = None,
    upstreams: Path | None = None,
    web: MakeWeb | None = None,
) -> Iterator[Server]:
    sock = bind_unix(str(unix)) if unix else bind_tcp("127.0.0.1", 0)
    server = Server(
        service, sock, key=key, limits=limits, waiting_max=waiting_max, mcp=mcp, spans=spans, upstreams=upstreams, web=web
    )
    try:
        yield server
    finally:
        if server.thread.thread.is_alive():
            server.stop()
