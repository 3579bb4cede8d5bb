"""The reads journal: no read waits, none is lost to a later write, none counts twice, and nothing in the file stops a write."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.record.store import journal
from herdbook.record.store.journal import HEADER_BYTES, TRUNCATE_BYTES_MIN
from herdbook.record.store.protocol import Exposure
from herdbook.record.types import Shown
from herdbook.testing.records import ENTITY, Book, Desk, person, refused

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 20
GARBAGE = [
    *(b"\x00" * 100, b"\xff\xfe", b" ", b"{}", b"[]", b"1", b"null", b'"text"', b"[1,2,3]", b"[" * 5000),
    b'[1,"s",1,1,1,"read",1,1.0]',
    b'[1,"s",1,1,1,"dreamt",1,1.0,1]',
    b'[1,"s","x",1,1,"read",1,1.0,1]',
    b'[1,"s",1,1,1,"read",1,0.0,1]',
    b'[1,"s",1,1,1,"read",2,1.0,1]',
    b'[1,"s",1,1,1,"read",1,NaN,1]',
    b'[1,"s",1,1,1,"read",1,1e999,1]',
    b'[99999999999999999999,"s",1,1,1,"read",1,1.0,1]',
    b'[true,"s",1,1,1,"read",1,1.0,1]',
    b'[1,null,1,1,1,"read",1,1.0,1]',
    b'[1,"\\ud800",5,1,1,"read",1,1.0,1]',
    b'[1,"s",5,1,1,"read",1,1.0,1,7,"[NaN]"]',
    b'[1,"s",5,1,1,"read",1,1.0,1,7,"[1,"]',
    b'[1,"s",5,1,1,"read",1,1.0,1,7,7]',
    b'[1,"s",5,1,1,"read",1,1.0,1,99999999999999999999,"[]"]',
    b'["serving",1,"s",5,"a","briefing","off","p",1,1]',
    b'["serving",1,"s",5,"a","briefing","on","p",-1,1]',
    b'["serving",1,null,5,"a","briefing","on","p",1,1]',
    b'["serving",1,"s",5,"\\ud800","briefing","on","p",1,1]',
    b'["seeing",1,"s",5,"a","briefing","on","p",1,1]',
    b'["serving",1,"s",5,"a","read","on","p",1,1]',
]


def journal_of(path: Path) -> Path:
    return path.with_name("record.db.reads")


def reads(desk: Desk, session: str = "s") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = desk.do("trace", ref=session)["reads"]
    return found


@pytest.fixture
def reader(ann: Desk) -> Desk:
    ann.write("a", 1)
    ann.begin("s")
    return ann


@contextmanager
def held(path: Path) -> Iterator[None]:
    """The record as a writer has it that has stopped in the middle: SQLite's write lock and the file lock."""
    connection = sqlite3.connect(path, isolation_level=None)
    lock = os.open(f"{path}.lock", os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE meta SET value = value")
        yield
    finally:
        connection.close()
        os.close(lock)


@pytest.mark.parametrize("verb", ["read", "brief", "search"])
def test_a_read_does_not_wait_for_a_writer(reader: Desk, path: Path, verb: str) -> None:
    """One stuck writer would stop every box from reading."""
    fields = {"read": {"entity": ENTITY, "key": "a"}, "brief": {"entity": ENTITY}, "search": {"entity": ENTITY, "query": "a"}}[
        verb
    ]
    answers: list[dict[str, Any]] = []
    asking = threading.Thread(target=lambda: answers.append(reader.do(verb, session="s", **fields)), daemon=True)
    with held(path):
        asking.start()
        asking.join(PATIENCE_SECONDS)
        assert not asking.is_alive(), "it waits"
    assert answers[0]["tracked"]
    assert [verb if verb != "brief" else "briefing"] == [read["how"] for read in reads(reader)]


def test_a_search_of_everything_does_not_wait_for_a_writer(reader: Desk, path: Path) -> None:
    """One stuck writer would stop everybody's search, since searching brings the text index up to date."""
    answers: list[dict[str, Any]] = []
    asking = threading.Thread(target=lambda: answers.append(reader.do("search", query="a")), daemon=True)
    with held(path):
        asking.start()
        asking.join(PATIENCE_SECONDS)
        assert not asking.is_alive(), "it waits"
    assert answers[0]["left_out"]["unindexed"]
    assert ["a"] == [found["key"] for found in reader.do("search", query="a")["results"]]


def test_a_read_is_noted_before_its_answer_leaves(reader: Desk, path: Path) -> None:
    """A box would know what nobody knows that it knows."""
    before = journal_of(path).stat().st_size
    reader.read("a", session="s")
    lines = journal_of(path).read_bytes()[before:]
    assert lines.endswith(b"\n")
    assert b'"s"' in lines


def test_what_was_withheld_is_logged_and_never_a_cause(reader: Desk) -> None:
    """A note that nobody was shown would be judged, and kept alive."""
    row = reader.service.record.store.row("versions_after", {"after": 0, "limit": 1})
    assert row is not None
    reader.service.record.note_reads(1, "s", [Shown(row[0], 3, "briefing", served=False, probability=0.25)], at=7)
    assert [] == reader.outcome("s")["moved"]
    with refused("unknown_entry"):
        reader.outcome("s", used=["a"])
    assert [(3, False, 0.25)] == [(read["rank"], read["served"], read["probability"]) for read in reads(reader)]
    assert 0 == reader.read("a")["recalls"]


def test_a_killed_process_loses_no_read(book: Book, path: Path) -> None:
    """What a run had read before its server died would never be judged."""
    code = f"""if True:
        import os, signal
        from pathlib import Path
        from tests.record.files import sqlite_book
        from herdbook.testing.records import person
        book = sqlite_book(Path({str(path)!r}))
        desk = person(book.open())
        desk.write("a", 1); desk.begin("s"); desk.read("a", session="s"); desk.brief(session="s")
        os.kill(os.getpid(), signal.SIGKILL)
    """
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], cwd=root, timeout=60, check=False)
    ann = person(book.open())
    assert [("a", "served")] == [(move["key"], move["how"]) for move in ann.outcome("s")["moved"]]
    assert ["read", "briefing"] == [read["how"] for read in reads(ann)]


def test_a_second_store_folds_what_the_first_has_noted(book: Book, reader: Desk) -> None:
    """A read would wait for its own process to write."""
    reader.read("a", session="s")
    second = person(book.open())
    second.write("b", 1)
    assert 1 == reader.read("a")["recalls"]
    second.write("b", 2)
    reader.write("b", 3)
    assert 1 == reader.read("a")["recalls"]


def test_the_file_starts_anew_when_it_is_large_and_folded(book: Book, reader: Desk, path: Path) -> None:
    """The journal would grow for ever, or be emptied of what is not in the record yet."""
    store = reader.service.record.store
    row = store.row("versions_after", {"after": 0, "limit": 1})
    assert row is not None
    other = person(book.open())
    count = 0
    while journal_of(path).stat().st_size < TRUNCATE_BYTES_MIN:
        store.note_reads([Exposure(1, "s", store.next_id(), row[0], 1, "read", 1, 1.0, 0) for _ in range(1000)])
        count += 1000
    generation = journal_of(path).read_bytes()[:HEADER_BYTES]
    other.write("b", 1)
    content = journal_of(path).read_bytes()
    assert HEADER_BYTES == len(content)
    assert generation != content
    for desk in (reader, other):
        desk.read("a", session="s")
        desk.write("b", desk.caller.identity, why=str(id(desk)))
    assert count + 2 == len(reads(reader)) == reader.read("a")["recalls"]


@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda g: ascii(g[:24]))
def test_garbage_in_the_file_stops_nothing(book: Book, reader: Desk, path: Path, garbage: bytes) -> None:
    """One torn line after a power cut would refuse every write from then on."""
    reader.read("a", session="s")
    with journal_of(path).open("ab") as file:
        file.write(garbage + b"\n")
    reader.read("a", session="s")
    reader.write("b", 1)
    assert 2 == len(reads(reader))
    assert 1 == reader.do("status")["record"]["reads_unreadable"]
    assert 2 == person(book.open()).read("a")["recalls"]


def test_a_torn_last_line_waits_for_nobody(reader: Desk, path: Path) -> None:
    """Half a line would be folded as a whole one, or hold up what is whole."""
    reader.read("a", session="s")
    with journal_of(path).open("ab") as file:
        file.write(b'[1,"s",7,')
    reader.write("b", 1)
    reader.write("b", 2)
    assert 1 == len(reads(reader))


def test_a_torn_line_swallows_nothing(reader: Desk, path: Path) -> None:
    """What a full disk tore would take the next read with it."""
    with journal_of(path).open("ab") as file:
        file.write(b'[1,"s",7,')
    reader.read("a", session="s")
    reader.write("b", 1)
    assert 1 == len(reads(reader))


@pytest.mark.parametrize("left", ["nothing", "half a header", "the header", "half of it"])
def test_a_shortened_file_takes_new_reads(book: Book, reader: Desk, path: Path, left: str) -> None:
    """After a power cut, as many reads would be passed over as had been lost."""
    for _ in range(10):
        reader.read("a", session="s")
    reader.write("b", 1)
    book.close()
    size = journal_of(path).stat().st_size
    os.truncate(journal_of(path), {"nothing": 0, "half a header": 10, "the header": HEADER_BYTES, "half of it": size // 2}[left])
    again = person(book.open())
    for _ in range(10):
        again.read("a", session="s")
    again.write("b", 2)
    assert 20 == len(reads(again)) == again.read("a")["recalls"]


def test_a_file_that_is_gone_is_made_again(book: Book, reader: Desk, path: Path) -> None:
    """A backup without the journal could not be opened."""
    reader.read("a", session="s")
    reader.write("b", 1)
    book.close()
    journal_of(path).unlink()
    again = person(book.open())
    again.read("a", session="s")
    again.write("b", 2)
    assert 2 == len(reads(again))


def test_a_clock_set_back_keeps_reads_in_order(book: Book, reader: Desk, path: Path) -> None:
    """A server restarted after a clock error would judge what was read first instead of last, and call its trace forged."""
    reader.read("a", session="s")
    reader.outcome("s", ref="o1")
    reader.write("a", 2)
    reader.read("a", session="s")
    reader.do("record_action", session="s", tool="after the last version")
    book.close()
    code = f"""if True:
        import time
        real = time.time_ns
        time.time_ns = lambda: real() - 365 * 86_400 * 10**9
        from pathlib import Path
        from tests.record.files import sqlite_book
        from herdbook.testing.records import person
        book = sqlite_book(Path({str(path)!r}))
        desk = person(book.open())
        desk.read("a", session="s", version=1)
        desk.outcome("s", "failure", ref="o2", used=[desk.named("a")])
        desk.write("a", 3)
        desk.read("a", session="s")
        desk.outcome("s", "failure", ref="o3", used=["a"])
        desk.do("attest", ref="o3", exit_code=1)
        book.close()
    """
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], timeout=60, check=True)
    ann = person(book.open())
    told = ann.do("trace", ref="s")
    assert "verified" == told["seal"]
    assert [1, 2, 1, 3] == [read["version"] for read in told["reads"]]
    assert [("o1", [1]), ("o2", [1]), ("o3", [3])] == [
        (outcome["ref"], [move["version"] for move in outcome["moved"]]) for outcome in told["outcomes"]
    ]


ids = st.integers(-(2**63) + 1, 2**63 - 1)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(
    st.builds(
        Exposure, ids, names, ids, ids, ids, st.sampled_from(["briefing", "read", "search"]), st.integers(0, 1),
        st.floats(0, 1, exclude_min=True) | st.just(1), ids, st.none() | ids, st.just("[]") | st.just("[0.25,-3,1e-09]"),
    )
)  # fmt: skip
def test_a_line_comes_back_as_it_went(exposure: Exposure) -> None:
    """What is noted would be folded as something else, or not at all."""
    line = journal.line(exposure)
    assert "\n" not in line[:-1]
    whole = line.encode()[:-1]
    expected = list(exposure) if exposure.serving is not None else list(exposure[:-2])
    assert [expected] == journal.parsed([whole])
    assert [expected, None, expected] == journal.parsed([whole, b"{torn", whole]), "one torn line takes only itself"


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_no_line_makes_the_reader_fail(line: bytes) -> None:
    """Some garbage would stop every write."""
    (found,) = journal.parsed([line])
    assert found is None or len(found) in (9, 10, 11)


def test_two_processes_never_take_one_id_for_two_reads(book: Book, reader: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the clock was set back, a read of one would pass for a read of the other, and be dropped."""
    now = time.time_ns()
    monkeypatch.setattr("time.time_ns", lambda: now - 60_000_000_000)
    for _ in range(4):
        person(book.open()).read("a", session="s")
    assert 4 == len(reads(reader))


def test_what_is_kept_between_briefings_is_never_old(book: Book, reader: Desk) -> None:
    """A briefing would show the trust of before an outcome that is already acknowledged, here or in another process."""
    other = person(book.open())
    for desk, expected in ((reader, 0.515), (other, 0.53045)):
        assert 1 == len(reader.brief()["entries"])
        desk.run(f"run-{expected}", used=["a"])
        for asked in (reader, other):
            assert expected == pytest.approx(asked.brief()["entries"][0]["confidence"])
            assert asked.brief()["entries"] == asked.brief()["entries"]
