"""What the credential gateway adds to a call: the same request to the same service, directly and through it, by turns.

The service is a `herdbook serve`, asked for its health; the gateway is a `herdbook gateway serve`, called with a box's pass: with
rules, with the audit on the disk, with the answer searched for the credential. All three are processes of their own.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.http_load import Address, drive, get
from bench.product import opened, serving
from bench.servers import await_answer, free_port, stop
from bench.timing import Claim, Result, Scale, Side, interleave
from herdbook.base import settings
from herdbook.gateway.keeping import Gatekeeper

CALLS = 200  # of each turn and client
BOUND_MILLISECONDS = 5.0
BOX = {"provider": "bench", "isolation": "process", "label": "bench", "owner": "bench", "lease_seconds": 3_600}


@contextmanager
def gateway(record: Path, port: int) -> Iterator[None]:
    """`herdbook gateway serve` over this record, in the home that the environment names."""
    command = [sys.executable, "-m", "herdbook", "gateway", "serve", "--record", str(record), "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=dict(os.environ))
    try:
        await_answer(server, port, get("/healthz"))
        yield
    finally:
        server.terminate()
        stop(server)


def calling(address: Address, request: bytes, clients: int) -> Side:
    """A side whose every turn asks one after the other and returns the median of an answer, in milliseconds."""

    def turn() -> float:
        load = drive(address, [iter([request] * CALLS) for _ in range(clients)])
        assert not load.refused(), f"a call was refused: {load.refused()[0]}"
        return statistics.median([each for connection in load.connections for each in connection.seconds]) * 1_000

    return turn


def with_pass(path: str, token: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode()


def set_up(record: Path, service: int) -> str:
    """A connection to the service, and the pass of a box that may use it."""
    keeper = Gatekeeper.of(settings.load(), by="bench")
    fields = {"base": f"http://127.0.0.1:{service}", "credential": {"type": "bearer"}, "secret": "bench-secret-0123456789"}
    keeper.add("service", allow=["GET /healthz"], private=True, **fields)  # type: ignore[arg-type]
    keeper.grant("service", label="bench")
    with opened(record) as book:
        book.call("box_open", {"box": "box-1", **BOX})
        return str(book.call("box_pass", {"box": "box-1", "connections": ["service"]})["token"])


def claims(scale: Scale) -> Iterator[Result]:
    """With one client, which is what a box is, and with eight."""
    with tempfile.TemporaryDirectory(prefix="bench-gateway-") as folder:
        record, service, ours = Path(folder) / "record.db", free_port(), free_port()
        with serving(record, service):
            token = set_up(record, service)
            with gateway(record, ours):
                for clients in (1, 8):
                    sides = {
                        "direct": calling(service, get("/healthz"), clients),
                        "through": calling(ours, with_pass("/v1/gateway/service/healthz", token), clients),
                    }
                    turns = interleave(sides, scale.passes)
                    direct, through = (statistics.median(turns[side]) for side in ("direct", "through"))
                    added = tuple(b - a for a, b in zip(turns["direct"], turns["through"], strict=True))
                    yield Claim(
                        name=f"gateway.adds{clients}",
                        says=f"p50 of a call through the gateway less the p50 of a direct one, {clients} at once",
                        samples=added,
                        sense="at most",
                        bound=BOUND_MILLISECONDS * clients,
                        unit="ms",
                        detail={"direct_ms": direct, "through_ms": through},
                    )
