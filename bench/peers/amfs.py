"""AMFS, the product herdbook is compared with: its published packages, unchanged, on PostgreSQL as its documentation wants.

`python -m bench.peers.amfs` sets it up under the system's temporary directory, gives it the loads that herdbook gets, and prints
its rates. Where it cannot be run - no package registry, no PostgreSQL - it says so and measures nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import notes
from bench.http_load import Address, drive, get, post
from bench.peers import postgres
from bench.servers import Unavailable, await_answer, free_port, stop

PACKAGES = ("amfs==0.5.42", "amfs-adapter-postgres==0.2.43", "amfs-http-server==0.3.66")


def write_request(name: str, number: int) -> bytes:
    """Write one note under a new key: what its own client sends."""
    body = {
        "entity_path": f"{name}/{number % 10}",
        "key": f"key-{number}",
        "value": {**notes.note(number), "why": notes.why(number)},  # it has no field for the reason
        "confidence": 0.5,
        "agent_id": "bench",
        "session_id": "bench",
    }
    return post("/api/v1/entries", json.dumps(body).encode())


@contextmanager
def running() -> Iterator[Address]:
    """A fresh server over a fresh database; yields its port."""
    environment = installed()
    with postgres.running(environment) as connection_string:
        port = free_port()
        command = [str(environment / "bin" / "python"), "-m", "amfs_http.server", "--host", "127.0.0.1", "--port", str(port)]
        with tempfile.TemporaryDirectory(prefix="bench-amfs-") as home, (Path(home) / "log").open("wb") as log:
            settings = {**os.environ, "AMFS_POSTGRES_DSN": connection_string, "HOME": home}
            server = subprocess.Popen(command, env=settings, stdout=log, stderr=log, cwd=home)
            try:
                await_answer(server, port, get("/health"))
                yield port
            finally:
                server.terminate()
                stop(server)


def installed() -> Path:
    """A virtual environment with its packages, made once for a user and kept: making it needs a package registry."""
    environment = Path(tempfile.gettempdir()) / f"herdbook-bench-{os.getuid()}" / "-".join(PACKAGES).replace("==", "-")
    if (environment / "complete").exists() and environment.stat().st_uid == os.getuid():
        return environment
    shutil.rmtree(environment, ignore_errors=True)
    environment.mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(f"its packages cannot be installed: {done.stderr.strip().splitlines()[-1:]}")
    (environment / "complete").touch()
    return environment


def main() -> int:
    """Measure it alone."""
    try:
        with running() as address:
            for clients, count in ((1, 300), (8, 75)):
                for number in range(3):
                    name = f"run-{clients}-{number}"
                    scripts = [iter([write_request(f"{name}-{client}", n) for n in range(count)]) for client in range(clients)]
                    load = drive(address, scripts)
                    print(f"{clients} clients: {load.per_second:.1f} writes a second, {len(load.refused())} refused")
    except Unavailable as reason:
        print(f"AMFS cannot be run here: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
