"""The other end of the wire: a tiny HTTP server over TCP or a unix socket. It keeps what it is told and misbehaves on request."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

ERROR = {"code": "invalid_value", "message": "that is not a value: send another", "retry": False, "field": "value"}


class Peer:
    """`plan` says how to treat the next requests, one word each; without a word a request is answered as it should be."""

    def __init__(self, where: str | Path | int = 0, *, prefix: str = "") -> None:
        self.prefix = prefix
        self.calls: list[tuple[str, dict[str, Any]]] = []  # every request that arrived, in order
        self.headers: list[dict[str, str]] = []
        self.connections: list[socket.socket] = []
        self.performed: list[tuple[str, str]] = []  # (verb, id) of what was done, once per id
        self.first: dict[str, dict[str, Any]] = {}
        self.plan: list[str] = []
        self.refuse: dict[str, dict[str, Any]] = {}  # by entry key or verb
        self.lock = threading.Lock()
        self.released = threading.Event()
        unix = isinstance(where, (str, Path))
        self.server: Any = TcpServer(("127.0.0.1", where), Handler) if isinstance(where, int) else UnixServer(str(where), Handler)
        vars(self.server)["peer"] = self
        self.url = f"unix:{where}" + (f":{prefix}" if prefix else "") if unix else f"http://127.0.0.1:{self.port}{prefix}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    @property
    def verbs(self) -> list[str]:
        return [verb for verb, _ in self.calls]

    def fields(self, verb: str) -> dict[str, Any]:
        return next(fields for called, fields in reversed(self.calls) if called == verb)

    def perform(self, verb: str, fields: dict[str, Any]) -> dict[str, Any]:
        with self.lock:
            asks = verb in ("brief", "read")
            known = None if asks else fields.get("request_id") or fields.get("ref") or fields.get("session")
            if known and verb + known in self.first:
                return self.first[verb + known]
            self.performed.append((verb, str(known)))
            answer = {"verb": verb, "n": len(self.performed), "session": fields.get("session"), "markdown": f"# {verb}\n"}
            return self.first.setdefault(verb + known, answer) if known else answer

    def cut(self) -> None:
        """Close every open connection, as a server does with idle ones."""
        while self.connections:
            with suppress(OSError):
                self.connections.pop().shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        self.cut()


class TcpServer(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64


class UnixServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.peer: Peer = self.server.peer  # type: ignore[attr-defined]
        self.peer.connections.append(self.request)

    def handle(self) -> None:
        with suppress(OSError, ValueError):
            super().handle()

    def log_message(self, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        peer = self.peer
        word = peer.plan.pop(0) if peer.plan else "answer"
        if word == "early":
            self.refuse_early()
            return
        fields = json.loads(self.rfile.read(int(self.headers["content-length"])))
        verb = self.path.removeprefix(f"{peer.prefix}/v1/")
        peer.calls.append((verb, fields))
        peer.headers.append({name.lower(): value for name, value in self.headers.items()})
        if word == "drop":
            self.request.shutdown(socket.SHUT_RDWR)
            return
        if word == "hang":
            peer.released.wait(30)
            return
        if word.isdigit():
            code, details = ("busy", {"retry": True}) if int(word) in (429, 503) else ("broken", {"retry": False})
            self.send(int(word), {"error": {"code": code, "message": "not now", **details}})
            return
        refused = peer.refuse.get(fields.get("key", verb))
        if refused:
            self.send(400, {"error": refused})
            return
        answer = peer.perform(verb, fields)
        getattr(self, word)(answer)

    def send(self, status: int, answer: object, **headers: str) -> None:
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def answer(self, answer: object) -> None:
        self.send(200, answer)

    def lose(self, answer: object) -> None:
        """Done, but the reply never arrives."""
        self.request.shutdown(socket.SHUT_RDWR)

    def halve(self, answer: object) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        self.request.shutdown(socket.SHUT_RDWR)

    def later(self, answer: object) -> None:
        self.send(503, {"error": {"code": "busy", "message": "not now", "retry": True}}, Retry_After="1")

    def much_later(self, answer: object) -> None:
        self.send(429, {"error": {"code": "busy", "message": "not now", "retry": True}}, Retry_After="3600")

    def chunk(self, answer: object) -> None:
        data = json.dumps(answer).encode()
        pieces = b"".join(b"%x;note=1\r\n%s\r\n" % (len(part), part) for part in (data[:7], data[7:]))
        head = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.wfile.write(head + pieces + b"0\r\nTrailer: x\r\n\r\n")

    def trickle(self, answer: object) -> None:
        """A byte now and then, for ever: each arrives in time, the answer never does."""
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        with suppress(OSError):
            while not self.peer.released.is_set():
                self.wfile.write(b"x")
                time.sleep(0.02)
        self.close_connection = True

    def close_after(self, answer: object) -> None:
        self.send(200, answer, Connection="close")
        self.close_connection = True

    def page(self, answer: object) -> None:
        self.send(200, b"<html>please log in</html>")

    def missing_page(self, answer: object) -> None:
        self.send(404, b"<html>no such page</html>")

    def gateway(self, answer: object) -> None:
        self.send(502, b"<html>bad gateway</html>")

    def redirect(self, answer: object) -> None:
        self.send(307, b"", Location="http://127.0.0.1:1/")

    def ssh(self, answer: object) -> None:
        self.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        self.request.shutdown(socket.SHUT_RDWR)

    def say_more(self, answer: object) -> None:
        """An answer, and one that nobody asked for behind it."""
        data = json.dumps(answer).encode()
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data)
        self.wfile.write(head + data + b"HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n" + b'{"verb": "evil"}')

    def refuse_early(self) -> None:
        """Refuse by the length alone, without reading the body."""
        self.send(413, {"error": {"code": "too_large", "message": "send less", "retry": False}}, Connection="close")
        self.close_connection = True
