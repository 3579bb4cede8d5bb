"""Durable writes through the REST server, against the product herdbook is compared with: one client, and eight at once.

Both servers run for the whole of it, and the same client loads them in turn for equal times, with the same values under new keys.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import notes
from bench.http_load import Address, drive, post
from bench.peers import amfs
from bench.product import serving
from bench.servers import Unavailable, free_port
from bench.timing import Claim, NotMeasured, Result, Scale, Side, interleave, ratios

SECONDS = 1.0  # of each turn
BOUNDS = {1: 8.0, 8: 25.0}  # clients: how many times the peer's rate
MakeRequest = Callable[[str, int], bytes]


def write_request(name: str, number: int) -> bytes:
    """Write one note under a new key, with the request id that the product's own client sends."""
    body = (
        f'{{"entity": "{name}/{number % 10}", "key": "key-{number}", "value": {notes.TEXTS[number % len(notes.TEXTS)]}, '
        f'"why": "{notes.why(number)}", "request_id": "{name}-{number}"}}'
    )
    return post("/v1/write", body.encode())


def writing(address: Address, request: MakeRequest, clients: int) -> Side:
    """A side whose every turn gives that many clients new keys, and returns writes a second."""
    turns = iter(range(1_000_000))

    def script(name: str) -> Iterator[bytes]:
        number = 0
        while True:
            yield request(name, number)
            number += 1

    def turn() -> float:
        name = f"bench/{clients}-clients/turn-{next(turns)}"
        load = drive(address, [script(f"{name}/{client}") for client in range(clients)], seconds_max=SECONDS)
        assert not load.refused(), f"a write was refused: {load.refused()[0]}"
        return load.per_second

    return turn


def claims(scale: Scale) -> Iterator[Result]:
    """The peer needs PostgreSQL and its own packages; where they cannot be had, nothing is claimed."""
    scale.say("rest: setting up the peer")
    try:
        with tempfile.TemporaryDirectory(prefix="bench-rest-") as home, amfs.running() as theirs:
            ours = free_port()
            with serving(Path(home) / "record.db", ours):
                for clients, bound in BOUNDS.items():
                    scale.say(f"rest: {clients} clients")
                    sides = {
                        "peer": writing(theirs, amfs.write_request, clients),
                        "herdbook": writing(ours, write_request, clients),
                    }
                    turns = interleave(sides, scale.passes)
                    yield Claim(
                        name=f"rest.write{clients}",
                        says=f"REST writes a second with {clients} client{'s' * (clients > 1)}, against the peer's",
                        samples=ratios(turns["herdbook"], turns["peer"]),
                        sense="at least",
                        bound=bound,
                        detail={"herdbook_per_second": max(turns["herdbook"]), "peer_per_second": max(turns["peer"])},
                    )
    except Unavailable as reason:
        for clients in BOUNDS:
            yield NotMeasured(f"rest.write{clients}", str(reason))
