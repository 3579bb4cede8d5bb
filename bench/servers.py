"""Starting and stopping the servers that are measured: each in a process of its own, on loopback or a unix socket."""

from __future__ import annotations

import socket
import subprocess
import sys
import time

from bench.http_load import Address, LoadFailed, drive

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 15.0


class Unavailable(Exception):
    """This machine cannot run it; the message says what is missing."""


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def await_answer(server: subprocess.Popen[bytes], address: Address, request: bytes) -> None:
    """Return once it answers, whatever it answers."""
    until = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < until:
        if server.poll() is not None:
            raise Unavailable(f"the server stopped at once, with exit code {server.returncode}")
        try:
            drive(address, [iter([request])], seconds_max=5.0)
            return
        except (ConnectionError, FileNotFoundError, LoadFailed):
            time.sleep(0.05)
    raise Unavailable(f"the server did not answer within {START_SECONDS_MAX:.0f} s")


def stop(server: subprocess.Popen[bytes]) -> None:
    """Wait for a process that was asked to end; end it by force if it does not."""
    try:
        server.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        print(f"process {server.pid} did not end when asked; ending it", file=sys.stderr)
        server.kill()
        server.wait()
