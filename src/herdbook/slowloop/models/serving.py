"""`transformers serve` as a process of its own, watched over: for a laptop and for tests. Larger fleets use vLLM and its kin.

It serves the models that are asked for by their folders, on a free port of this machine, and downloads nothing.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from herdbook.base.errors import ExtraMissing, Unavailable

START_SECONDS_MAX: Final = 600  # a machine that is busy takes its time; one that ended is noticed at once
STOP_SECONDS_MAX: Final = 10
LOOK_SECONDS: Final = 0.2
SAID_CHARS_MAX: Final = 500
OFFLINE: Final = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false"}


class ModelServer:
    """The process. `wait` returns when it has ended by itself; `stop` ends it."""

    def __init__(self, *, threads: int = 0, device: str = "auto") -> None:
        command = Path(sys.executable).with_name("transformers")
        if not command.exists():
            raise ExtraMissing.of("train", what="the server for trained models")
        port = free_port()
        limited = {"OMP_NUM_THREADS": str(threads)} if threads else {}
        self.said = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process; a pipe nobody reads would stop it
        words = [str(command), "serve", "--host", "127.0.0.1", "--port", str(port), "--device", device]
        self.process = subprocess.Popen(words, env=os.environ | OFFLINE | limited, stdout=self.said, stderr=self.said)
        self.url = f"http://127.0.0.1:{port}/v1"

    def ready(self) -> None:
        """Until it is healthy. Raises Unavailable with what it said, if it ends first or takes too long."""
        health, until = f"{self.url.removesuffix('/v1')}/health", time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise Unavailable(f"the model server ended with code {self.process.returncode}: {last_words(self.said)}")
            try:
                with urllib.request.urlopen(health, timeout=2):
                    return
            except (OSError, urllib.error.URLError):
                time.sleep(LOOK_SECONDS)
        raise Unavailable(f"the model server did not come up within {START_SECONDS_MAX} s: {last_words(self.said)}")

    def wait(self) -> int:
        return self.process.wait()

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.said.close()


@contextmanager
def served(*, threads: int = 0, device: str = "auto") -> Iterator[str]:
    """The address of a model server, until the block ends."""
    server = ModelServer(threads=threads, device=device)
    try:
        server.ready()
        yield server.url
    finally:
        server.stop()


def last_words(said: IO[bytes]) -> str:
    said.seek(0)
    return said.read().decode(errors="replace")[-SAID_CHARS_MAX:]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
