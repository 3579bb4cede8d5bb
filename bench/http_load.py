"""One closed-loop HTTP load for every server that is measured: N keep-alive connections, each with one request in flight.

One thread over a selector, answers kept as bytes and read only afterwards: the client takes some 20 us of CPU a request, so that
even two cores measure the server. Loads end by count or by time. Only loopback and unix sockets are dialled.
"""

from __future__ import annotations

import re
import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

Address = int | str  # a port on loopback, or the path of a unix socket

CONTENT_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
SILENCE_SECONDS_MAX = 60.0


class LoadFailed(Exception):
    """The server hung up, stayed silent, or answered in a way this client does not read."""


@dataclass(slots=True)
class Connection:
    """One client: what it still has to ask, and what it was answered."""

    requests: Iterator[bytes]
    socket: socket.socket
    received: bytearray = field(default_factory=bytearray)
    asked_at: float = 0.0
    seconds: list[float] = field(default_factory=list)  # of each answer
    statuses: list[int] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Load:
    """What one load came to."""

    seconds: float
    connections: tuple[Connection, ...]

    @property
    def answers(self) -> int:
        return sum(len(connection.seconds) for connection in self.connections)

    @property
    def per_second(self) -> float:
        return self.answers / self.seconds

    def refused(self) -> list[tuple[int, bytes]]:
        """Every answer that is not a 2xx."""
        return [
            (status, body)
            for connection in self.connections
            for status, body in zip(connection.statuses, connection.bodies, strict=True)
            if not 200 <= status < 300
        ]


def post(path: str, body: bytes, headers: Sequence[tuple[str, str]] = ()) -> bytes:
    """The bytes of one JSON POST."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def get(path: str) -> bytes:
    """The bytes of one GET."""
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def dial(address: Address) -> socket.socket:
    """A connected, non-blocking socket."""
    if isinstance(address, str):
        connected = socket.socket(socket.AF_UNIX)
        connected.connect(address)
    else:
        connected = socket.create_connection(("127.0.0.1", address))
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected.setblocking(False)
    return connected


def take_answer(received: bytearray) -> tuple[int, bytes] | None:
    """The status and body at the head of the buffer, removed from it; None while it is not all there."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return None
    length = CONTENT_LENGTH.search(received, 0, end)
    if length is None:
        raise LoadFailed(f"an answer without a content-length: {bytes(received[:end])!r}")
    whole = end + 4 + int(length[1])
    if len(received) < whole:
        return None
    status, body = int(received[9:12]), bytes(received[end + 4 : whole])
    del received[:whole]
    return status, body


def drive(address: Address, scripts: Sequence[Iterator[bytes]], *, seconds_max: float = SILENCE_SECONDS_MAX) -> Load:
    """Run every script on a connection of its own, at once, until all are through or `seconds_max` have passed."""
    selector = selectors.DefaultSelector()
    connections = tuple(Connection(script, dial(address)) for script in scripts)
    began = time.perf_counter()
    for connection in connections:
        selector.register(connection.socket, selectors.EVENT_READ, connection)
        ask_next(selector, connection, began + seconds_max)
    while selector.get_map():
        ready = selector.select(SILENCE_SECONDS_MAX)
        if not ready:
            raise LoadFailed(f"no answer for {SILENCE_SECONDS_MAX:.0f} s")
        for key, _ in ready:
            hear(selector, key.data, began + seconds_max)
    return Load(time.perf_counter() - began, connections)


def hear(selector: selectors.BaseSelector, connection: Connection, until: float) -> None:
    """Take in what arrived; once an answer is whole, note it and ask the next thing."""
    arrived = connection.socket.recv(65536)
    if not arrived:
        raise LoadFailed(f"the server hung up after {len(connection.seconds)} answers")
    connection.received += arrived
    answer = take_answer(connection.received)
    if answer is None:
        return
    connection.seconds.append(time.perf_counter() - connection.asked_at)
    connection.statuses.append(answer[0])
    connection.bodies.append(answer[1])
    ask_next(selector, connection, until)


def ask_next(selector: selectors.BaseSelector, connection: Connection, until: float) -> None:
    """Send the script's next request, or leave when it is through or time is up."""
    now = time.perf_counter()
    request = next(connection.requests, None) if now < until else None
    if request is None:
        selector.unregister(connection.socket)
        connection.socket.close()
        return
    connection.asked_at = now
    connection.socket.sendall(request)
