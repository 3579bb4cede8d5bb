"""The real Prometheus and Alertmanager, firing and resolving into the dispatcher, end to end."""

from __future__ import annotations

import http.client
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from examples.watch_demo.platform import free_port
from herdbook.watch.queue import RecordQueue
from tests.watch import hooking
from tests.watch.hooking import SECRET, dispatching

PATIENCE_SECONDS = 60.0
NEEDED = ("prometheus", "prometheus-alertmanager")  # programs, and Debian's packages of the same names
MISSING = [name for name in NEEDED if shutil.which(name) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"needs apt-get install --no-install-recommends {' '.join(NEEDED)}"),
]


class Sick:
    """A metric that a test turns bad and good."""

    def __init__(self) -> None:
        self.errors = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                data = f"toy_errors {outer.errors}\n".encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *words: Any) -> None:
                """Silent."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()


@contextmanager
def running(folder: Path, name: str, *words: str) -> Iterator[None]:
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen([name, *words], cwd=folder, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=20)


def until(what: str, found: Any) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not found():
        assert time.monotonic() < deadline, f"{what} did not happen within {PATIENCE_SECONDS:.0f} s"
        time.sleep(0.1)


def is_ready(port: int) -> bool:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=2)) as connection:
        try:
            connection.request("GET", "/-/ready")
            with connection.getresponse() as answer:
                return answer.status == 200
        except OSError:
            return False


def configured(folder: Path, *, metric: int, alertmanager: int, hook: str) -> None:
    (folder / "token").write_bytes(SECRET)
    (folder / "alertmanager.yml").write_text(f"""
route: {{receiver: herdbook, group_wait: 0s, group_interval: 1s, repeat_interval: 1h, group_by: [alertname]}}
receivers:
  - name: herdbook
    webhook_configs:
      - url: {hook}/hooks/alert/alertmanager
        send_resolved: true
        http_config: {{authorization: {{type: Bearer, credentials_file: {folder}/token}}}}
""")
    (folder / "rules.yml").write_text("""
groups:
  - name: toy
    interval: 500ms
    rules:
      - alert: ToyErrors
        expr: toy_errors > 0
        labels: {service: api}
        annotations: {summary: the toy errs}
""")
    (folder / "prometheus.yml").write_text(f"""
global: {{scrape_interval: 500ms, evaluation_interval: 500ms}}
rule_files: [rules.yml]
alerting: {{alertmanagers: [{{static_configs: [{{targets: ["127.0.0.1:{alertmanager}"]}}]}}]}}
scrape_configs: [{{job_name: toy, static_configs: [{{targets: ["127.0.0.1:{metric}"]}}]}}]
""")


def test_the_real_ones_fire_and_resolve_into_one_job(tmp_path: Path) -> None:
    """The form we expect of Alertmanager would be one that only our tests send."""
    sick, service = Sick(), hooking.open_service(tmp_path / "record")
    book = hooking.client_of(service)
    answered: list[tuple[str, int]] = []
    with dispatching(book) as hooks:
        real = hooks.app.dispatched

        def spy(hook: str, body: bytes) -> tuple[int, dict[str, Any]]:
            status, answer = real(hook, body)
            answered.append((answer["status"], status))
            return status, answer

        hooks.app.dispatched = spy  # type: ignore[method-assign]
        manager, scraper = free_port(), free_port()
        configured(tmp_path, metric=sick.port, alertmanager=manager, hook=f"http://127.0.0.1:{hooks.address[1]}")
        listen = f"--web.listen-address=127.0.0.1:{manager}"
        with running(
            tmp_path,
            "prometheus-alertmanager",
            "--config.file=alertmanager.yml",
            listen,
            "--cluster.listen-address=",
            "--storage.path=am",
        ):
            until("Alertmanager ready", lambda: is_ready(manager))
            listen = f"--web.listen-address=127.0.0.1:{scraper}"
            with running(tmp_path, "prometheus", "--config.file=prometheus.yml", listen, "--storage.tsdb.path=tsdb"):
                until("Prometheus ready", lambda: is_ready(scraper))
                sick.errors = 3
                until("the alert fires", lambda: answered[:1] == [("accepted", 202)])
                sick.errors = 0
                until("the alert resolves", lambda: ("acknowledged", 200) in answered)
    [job] = RecordQueue(book).jobs()
    assert ("diagnosis-api", "alertmanager", "the toy errs") == (job["key"], job["body"]["source"], job["body"]["title"])
    service.close()
    sick.server.shutdown()
    sick.server.server_close()
