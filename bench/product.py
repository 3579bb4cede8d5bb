"""herdbook as it is measured: opened in process, filled with many entries, or served in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import herdbook
from bench import notes
from bench.http_load import Address, get
from bench.servers import await_answer, stop
from herdbook.service.local import LocalTransport

BATCH = 2_000  # entries a transaction, while filling


@contextmanager
def opened(record: Path | str) -> Iterator[herdbook.Client]:
    """A client over the file, in this process; its session begins with its first call. Without a model, as installed."""
    with herdbook.open(record, agent="bench") as book:
        assert isinstance(book.transport, LocalTransport)
        book.transport.service.briefer.orderer.semantics = "off in the benches: what a model costs depends on the model"
        yield book


def another_run(book: herdbook.Client) -> herdbook.Client:
    """A client with a session of its own over a record that is open already. Closing it would close the record."""
    return herdbook.Client(book.transport, agent="bench")


def filled(record: Path | str, places: Iterable[tuple[str, str]], say: Callable[[str], None]) -> None:
    """Write an entry at each place through the record's own checks, many a transaction."""
    numbered, written = enumerate(places), 0
    with opened(record) as book:
        assert isinstance(book.transport, LocalTransport)
        service, caller = book.transport.service, book.transport.caller
        while batch := list(islice(numbered, BATCH)):
            answers = service.commit([service.plan(caller, "write", entry_fields(*each)) for each in batch])
            refused = [answer for answer in answers if not isinstance(answer, dict)]
            assert not refused, f"filling the record failed: {refused[0]}"
            written += len(batch)
            if written % (50 * BATCH) == 0:
                say(f"  {written:,} entries written")


def entry_fields(number: int, place: tuple[str, str]) -> dict[str, Any]:
    """The fields of one write."""
    path, key = place
    return {"entity": path, "key": key, "value": notes.NOTES[number % len(notes.NOTES)], "why": notes.why(number)}


@contextmanager
def serving(record: Path | str, address: Address) -> Iterator[None]:
    """`herdbook serve` on a port of loopback or on a unix socket, until the block ends."""
    with opened(record):
        pass  # made here, so that the server does not have to say that it makes one
    where = ["--unix", address] if isinstance(address, str) else ["--port", str(address)]
    command = [sys.executable, "-m", "herdbook", "serve", "--record", str(record), *where]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        await_answer(server, address, get("/readyz"))
        yield
    finally:
        server.terminate()
        stop(server)
