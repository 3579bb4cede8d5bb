"""The record on PostgreSQL: REST writes against the peer's, one hot key against a bare upsert, outcomes, growth.

Everything that is compared runs on one server, which syncs every commit as a production one does.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

import psycopg

import herdbook
from bench import notes
from bench.briefing import median_ms
from bench.growth import read_side
from bench.http_load import drive, post
from bench.outcomes import BOUNDS, beside_bare
from bench.peers import amfs, postgres
from bench.product import filled, opened, serving
from bench.rest import write_request, writing
from bench.servers import Unavailable
from bench.timing import Claim, NotMeasured, Result, Scale, Side, interleave, ratios
from herdbook.record.store.postgres.setup import Setup

WRITERS, SECONDS = 16, 1.0
CONCURRENT_OUTCOMES = 80
BARE = """
CREATE TABLE IF NOT EXISTS bare (path text, key text, version bigint NOT NULL, value text, why text, PRIMARY KEY (path, key));
CREATE TABLE IF NOT EXISTS bare_version (path text, key text, version bigint, value text, why text,
  PRIMARY KEY (path, key, version))
"""
UPSERT = """
INSERT INTO bare (path, key, version, value, why) VALUES (%s, %s, 1, %s, %s)
ON CONFLICT (path, key) DO UPDATE SET version = bare.version + 1, value = excluded.value, why = excluded.why RETURNING version
"""
APPEND = "INSERT INTO bare_version (path, key, version, value, why) VALUES (%s, %s, %s, %s, %s)"
Dsn = str


def made(server: str, name: str) -> Dsn:
    """A database with an empty record in it, as a URL."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        host, port = connection.info.host, connection.info.port
    url = f"postgresql://postgres@{host}:{port}/{name}"
    Setup.bring_up(url, post=True)
    return url


def claims(scale: Scale) -> Iterator[Result]:
    """Where no PostgreSQL can be had, nothing is claimed."""
    try:
        with postgres.running(Path(sys.prefix)) as server:
            yield from of_outcomes(made(server, "outcomes"), scale)
            yield from of_a_hot_key(made(server, "hot"), scale)
            yield from of_growth(made(server, "small"), made(server, "large"), scale)
            yield from of_writes(made(server, "rest"), scale)
    except Unavailable as reason:
        yield NotMeasured("postgres", str(reason))


def of_writes(url: Dsn, scale: Scale) -> Iterator[Result]:
    """Eight clients on distinct keys, through REST."""
    try:
        with amfs.running() as theirs, tempfile.TemporaryDirectory(prefix="bench-pg-") as home:
            ours = str(Path(home) / "listener")
            settled(url, scale)
            with serving(url, ours):
                sides = {"peer": writing(theirs, amfs.write_request, 8), "herdbook": writing(ours, write_request, 8)}
                turns = interleave(sides, scale.passes)
    except Unavailable as reason:
        yield NotMeasured("postgres.write8", str(reason))
        return
    yield Claim(
        name="postgres.write8",
        says="REST writes a second with 8 clients on distinct keys, on PostgreSQL, against the peer's",
        samples=ratios(turns["herdbook"], turns["peer"]),
        sense="at least",
        bound=20.0,
        detail={"herdbook_per_second": max(turns["herdbook"]), "peer_per_second": max(turns["peer"])},
    )


def of_a_hot_key(url: Dsn, scale: Scale) -> Iterator[Result]:
    """Sixteen clients write one key: through REST, and as one bare statement each, on a connection of its own."""
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in BARE.split(";"):
            connection.execute(statement.encode())
    settled(url, scale)
    numbers = iter(range(10_000_000))

    def hot(writer: int) -> Iterator[bytes]:
        while True:
            body = {"entity": "bench/hot", "key": "key", "value": [writer, next(numbers)], "why": notes.why(writer)}
            yield post("/v1/write", json.dumps({**body, "request_id": f"hot-{next(numbers)}"}).encode())

    with tempfile.TemporaryDirectory(prefix="bench-pg-") as home, serving(url, str(Path(home) / "listener")):

        def through_rest() -> float:
            load = drive(str(Path(home) / "listener"), [hot(n) for n in range(WRITERS)], seconds_max=SECONDS)
            assert not load.refused(), load.refused()[0]
            return load.per_second

        turns = interleave({"bare": partial(bare_upserts, url), "herdbook": through_rest}, scale.passes)
    with opened(url) as book:
        numbers_given = [
            version["version"] for version in book.transport.call("history", {"entity": "bench/hot", "key": "key"})["versions"]
        ]
    faults = sum(a != b for a, b in zip(numbers_given, range(1, len(numbers_given) + 1), strict=True))
    detail = {"herdbook_per_second": max(turns["herdbook"]), "bare_per_second": max(turns["bare"])}
    says = f"writes a second on one key with {WRITERS} writers, against a bare one-statement upsert on the same server"
    yield Claim("postgres.hot", says, ratios(turns["herdbook"], turns["bare"]), "at least", 0.5, "times", detail)
    yield Claim("postgres.hot.faults", "gaps and duplicates among those versions", (faults,), "at most", 0.0, "faults")


def settled(url: Dsn, scale: Scale) -> None:
    """A record that has been in use: the planner knows its tables."""
    filled(url, notes.places_as_written(10_000), scale.say)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")


def bare_upserts(url: Dsn) -> float:
    """Statements a second of all writers together."""
    done = [0] * WRITERS
    gate = threading.Barrier(WRITERS)

    def write(writer: int) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            gate.wait()
            until = time.perf_counter() + SECONDS
            while time.perf_counter() < until:
                connection.execute(UPSERT, ("bench/hot", "key", notes.TEXTS[done[writer] % 1_000], notes.why(writer)))
                done[writer] += 1

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / SECONDS


def of_outcomes(url: Dsn, scale: Scale) -> Iterator[Result]:
    """Ten and a hundred causes against a bare transaction of two rows; then eighty at once on one entry."""
    settled(url, scale)
    with psycopg.connect(url, autocommit=True) as connection, opened(url) as book:
        for statement in BARE.split(";"):
            connection.execute(statement.encode())
        numbers = count()

        def write(run: herdbook.Client, causes: int) -> None:
            number = next(numbers)
            path, key, text, why = f"bench/{number % 10}", f"key-{number % 50}", notes.TEXTS[number % 1_000], notes.why(number)
            with connection.transaction():
                row = connection.execute(UPSERT, (path, key, text, why)).fetchone()
                assert row is not None
                connection.execute(APPEND, (path, key, row[0], text, why))

        turns = interleave(beside_bare(write, book, 10_000), scale.passes)
        for causes, bound in BOUNDS.items():
            yield Claim(
                name=f"postgres.causes{causes}",
                says=f"commit_outcome with {causes} causes on PostgreSQL, against a bare write transaction there",
                samples=ratios(turns[f"outcome{causes}"], turns[f"bare{causes}"]),
                sense="at most",
                bound=bound,
                detail={"outcome_us": min(turns[f"outcome{causes}"]) * 1e6, "bare_us": min(turns[f"bare{causes}"]) * 1e6},
            )
        yield at_once(url, book)


def at_once(url: Dsn, book: herdbook.Client) -> Claim:
    """Every outcome acknowledged, and counted once."""
    book.write("bench/crowded", "key", 1, why="eighty runs will use it")
    with tempfile.TemporaryDirectory(prefix="bench-pg-") as home, serving(url, str(Path(home) / "listener")):

        def run(n: int) -> Iterator[bytes]:
            yield post("/v1/start_session", json.dumps({"session": f"crowd-{n}", "agent": "bench"}).encode())
            used = [{"entity": "bench/crowded", "key": "key"}]
            yield post(
                "/v1/commit_outcome",
                json.dumps({"session": f"crowd-{n}", "type": "success", "used": used, "ref": f"c{n}"}).encode(),
            )

        load = drive(str(Path(home) / "listener"), [run(n) for n in range(CONCURRENT_OUTCOMES)])
    moves = book.read("bench/crowded", "key")["moves"]
    faults = len(load.refused()) + abs(moves - CONCURRENT_OUTCOMES)
    seconds = [connection.seconds[-1] * 1e3 for connection in load.connections]
    says = f"{CONCURRENT_OUTCOMES} outcomes at once on one entry: refused, or not counted exactly once"
    return Claim("postgres.crowd", says, (faults,), "at most", 0.0, "faults", {"slowest_ms": max(seconds)})


def of_growth(small: Dsn, large: Dsn, scale: Scale) -> Iterator[Result]:
    """A briefing and a read of one entity, in a record of ten thousand entries and in a large one."""
    counts = {"small": 10_000, "large": scale.entries}
    for url, entries in ((small, counts["small"]), (large, counts["large"])):
        filled(url, (("bench/large", f"key-{n}") for n in range(1_000)), scale.say)
        filled(url, notes.places_as_written(entries), scale.say)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ANALYZE")
    with opened(small) as small_book, opened(large) as large_book:
        books = {"small": small_book, "large": large_book}
        tasks = [notes.words(6, seed) for seed in range(20)]
        measured: dict[str, dict[str, Side]] = {
            "brief": {name: partial(median_ms, book, lambda _: None, tasks) for name, book in books.items()},
            "read": {name: read_side(book, Path(), counts[name]) for name, book in books.items()},
        }
        for name, sides in measured.items():
            turns = interleave(sides, scale.passes)
            yield Claim(
                name=f"postgres.growth.{name}",
                says=f"a {name} among {scale.entries:,} entries on PostgreSQL, against the same among {counts['small']:,}",
                samples=ratios(turns["large"], turns["small"]),
                sense="at most",
                bound=1.5,
                detail={"small": min(turns["small"]), "large": min(turns["large"])},
            )
