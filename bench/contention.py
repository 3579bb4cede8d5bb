"""Many writers at once: eight processes on one file, and thirty-two clients on one server; on one key, and over sixty-four.

Checked on the acknowledged answers and on the record afterwards: no version missing, none given twice, no error; and the slowest
writer got at least half of what it would have got if all had been served alike.
"""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

from bench import notes
from bench.http_load import drive, post
from bench.product import opened, serving
from bench.timing import Claim, Result, Scale

PROCESSES = 8
CLIENTS = 32
KEYS = (1, 64)
GRACE_SECONDS = 60.0  # for processes to start and to hand in what they did

Written = tuple[str, int]  # key, version


@dataclass(frozen=True, slots=True)
class Writer:
    """What one writer was told, in order."""

    written: tuple[Written, ...]
    errors: tuple[str, ...]


def key_for(writer: int, number: int, keys: int) -> str:
    """Everyone goes round all the keys, each from another place."""
    return f"key-{(number + writer * 8) % keys}"


def claims(scale: Scale) -> Iterator[Result]:
    """Each load runs once for the whole time: fairness shows over seconds, not over passes."""
    for keys in KEYS:
        with tempfile.TemporaryDirectory(prefix="bench-contention-") as home:
            record = Path(home) / "record.db"
            writers = by_processes(record, keys, scale.seconds)
            yield from judged(f"contention.file{keys}", f"{PROCESSES} processes, one file, {keys} key(s)", writers, record, scale)
        with tempfile.TemporaryDirectory(prefix="bench-contention-") as home:
            record = Path(home) / "record.db"
            writers = by_clients(record, Path(home) / "listener", keys, scale.seconds)
            yield from judged(f"contention.server{keys}", f"{CLIENTS} clients, one server, {keys} key(s)", writers, record, scale)


def judged(name: str, says: str, writers: Sequence[Writer], record: Path, scale: Scale) -> Iterator[Result]:
    """The two claims of one load: nothing wrong, and nobody starved."""
    counts = [len(writer.written) for writer in writers]
    per_second = sum(counts) / scale.seconds
    wrong = faults(writers, record)
    for words in wrong[:5]:
        scale.say(f"  {name}: {words}")
    detail = {"writes_per_second": per_second, "fewest": min(counts), "most": max(counts)}
    yield Claim(f"{name}.faults", f"{says}: gaps, duplicates and errors", (len(wrong),), "at most", 0.0, "faults", detail)
    share = min(counts) / (sum(counts) / len(counts)) if sum(counts) else 0.0
    yield Claim(
        f"{name}.share", f"{says}: the slowest writer's part of an equal share", (share,), "at least", 0.5, "shares", detail
    )


def faults(writers: Sequence[Writer], record: Path) -> list[str]:
    """Everything that should not have happened, in words."""
    found = [error for writer in writers for error in writer.errors]
    versions: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for writer in writers:
        own: dict[str, int] = {}
        for key, version in writer.written:
            versions[key][version] += 1
            if version <= own.get(key, 0):
                found.append(f"{key}: one writer was given version {version} after version {own[key]}")
            own[key] = version
    with opened(record) as book:
        for key, given in versions.items():
            found += [f"{key}: version {version} was given {times} times" for version, times in given.items() if times > 1]
            found += [f"{key}: version {version} is missing" for version in range(1, max(given) + 1) if version not in given]
            current = book.read("bench/contended", key)["version"]
            if current != max(given):
                found.append(f"{key}: the record is at version {current}, the last acknowledged one is {max(given)}")
    return found


def by_processes(record: Path, keys: int, seconds: float) -> list[Writer]:
    """Processes of their own, each with the file open, released together."""
    with opened(record):
        pass  # what is measured is writing, not the making of the file
    spawn = multiprocessing.get_context("spawn")
    results: Queue[Writer] = spawn.Queue()
    barrier = spawn.Barrier(PROCESSES)
    processes = [
        spawn.Process(target=write_on, args=(record, number, keys, seconds, barrier, results)) for number in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    writers = [results.get(timeout=seconds + GRACE_SECONDS) for _ in processes]
    for process in processes:
        process.join(GRACE_SECONDS)
    return writers


def write_on(record: Path, writer: int, keys: int, seconds: float, barrier: Barrier, results: Queue[Writer]) -> None:
    """One process: write until time is up, and hand in what was acknowledged."""
    written: list[Written] = []
    errors: list[str] = []
    with opened(record) as book:
        barrier.wait(GRACE_SECONDS)
        until, number = time.perf_counter() + seconds, 0
        while time.perf_counter() < until:
            key = key_for(writer, number, keys)
            try:
                answer = book.write("bench/contended", key, [writer, number], why=notes.why(number))
                written.append((key, answer["version"]))
            except Exception as error:  # because any error that reaches a caller is what is counted
                errors.append(f"{type(error).__name__}: {error}")
            number += 1
    results.put(Writer(tuple(written), tuple(errors)))


def by_clients(record: Path, listener: Path, keys: int, seconds: float) -> list[Writer]:
    """Connections to one server, each with one request in flight."""

    def script(writer: int) -> Iterator[bytes]:
        number = 0
        while True:
            body = {
                "entity": "bench/contended",
                "key": key_for(writer, number, keys),
                "value": [writer, number],
                "why": notes.why(number),
                "request_id": f"{writer}-{number}",
            }
            yield post("/v1/write", json.dumps(body).encode())
            number += 1

    with serving(record, str(listener)):
        load = drive(str(listener), [script(writer) for writer in range(CLIENTS)], seconds_max=seconds)
    writers = []
    for connection in load.connections:
        answers = [json.loads(body) for status, body in zip(connection.statuses, connection.bodies, strict=True) if status < 300]
        refused = [str(body) for status, body in zip(connection.statuses, connection.bodies, strict=True) if status >= 300]
        writers.append(Writer(tuple((answer["key"], answer["version"]) for answer in answers), tuple(refused)))
    return writers
