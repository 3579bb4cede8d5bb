"""A chat's webhook: keeps what is posted and answers `ok`, as Slack does; or an error, as often as it is told to."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Chat:
    """`failing` is how many posts are answered with an error first."""

    def __init__(self, secret_path: str) -> None:
        self.texts: list[str] = []
        self.failing = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                wrong = self.path.rstrip("/") != secret_path
                status, said = (404, b"no_team") if wrong else (200, b"ok")
                if outer.failing > 0:
                    outer.failing -= 1
                    status, said = 500, b"server_error"
                if status == 200:
                    outer.texts.append(body["text"])
                self.send_response(status)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *words: Any) -> None:
                """Silent."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
