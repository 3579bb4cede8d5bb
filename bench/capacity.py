"""Ten thousand boxes against the capacity model: what each verb costs is measured on PostgreSQL here, the boxes are simulated.

Time in the simulation is the model's own, so the machine may be busy: processor time is measured, not how long things took. Two
servers of a core each, two cores for the database, and one turn a tenant, which writes that wait together share. It fails where
ten thousand boxes would wait in line, or where the arithmetic of docs/scale.md is not what comes out.
"""

from __future__ import annotations

import heapq
import os
import random
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from bench.on_postgres import made
from bench.peers import postgres
from bench.product import filled, opened
from bench.servers import Unavailable
from bench.timing import Claim, NotMeasured, Result, Scale, percentile
from herdbook.service.local import LocalTransport

RUN = ("start_session", "brief", *["read"] * 5, *["record_action"] * 3, "commit_outcome")
WRITES = frozenset({"start_session", "record_action", "commit_outcome"})
BOXES, RUN_EVERY_SECONDS, THINK_SECONDS = 10_000, 600.0, 20.0
SERVER_CORES, DATABASE_CORES, TURN_MAX = 2, 2, 64
COMMIT_SECONDS = 0.001  # of a turn: a disk of the cloud; what the rows in it take comes on top
WARM_UP_SECONDS, SECONDS = 300.0, 900.0
ENTRIES, MEASURED = 200, 60
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor seconds of one call."""

    server: float
    database: float


@dataclass(slots=True)
class Cores:
    """So many that serve one at a time each, first come, first served."""

    free: list[float]
    busy: float = 0.0

    def serve(self, at: float, seconds: float, *, counts: bool) -> float:
        """When work that arrives at that time is done."""
        begun = max(at, heapq.heappop(self.free))
        heapq.heappush(self.free, begun + seconds)
        self.busy += seconds * counts
        return begun + seconds


@dataclass(slots=True)
class Outcome:
    """What came of it."""

    waits: dict[str, list[float]] = field(default_factory=dict)  # seconds, by verb
    busy: dict[str, float] = field(default_factory=dict)  # shares of the time
    requests: int = 0


def simulate(costs: Mapping[str, Cost], *, boxes: int, seed: int, commit_seconds: float = COMMIT_SECONDS) -> Outcome:
    """Boxes that make a run every ten minutes, each request after some thought, in one tenant."""
    chance, told = random.Random(seed), Outcome()
    servers, database = Cores([0.0] * SERVER_CORES), Cores([0.0] * DATABASE_CORES)
    end = WARM_UP_SECONDS + SECONDS
    events: list[tuple[float, int, int, str, float]] = []  # when, number, place in the run, what, since
    numbers = iter(range(1 << 60))

    def at(when: float, place: int, what: str, since: float) -> None:
        heapq.heappush(events, (when, next(numbers), place, what, since))

    for _ in range(boxes):
        at(chance.random() * RUN_EVERY_SECONDS, 0, "ask", 0.0)
    waiting: deque[tuple[int, float]] = deque()
    turn_until, turn_busy = 0.0, 0.0

    def answered(when: float, place: int, since: float) -> None:
        if since >= WARM_UP_SECONDS:
            told.waits.setdefault(RUN[place], []).append(when - since)
        follows = chance.expovariate(1 / THINK_SECONDS) if place + 1 < len(RUN) else rest(chance)
        at(when + follows, (place + 1) % len(RUN), "ask", 0.0)

    while events and events[0][0] < end:
        now, _, place, what, since = heapq.heappop(events)
        counts = now >= WARM_UP_SECONDS
        if what == "ask":
            told.requests += counts
            at(servers.serve(now, costs[RUN[place]].server, counts=counts), place, "store", now)
        elif what == "store" and RUN[place] not in WRITES:
            answered(database.serve(now, costs[RUN[place]].database, counts=counts), place, since)
        else:
            if what == "store":
                waiting.append((place, since))
            if waiting and now >= turn_until:
                batch = [waiting.popleft() for _ in range(min(TURN_MAX, len(waiting)))]
                done = database.serve(now, sum(costs[RUN[each]].database for each, _ in batch), counts=counts) + commit_seconds
                turn_busy += (done - now) * counts
                turn_until = done
                for each, begun in batch:
                    answered(done, each, begun)
                at(done, 0, "turn", 0.0)
    told.busy = {
        "servers": servers.busy / SECONDS / SERVER_CORES,
        "database": database.busy / SECONDS / DATABASE_CORES,
        "turn": turn_busy / SECONDS,
    }
    return told


def rest(chance: random.Random) -> float:
    """From the end of a run to the next one's beginning."""
    return chance.uniform(0.5, 1.5) * (RUN_EVERY_SECONDS - (len(RUN) - 1) * THINK_SECONDS)


def expected(costs: Mapping[str, Cost], *, boxes: int) -> dict[str, float]:
    """The arithmetic: runs a second, times what a run costs."""
    runs = boxes / RUN_EVERY_SECONDS
    return {
        "servers": runs * sum(costs[verb].server for verb in RUN) / SERVER_CORES,
        "database": runs * sum(costs[verb].database for verb in RUN) / DATABASE_CORES,
    }


def claims(scale: Scale) -> Iterator[Result]:
    """Where no PostgreSQL can be had, nothing is claimed."""
    try:
        with postgres.running(Path(sys.prefix)) as server:
            costs, wal = measured(made(server, "capacity"), scale)
    except Unavailable as reason:
        yield NotMeasured("capacity", str(reason))
        return
    yield from judged(costs, boxes=BOXES, wal=wal)


def judged(costs: Mapping[str, Cost], *, boxes: int, wal: float = 0.0) -> Iterator[Claim]:
    outcomes = [simulate(costs, boxes=boxes, seed=seed) for seed in range(3)]
    arithmetic = expected(costs, boxes=boxes)
    detail = {f"{verb}_{side}_ms": getattr(cost, side) * 1e3 for verb, cost in costs.items() for side in ("server", "database")}
    busiest = tuple(max(outcome.busy.values()) for outcome in outcomes)
    shares = outcomes[0].busy | {"wal_mb_per_second": boxes / RUN_EVERY_SECONDS * wal / 1e6}
    yield Claim("capacity.busy", f"the busiest part of the time, {boxes:,} boxes", busiest, "at most", 0.7, "of it", shares)
    for verb in ("brief", "commit_outcome"):
        p99 = tuple(percentile(outcome.waits[verb], 0.99) * 1e3 for outcome in outcomes)
        yield Claim(f"capacity.{verb}", f"p99 of {verb} with {boxes:,} boxes", p99, "at most", 250.0, "ms", detail)
    off = tuple(max(abs(outcome.busy[name] / share - 1) for name, share in arithmetic.items()) for outcome in outcomes)
    yield Claim(
        "capacity.arithmetic", "how far the simulation is from runs a second times their cost", off, "at most", 0.1, "of it"
    )


def measured(url: str, scale: Scale) -> tuple[dict[str, Cost], float]:
    """Each verb in a phase of its own, over one entity of two hundred entries; and the WAL of a run."""
    filled(url, (("acme/ci", f"key-{n}") for n in range(ENTRIES)), scale.say)
    with psycopg.connect(url, autocommit=True) as admin, opened(url) as book:
        admin.execute("ANALYZE")
        assert isinstance(book.transport, LocalTransport)
        call, before = book.transport.call, wal_at(admin)
        costs = {}
        for verb, fields in requests():
            for field_set in fields[:5]:
                call(verb, field_set(-1))  # prepared, and warm
            costs[verb] = costs_of(lambda n, verb=verb, fields=fields: call(verb, fields[n % len(fields)](n)), MEASURED, admin)  # type: ignore[misc]
            scale.say(f"  {verb}: server {costs[verb].server * 1e3:.2f} ms, database {costs[verb].database * 1e3:.2f} ms")
        return costs, (wal_at(admin) - before) / (MEASURED + 1)


def requests() -> Sequence[tuple[str, list[Callable[[int], dict[str, Any]]]]]:
    """What a run asks, in its order; the number says whose."""
    entry = {"entity": "acme/ci"}
    return (
        ("start_session", [lambda n: {"session": f"run-{n}", "agent": "a", "entity": "acme/ci", "task": "make the tests pass"}]),
        ("brief", [lambda n: {**entry, "session": f"run-{n}", "task": "the tests fail at midnight"}]),
        ("read", [lambda n, key=key: {**entry, "key": f"key-{key}", "session": f"run-{n}"} for key in range(5)]),  # type: ignore[misc]
        ("record_action", [lambda n: {"session": f"run-{n}", "tool": "bash", "args": {"command": "make"}, "result": "ok"}]),
        ("commit_outcome", [lambda n: {"session": f"run-{n}", "type": "success", "ref": f"o{n}", "task_input": "make"}]),
    )


def costs_of(work: Callable[[int], object], count: int, admin: psycopg.Connection[Any]) -> Cost:
    database, server = database_seconds(admin), time.process_time()
    for number in range(count):
        work(number)
    return Cost((time.process_time() - server) / count, (database_seconds(admin) - database) / count)


def database_seconds(admin: psycopg.Connection[Any]) -> float:
    """Processor time of its processes so far, of which there come no new ones while we measure."""
    row = admin.execute("SELECT array_agg(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()").fetchone()
    total = 0.0
    for pid in row[0] if row else []:
        parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += (int(parts[11]) + int(parts[12])) / TICKS
    return total


def wal_at(admin: psycopg.Connection[Any]) -> int:
    row = admin.execute("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn").fetchone()
    assert row is not None
    return int(row[0])
