"""A small platform: releases a revision of the toy as Cloud Run does. The old one serves until the new one answers its probe.

Its front door counts who asks for /health, which is green all the while: that is why nobody should ask it.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from examples.watch_demo.repository import Repository

PROBE_FAILED = (
    'Default STARTUP TCP probe failed 1 time consecutively for container "{name}" on port {port}. The instance was not started.'
)


class Platform:
    """One service."""

    def __init__(self, name: str, repository: Repository, folder: Path) -> None:
        self.name, self.repository, self.folder = name, repository, folder
        self.log, self.state = folder / f"{name}.jsonl", folder / f"{name}.state.json"
        self.serving, self.port, self.count = "", 0, 0
        self.health: list[int] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        self.threads: list[threading.Thread] = []
        outer = self

        class Front(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, data = outer.forwarded(self.path)
                if self.path == "/health":
                    outer.health.append(status)
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *words: Any) -> None:
                """Silent."""

        self.front = ThreadingHTTPServer(("127.0.0.1", 0), Front)
        self.url = f"http://127.0.0.1:{self.front.server_address[1]}"
        threading.Thread(target=self.front.serve_forever, daemon=True).start()

    def forwarded(self, path: str) -> tuple[int, bytes]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as problem:
            return problem.code, problem.read()
        except OSError:
            return 503, b"{}"

    def release(self, sha: str, *, pull_seconds: float = 0.0) -> None:
        """Start a revision; with a slow pull its probe fails before it comes up, while the one before serves on."""
        self.count += 1
        revision, port = f"{self.name}-{self.count:05}", free_port()
        self.tell(newest=revision, ready=False)
        if pull_seconds:
            thread = threading.Thread(target=self.slowly, args=(sha, revision, port, pull_seconds))
            thread.start()
            self.threads.append(thread)
        else:
            self.start(sha, revision, port)

    def slowly(self, sha: str, revision: str, port: int, pull_seconds: float) -> None:
        self.write("ERROR", PROBE_FAILED.format(name=self.name, port=port))
        time.sleep(pull_seconds)
        self.start(sha, revision, port)

    def start(self, sha: str, revision: str, port: int) -> None:
        code = self.repository.check_out(sha, self.folder / revision)
        command = [sys.executable, "server.py", str(port), str(self.log), revision]
        self.processes.append(subprocess.Popen(command, cwd=code / "toy"))
        until = time.monotonic() + 30
        while not answers(port):
            assert time.monotonic() < until, f"{revision} does not come up"
            time.sleep(0.02)
        self.port, self.serving = port, revision
        self.tell(newest=revision, ready=True)

    def tell(self, *, newest: str, ready: bool) -> None:
        old = bool(self.serving) and not ready
        found = {
            "serving": self.serving,
            "newest": newest,
            "newest_ready": ready if ready or not old else None,
            "old_serves": old,
        }
        fresh = self.state.with_suffix(".new")
        fresh.write_text(json.dumps(found))
        fresh.rename(self.state)

    def write(self, severity: str, message: str) -> None:
        with self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"time": time.time(), "severity": severity, "message": message}) + "\n")

    def visited(self, path: str = "/search", times: int = 3) -> list[int]:
        """What people do all day."""
        found = []
        for _ in range(times):
            try:
                with urllib.request.urlopen(f"{self.url}{path}", timeout=5) as answer:
                    found.append(answer.status)
            except urllib.error.HTTPError as problem:
                found.append(problem.code)
        return found

    def clear(self) -> None:
        """A new day's log."""
        for thread in self.threads:
            thread.join()
        self.log.write_bytes(b"")

    def close(self) -> None:
        for thread in self.threads:
            thread.join()
        for process in self.processes:
            process.kill()
            process.wait()
        self.front.shutdown()
        self.front.server_close()


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as sock:
        sock.settimeout(1)
        return sock.connect_ex(("127.0.0.1", port)) == 0
