"""How long a deploy's sender waits: signed hooks at a steady pace into `herdbook watch serve`, each a durable job.

    python -m bench.hooks [SECONDS]    exit code 1 if the bound is not kept

The pace is kept whatever the answers take: a slow answer delays nobody behind it, and is counted as it was.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.servers import await_answer, free_port, stop
from bench.timing import Claim, Result, Scale

HOOKS_A_SECOND = 50
SECRET = "bench-secret"
BOUND_MILLISECONDS = 50.0
WAITING = 500  # jobs that nobody has taken yet
CONFIG = """\
org = "acme"
[deploy]
repository = "acme/app"
[hooks]
deploy = "BENCH_HOOK"
[services.api]
source = "file"
path = "api.log"
"""


def hook(port: int, number: int) -> float:
    """One deploy, told: the seconds until it was answered."""
    sha = hashlib.sha1(str(number).encode()).hexdigest()
    body = json.dumps({"repositories": {"acme/app": {"before": sha, "after": sha}}, "services": ["api"]}).encode()
    signature = "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", "/hooks/deploy", body, {"X-Hub-Signature-256": signature, "Content-Type": "application/json"})
        status = connection.getresponse().status
    finally:
        connection.close()
    assert status == 202, f"a hook was answered with {status}"
    return time.perf_counter() - began


def paced(port: int, first: int, count: int) -> list[float]:
    """`count` hooks at the pace, each from a thread, so that a late one holds nobody up."""
    with ThreadPoolExecutor(32) as pool:
        futures, began = [], time.perf_counter()
        for number in range(count):
            time.sleep(max(0.0, began + number / HOOKS_A_SECOND - time.perf_counter()))
            futures.append(pool.submit(hook, port, first + number))
        return [future.result() for future in futures]


def claims(scale: Scale) -> Iterator[Result]:
    """The 99th of a hundred answers, over several turns."""
    with tempfile.TemporaryDirectory(prefix="bench-hooks-") as folder:
        config = Path(folder) / "watch.toml"
        config.write_text(CONFIG)
        port = free_port()
        command = [sys.executable, "-m", "herdbook", "watch", "serve", "--config", str(config), "--port", str(port)]
        command += ["--record", str(Path(folder) / "record.db")]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "BENCH_HOOK": SECRET})
        try:
            await_answer(server, port, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda number: hook(port, number), range(WAITING)))
            count = int(HOOKS_A_SECOND * scale.seconds / 2)
            turns = [sorted(paced(port, 1_000_000 * (turn + 1), count)) for turn in range(max(3, scale.passes // 4))]
        finally:
            server.terminate()
            stop(server)
        yield Claim(
            name="hooks.p99",
            says=f"p99 of a hook's answer at {HOOKS_A_SECOND} a second, each a durable job",
            samples=tuple(seconds[int(len(seconds) * 0.99)] * 1_000 for seconds in turns),
            sense="at most",
            bound=BOUND_MILLISECONDS,
            unit="ms",
            detail={"p50_ms": turns[0][len(turns[0]) // 2] * 1_000, "max_ms": max(each[-1] for each in turns) * 1_000},
        )


if __name__ == "__main__":
    seconds = float(sys.argv[1]) if sys.argv[1:] else 10.0
    for claim in claims(Scale(passes=12, entries=0, seconds=seconds, say=print)):
        assert isinstance(claim, Claim)
        print(claim.says, [round(sample, 1) for sample in claim.samples], claim.unit, dict(claim.detail))
        sys.exit(0 if claim.holds else 1)
