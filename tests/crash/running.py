"""Processes of these tests: programs beside them, a served record, lines waited for with a deadline, seeds that are said."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from herdbook.client import Client

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 60.0


def seeded() -> random.Random:
    """A source of chance whose seed a failing run has printed; CRASH_SEED=n runs it again."""
    seed = int(os.environ.get("CRASH_SEED") or int.from_bytes(os.urandom(4)))
    print(f"CRASH_SEED={seed}")
    return random.Random(seed)


def environment(home: Path) -> dict[str, str]:
    """For a process whose settings and record are in `home`, and which finds these tests."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    absolute = [str(ROOT / path) if path == "src" else path for each in paths for path in each.split(os.pathsep)]
    return os.environ | {"HERDBOOK_HOME": str(home), "PYTHONPATH": os.pathsep.join(absolute)}


def until(condition: Callable[[], Any], *, what: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait for a condition; fail by name when it does not come."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"in {seconds:g} s not: {what}"
        select.select([], [], [], 0.002)


class Program:
    """A process that says JSON lines on its standard output, and may be told some."""

    def __init__(self, module: str, *arguments: str, home: Path, wrapped_by: tuple[str, ...] = ()) -> None:
        command = [*wrapped_by, sys.executable, "-m", f"tests.crash.{module}", *arguments]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(home), cwd=ROOT, start_new_session=True
        )
        assert self.process.stdout is not None
        self.descriptor = self.process.stdout.fileno()
        self.held = b""

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)  # a group of its own, begun above
        self.process.wait(PATIENCE_SECONDS)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def tell(self, said: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(said).encode() + b"\n")
        self.process.stdin.flush()

    def said(self, *, within_seconds: float = PATIENCE_SECONDS) -> Any:
        """The next line, or None when it did not come in time."""
        deadline = time.monotonic() + within_seconds
        while b"\n" not in self.held:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.descriptor], [], [], left)[0]:
                return None
            piece = os.read(self.descriptor, 65536)
            assert piece, f"the program ended: {self.process.wait(PATIENCE_SECONDS)}, {self.held!r}"
            self.held += piece
        line, _, self.held = self.held.partition(b"\n")
        return json.loads(line)

    def must_say(self) -> Any:
        said = self.said()
        assert said is not None, "the program says nothing"
        return said


def say(said: Any) -> None:
    """One line to whoever started this process; whole, whatever happens to us afterwards."""
    os.write(1, json.dumps(said).encode() + b"\n")


class Served:
    """`herdbook serve` over the record of a home, on a unix socket; it can be killed and started again."""

    def __init__(
        self, home: Path, *, socket: Path | None = None, log: Path | None = None, wrapped_by: tuple[str, ...] = ()
    ) -> None:
        self.home, self.wrapped_by = home, wrapped_by
        self.socket = socket or home / "herdbook.sock"
        self.log = log or home / "serve.log"
        self.clients: list[Client] = []
        self.process = self.start()

    @property
    def url(self) -> str:
        return f"unix:{self.socket}"

    def start(self) -> subprocess.Popen[bytes]:
        command = [*self.wrapped_by, sys.executable, "-m", "herdbook", "serve", "--unix", str(self.socket)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, env=environment(self.home), cwd=ROOT
            )
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], PATIENCE_SECONDS)[0], "the server does not start"
        line = self.process.stdout.readline()
        assert b"serving on" in line, self.log.read_text()
        return self.process

    def end(self, number: int) -> int:
        """Send a signal and wait for the end; its exit status."""
        self.process.send_signal(number)
        status = self.process.wait(PATIENCE_SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status

    def restart(self) -> None:
        self.end(signal.SIGKILL)
        self.start()

    def client(self, **more: Any) -> Client:
        self.clients.append(Client(url=self.url, spool="", **{"agent": "tester", "timeout_seconds": 20.0, **more}))
        return self.clients[-1]


@contextmanager
def served(home: Path, **more: Any) -> Iterator[Served]:
    home.mkdir(parents=True, exist_ok=True)
    server = Served(home, **more)
    try:
        yield server
    finally:
        for client in server.clients:
            client.transport.close()  # type: ignore[attr-defined]  # both transports have it
        if server.process.poll() is None:
            server.end(signal.SIGTERM)


def figures(what: str, numbers: Mapping[str, Any]) -> None:
    """What a run came to, for whoever runs with `-s` or looks at a failure."""
    print(f"{what}: " + ", ".join(f"{name} {number}" for name, number in numbers.items()))
