"""A container engine's HTTP interface on its unix socket, as far as boxes need it. Docker speaks it, and so does Podman.

Paths carry no version, so that an engine answers with its own; what is used here has not changed since 2019. Needs no package.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from herdbook.base.errors import Unavailable
from herdbook.boxes.provider import Chunk, Stream

CALL_SECONDS: Final = 60.0
HEAD_BYTES_MAX: Final = 64 * 1024
STREAMS: Final[Mapping[int, Stream]] = {1: "stdout", 2: "stderr"}


class Refused(Exception):
    """The engine understood, and would not."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(f"{said} (status {status})")
        self.status, self.said = status, said


class Connection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("engine", timeout=CALL_SECONDS)
        self.path = path

    def connect(self) -> None:
        self.sock = connected(self.path)


def connected(path: str) -> socket.socket:
    """Raises Unavailable with the system's own words."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(CALL_SECONDS)
    try:
        sock.connect(path)
    except OSError as problem:
        sock.close()
        raise Unavailable(f"the container engine at {path} cannot be reached: {problem.strerror or problem}") from problem
    return sock


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine. Every call is a connection of its own, so threads may share this."""

    socket: str

    def get(self, path: str, **query: object) -> Any:
        return self.call("GET", path, query)

    def post(self, path: str, body: Any = None, **query: object) -> Any:
        return self.call("POST", path, query, body)

    def remove(self, container: str) -> None:
        """Kill and remove. A container that is gone, or that another call is removing, is fine."""
        try:
            self.call("DELETE", f"/containers/{container}", {"force": 1, "v": 1})
        except Refused as refused:
            if refused.status not in (404, 409):
                raise

    def call(self, method: str, path: str, query: Mapping[str, object], body: Any = None) -> Any:
        connection = Connection(self.socket)
        sent = None if body is None else json.dumps(body).encode()
        try:
            connection.request(method, target(path, query), sent, {"Content-Type": "application/json"} if sent else {})
            answer = connection.getresponse()
            return parsed(answer.status, answer.read())
        except (OSError, http.client.HTTPException) as problem:
            raise Unavailable(f"the container engine at {self.socket} broke off: {problem!r}") from problem
        finally:
            connection.close()

    def attach(self, container: str) -> Attached:
        """The streams of a container, from its first byte on if it was not started yet."""
        sock = connected(self.socket)
        path = target(f"/containers/{container}/attach", {"stream": 1, "stdin": 1, "stdout": 1, "stderr": 1})
        try:
            sock.sendall(f"POST {path} HTTP/1.1\r\nHost: engine\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n".encode())
            head, rest = read_head(sock)
        except OSError as problem:
            sock.close()
            raise Unavailable(f"the container engine at {self.socket} broke off: {problem}") from problem
        status = int(head.split(maxsplit=2)[1])
        if status not in (101, 200):
            sock.close()
            raise Refused(status, rest.decode(errors="replace").strip()[-300:])
        sock.settimeout(None)  # a program may be silent for as long as it has
        return Attached(sock, rest)


class Attached:
    """A program's streams through the engine: frames of a kind, a length and that many bytes."""

    def __init__(self, sock: socket.socket, rest: bytes) -> None:
        self._sock, self._rest = sock, bytearray(rest)

    def send(self, data: bytes) -> None:
        self._sock.sendall(data)

    def __iter__(self) -> Iterator[Chunk]:
        while self._fill(8):
            kind, size = self._rest[0], int.from_bytes(self._rest[4:8], "big")
            del self._rest[:8]
            if not self._fill(size):
                return
            data = bytes(self._rest[:size])
            del self._rest[:size]
            if kind in STREAMS and data:
                yield STREAMS[kind], data

    def _fill(self, size: int) -> bool:
        """Have this many bytes; False at the end, also when the other side is cut off."""
        while len(self._rest) < size:
            try:
                data = self._sock.recv(256 * 1024)
            except OSError:
                return False  # because an engine that died, or a `cut`, is an end as well: how it ended is asked of the engine
            if not data:
                return False
            self._rest += data
        return True

    def cut(self) -> None:
        """End the reading from another thread."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # because it has ended already

    def close(self) -> None:
        self._sock.close()


def target(path: str, query: Mapping[str, object]) -> str:
    texts = {name: json.dumps(value) if isinstance(value, dict | list) else value for name, value in query.items()}
    return f"{path}?{urlencode(texts)}" if texts else path


def parsed(status: int, body: bytes) -> Any:
    try:
        answer = json.loads(body) if body.strip() else None
    except ValueError:
        answer = body.decode(errors="replace")
    if status >= 300:
        said = answer.get("message") if isinstance(answer, dict) else answer
        raise Refused(status, str(said or "no reason given").strip()[-500:])
    return answer


def read_head(sock: socket.socket) -> tuple[str, bytes]:
    """The head of an answer, and what of its body came along."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = sock.recv(4096)
        if not more or len(data) > HEAD_BYTES_MAX:
            raise OSError("it did not answer in HTTP")
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    return head.decode("latin-1"), rest


def sockets(kind: str, environ: Mapping[str, str] = os.environ) -> Sequence[str]:
    """Where an engine of this kind may listen: where its own variable says, else its usual places, the system's first."""
    variable = {"docker": "DOCKER_HOST", "podman": "CONTAINER_HOST"}[kind]
    told = environ.get(variable, "")
    if told:
        return [told.removeprefix("unix://")] if told.startswith("unix://") else []
    runtime, home = environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}"), os.path.expanduser("~")
    usual = {
        "docker": ("/var/run/docker.sock", f"{runtime}/docker.sock", f"{home}/.docker/run/docker.sock"),
        "podman": ("/run/podman/podman.sock", f"{runtime}/podman/podman.sock"),
    }
    return [path for path in usual[kind] if os.path.exists(path)]
