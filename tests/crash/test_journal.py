"""The reads journal after what may happen to a file: a power cut, a torn line, an editor. Writes go on, later reads count."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import herdbook
from tests.crash import invariants
from tests.crash.running import seeded

ENTITY = "acme/ci"
SESSION = "run"


def record_with_reads(home: Path, *, reads: int) -> Path:
    """Five reads that are in the record by a write after them, and so many that are only in the journal."""
    with herdbook.open(home / "record.db", agent="tester", session=SESSION) as client:
        client.write(ENTITY, "k", 1, why="w")
        for _ in range(5):
            client.read(ENTITY, "k")
        client.write(ENTITY, "folded", 1, why="w")
        for _ in range(reads):
            client.read(ENTITY, "k")
    return home / "record.db"


def goes_on(record: Path) -> int:
    """Three more reads and a write: all there; how many reads the record has of before."""
    with herdbook.open(record, agent="tester", session=SESSION) as client:
        for _ in range(3):
            client.read(ENTITY, "k")
        client.write(ENTITY, "end", 1, why="w", request_id=f"end-{random.random()}")
    invariants.check(record)
    count = invariants.reads_folded(record, SESSION)["k", 1] - 3
    assert count >= 5, "what was acknowledged with a write is gone"
    return count


def damaged(content: bytes, chance: random.Random) -> bytes:
    """What a power cut, a full disk or a stray program may leave of an append-only file."""
    place = chance.randrange(len(content) + 1)
    kind = chance.randrange(6)
    if kind == 0:
        return content[:place]
    if kind == 1:
        return content[:place] + b"\0" * (len(content) - place)
    if kind == 2:
        return content + bytes(chance.randrange(256) for _ in range(chance.randrange(1, 200)))
    if kind == 3:
        return content + content[-chance.randrange(1, 60) : -1]  # a line begun
    if kind == 4:
        return bytes(chance.randrange(256) for _ in range(chance.randrange(1, 400)))
    return content[:place] + b'[1,"a:b:c",' + content[place:]


@pytest.mark.slow
def test_a_damaged_journal_costs_only_what_it_held(home: Path) -> None:
    """One bad byte in a side file would stop every write, or swallow the reads that come after it."""
    chance = seeded()
    record = record_with_reads(home, reads=4)
    journal = home / "record.db.reads"
    assert 9 == goes_on(record)
    for _ in range(60):
        before = invariants.reads_folded(record, SESSION)["k", 1]
        content = journal.read_bytes()
        journal.write_bytes(damaged(content, chance))
        after = goes_on(record)
        assert after == before, "a read is gone, or counted twice"


@pytest.mark.parametrize(
    "left", [b"", b"\0" * 500, b'[1,"a:b:c:d",3,4,5,"read",1,1.0,6]\n', b"x" * 33 + b"\n", b"0" * 32 + b"\n", b":" * 40],
    ids=["nothing", "zeros", "a line", "text", "another generation", "colons"],
)  # fmt: skip
def test_a_journal_that_is_another_file(home: Path, left: bytes) -> None:
    """A journal that was deleted or replaced would keep everybody from writing."""
    record = record_with_reads(home, reads=4)
    (home / "record.db.reads").write_bytes(left)
    assert 5 == goes_on(record)
    (home / "record.db.reads").unlink()
    assert 8 == goes_on(record)


def test_a_journal_emptied_under_an_open_record(home: Path) -> None:
    """A clean-up script would make the next reads of a running agent vanish, or its writes fail."""
    with herdbook.open(home / "record.db", agent="tester", session=SESSION) as client:
        client.write(ENTITY, "k", 1, why="w")
        client.read(ENTITY, "k")
        client.write(ENTITY, "folded", 1, why="w")
        with (home / "record.db.reads").open("r+b") as file:
            file.truncate(0)
        client.write(ENTITY, "still", 1, why="w")
        for _ in range(3):
            client.read(ENTITY, "k")
        client.write(ENTITY, "end", 1, why="w")
    invariants.check(home / "record.db")
    assert invariants.reads_folded(home / "record.db", SESSION)["k", 1] >= 1 + 2  # one line may be lost in the header's place
