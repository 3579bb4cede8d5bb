"""Model servers of our own, which answer what a test set, and the real client libraries before them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class ModelServer:
    """Answers each request with the next of `answers`: an object, or a list of events to be streamed."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.asked: list[dict[str, Any]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                server.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                answer = server.answers.pop(0)
                streamed = isinstance(answer, list)
                body = "".join(map(event, answer)) if streamed else json.dumps(answer)
                self.send_response(200)
                self.send_header("content-type", "text/event-stream" if streamed else "application/json")
                self.send_header("content-length", str(len(body.encode())))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *args: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


def event(told: Any) -> str:
    if isinstance(told, str):
        return f"data: {told}\n\n"
    name = f"event: {told['type']}\n" if "type" in told else ""
    return f"{name}data: {json.dumps(told)}\n\n"


@pytest.fixture
def model() -> Iterator[ModelServer]:
    found = ModelServer()
    yield found
    found.http.shutdown()
    found.http.server_close()
