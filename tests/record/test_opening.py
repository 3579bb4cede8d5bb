"""Opening a file: ours is brought up to date by whoever comes first, anybody else's stays as it is."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from herdbook.base.errors import Broken, HerdbookError
from herdbook.record.store.sqlite import APPLICATION_ID, SCHEMA, SqliteStore
from herdbook.testing.records import Book, Desk, person, refused
from tests.record.files import shell, sqlite_book

ROOT = Path(__file__).parents[2]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_newer_schema_is_refused_and_left_alone(book: Book, ann: Desk, path: Path) -> None:
    """An old herdbook would write what a new one cannot read."""
    ann.write("a", 1)
    book.close()
    with closing(shell(path)) as raw:
        raw.execute(f"PRAGMA user_version={SCHEMA + 1}")
    before = digest(path)
    for _ in range(2):
        with refused("schema_newer", saying="upgrade"):
            book.open()
    assert before == digest(path)


@pytest.mark.parametrize("tables", ["CREATE TABLE theirs (x)", "CREATE VIEW theirs AS SELECT 1"])
def test_a_database_of_another_application_is_left_alone(book: Book, path: Path, tables: str) -> None:
    """Somebody's own data would get our tables, and our triggers."""
    with closing(shell(path)) as raw:
        raw.execute(tables)
    before = digest(path)
    with refused("broken", saying="another application"):
        book.open()
    assert before == digest(path)


@pytest.mark.parametrize(
    "content", [b"not a database at all, but long enough to look at" * 100, b"SQLite format 3\x00" + b"\xff" * 5000]
)
def test_a_file_that_is_no_database_is_left_alone(book: Book, path: Path, content: bytes) -> None:
    """A mistyped path would cost somebody a file, or show a traceback."""
    path.write_bytes(content)
    with pytest.raises(HerdbookError):
        book.open()
    assert content == path.read_bytes()


def test_a_folder_is_not_a_record(tmp_path: Path) -> None:
    """A mistyped path would show a traceback."""
    with refused("invalid_request", saying="cannot be opened"):
        sqlite_book(tmp_path).open()


def test_a_refused_file_leaves_nothing_open(book: Book, path: Path) -> None:
    """A server that keeps trying would run out of files."""
    path.write_bytes(b"not a database at all")
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    for _ in range(5):
        with pytest.raises(Broken):
            book.open()
    after = len(os.listdir("/proc/self/fd")) if before else 0
    assert before == after


def test_closing_leaves_nothing_open(path: Path) -> None:
    """A process that opens records one after another would run out of files."""
    if not Path("/proc/self/fd").exists():
        pytest.skip("this system does not list a process's open files")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        book = sqlite_book(path)
        person(book.open()).write("a", 1)
        book.close()
    assert before == len(os.listdir("/proc/self/fd"))


@pytest.mark.slow
def test_eight_processes_may_be_the_first(path: Path) -> None:
    """A fleet that starts together would make a record of halves, or of several keys."""
    code = f"""if True:
        import sys
        from pathlib import Path
        from tests.record.files import sqlite_book
        from herdbook.testing.records import person
        sys.stdin.read()
        book = sqlite_book(Path({str(path)!r}))
        desk = person(book.open(), sys.argv[1])
        print(*[desk.write("shared", sys.argv[1] + str(n))["version"] for n in range(5)])
        book.close()
    """
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, f"p{n}"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for n in range(8)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()  # all start now
    numbers: list[int] = []
    for process in processes:
        assert process.stdout is not None
        numbers += map(int, process.stdout.read().split())
        process.stdout.close()
        assert 0 == process.wait(60)
    assert list(range(1, 41)) == sorted(numbers)
    book = sqlite_book(path)
    ann = person(book.open())
    assert ({"verified"}, 40) == ({v["seal"] for v in ann.history("shared")}, len(ann.history("shared")))
    assert [] == ann.do("status")["problems"]
    book.close()


def test_the_file_says_whose_it_is_and_how_it_is_kept(ann: Desk, raw: sqlite3.Connection) -> None:
    """Another program could not tell what it has before it; a crash would cost what was acknowledged."""
    pragmas = {name: raw.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version", "journal_mode")}
    assert {"application_id": APPLICATION_ID, "user_version": SCHEMA, "journal_mode": "wal"} == pragmas
    facts = ann.do("status")["record"]
    assert ("FULL", SCHEMA, "wal") == (facts["synchronous"], facts["schema"], facts["journal_mode"])


@pytest.mark.parametrize("synchronous, level", [("FULL", 2), ("NORMAL", 1)])
def test_durability_is_what_was_asked_for(path: Path, synchronous: str, level: int) -> None:
    """The default would give up acknowledged writes without saying so."""
    store = SqliteStore(path, synchronous=synchronous)
    assert level == store.write(lambda tx: tx.raw.execute("PRAGMA synchronous").fetchone()[0])
    store.close()


def test_a_missing_trigger_is_said(ann: Desk, raw: sqlite3.Connection) -> None:
    """A record in which trust no longer moves would look healthy."""
    assert [] == ann.do("status")["triggers_missing"]
    names = [row[0] for row in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")]
    for name in names:
        raw.execute(f"DROP TRIGGER {name}")
    assert sorted(names) == ann.do("status")["triggers_missing"]


def test_another_writers_lock_is_waited_for(ann: Desk, raw: sqlite3.Connection) -> None:
    """The sqlite3 shell, which knows nothing of our file lock, would make our writers fail at once."""
    import threading

    raw.execute("BEGIN IMMEDIATE")
    answers: list[int] = []
    writer = threading.Thread(target=lambda: answers.append(ann.write("a", 1)["version"]), daemon=True)
    writer.start()
    writer.join(0.2)
    assert writer.is_alive()
    raw.execute("COMMIT")
    writer.join(20)
    assert [1] == answers


def test_two_names_of_one_file_are_one_record(ann: Desk, path: Path) -> None:
    """Through a link beside it, the record would have a second lock and a second journal, and lose reads and writes."""
    ann.begin("s")
    ann.write("a", 1)
    alias = path.with_name("alias.db")
    alias.symlink_to(path)
    with closing(sqlite_book(alias).open()) as other:
        person(other).read("a", session="s")
        assert not alias.with_name("alias.db.lock").exists()
    assert ["read"] == [read["how"] for read in ann.do("trace", ref="s")["reads"]]


def test_a_foreign_file_gets_no_lock_file_beside_it(tmp_path: Path) -> None:
    """A mistyped --record would leave a lock file that another program takes for its own."""
    foreign = tmp_path / "passwd"
    foreign.write_text("root:x:0:0\n" * 100)
    with pytest.raises(Broken):
        SqliteStore(foreign)
    assert ["passwd"] == sorted(os.listdir(tmp_path))
