"""How long a person or a box waits before anything happens: the command's version, the import, a briefing in a cold box."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.product import opened, serving
from bench.timing import Claim, Result, Scale, interleave, ratios

ROUNDS = 3  # processes a turn
TIME_IMPORT = "import time; began = time.perf_counter(); import herdbook; print(time.perf_counter() - began)"


def seconds_to_run(command: Sequence[str], environment: dict[str, str] | None = None) -> float:
    """Mean wall seconds of a process, from start to end; it has to succeed."""
    began = time.perf_counter()
    for _ in range(ROUNDS):
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stderr.decode()[-500:]}"
    return (time.perf_counter() - began) / ROUNDS


def seconds_to_import() -> float:
    """Mean seconds that `import herdbook` takes in a fresh interpreter."""
    commands = [subprocess.run([sys.executable, "-c", TIME_IMPORT], capture_output=True, check=True) for _ in range(ROUNDS)]
    return sum(float(done.stdout) for done in commands) / ROUNDS


def command_line() -> list[str]:
    """The installed command, or the module where only the source is here."""
    script = Path(sysconfig.get_path("scripts")) / "herdbook"
    return [str(script)] if script.exists() else [sys.executable, "-m", "herdbook"]


def claims(scale: Scale) -> Iterator[Result]:
    """Processes are started in turn; the briefing is asked as a box asks it: by the bare interpreter, with one pushed file."""
    interpreter = str(Path(sys.base_prefix) / "bin" / "python3")
    with tempfile.TemporaryDirectory(prefix="bench-start-") as home:
        record, listener = Path(home) / "record.db", Path(home) / "listener"
        with opened(record) as book:
            for number in range(10):
                book.write("bench/box", f"key-{number}", number, why="something to be briefed on")
        with serving(record, str(listener)):
            client = Path(home) / "client.py"
            client.write_bytes((Path(sys.modules["herdbook"].__file__ or "").parent / "client.py").read_bytes())
            box = {"PATH": os.environ["PATH"], "HOME": home, "HERDBOOK_URL": f"unix:{listener}", "HERDBOOK_AGENT": "bench"}
            turns = interleave(
                {
                    "nothing": lambda: seconds_to_run([interpreter, "-c", ""], box),
                    "brief": lambda: seconds_to_run([interpreter, str(client), "brief", "bench/box"], box),
                    "version": lambda: seconds_to_run([*command_line(), "--version"]),
                    "import": seconds_to_import,
                },
                scale.passes,
            )
    nothing = {"python3_ms": min(turns["nothing"]) * 1e3}
    yield Claim("start.version", "herdbook --version", in_ms(turns["version"]), "at most", 200.0, "ms", nothing)
    yield Claim("start.import", "import herdbook", in_ms(turns["import"]), "at most", 100.0, "ms", nothing)
    yield Claim(
        name="start.box_brief",
        says="python3 client.py brief over a unix socket, against python3 -c ''",
        samples=ratios(turns["brief"], turns["nothing"]),
        sense="at most",
        bound=4.0,
        detail={"brief_ms": min(turns["brief"]) * 1e3, **nothing},
    )


def in_ms(seconds: Sequence[float]) -> tuple[float, ...]:
    return tuple(each * 1e3 for each in seconds)
