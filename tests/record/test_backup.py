"""A copy of the whole record, taken while it is in use, and put back: the same rows, seals and trust, or a refusal."""

from __future__ import annotations

import json
import stat
import threading
from pathlib import Path

import pytest

from herdbook.base.clock import SystemClock
from herdbook.base.errors import Broken, Conflict, HerdbookError, InvalidRequest, NotFound, SchemaNewer, SealKeyWrong
from herdbook.base.settings import Database
from herdbook.record import backup
from herdbook.record.record import Record
from herdbook.record.store import sqlite_copy
from herdbook.service.door import Service
from herdbook.testing.records import Book, Desk, person
from tests.record.files import key_file, shell, sqlite_book

WRITERS = 4


def lived(ann: Desk) -> None:
    """A record with moves, a revision, an attestation and reads that nothing has followed."""
    ann.write("a", 1)
    ann.write("a", 2)
    ann.run("good", "success", used=["a"], ref="good")
    ann.run("bad", "failure", used=["a"], ref="bad")
    ann.do("revise_outcome", ref="bad", type="critical_failure")
    ann.do("attest", ref="good", exit_code=0)
    ann.begin("reader")
    ann.read("a", session="reader")


def shown(ann: Desk) -> list[object]:
    """What a record says of an entry: texts, seals and every move."""
    return [ann.history("a"), ann.claims("a"), ann.do("trace", ref="good"), ann.do("trace", ref="reader")]


def put_back(copy: Path, where: Path, key: Path) -> Book:
    backup.restore(copy, where, key_file=key, at=1)
    return Book(lambda clock: Service(Record.open(where, key_file=key), clock), lambda number: None)


def test_a_copy_put_back_is_the_record(ann: Desk, path: Path, tmp_path: Path) -> None:
    """After a disk died, what was put back would not be what was lost."""
    lived(ann)
    taken = backup.take(path, tmp_path / "copy", at=1)
    before = shown(ann)
    restored = put_back(tmp_path / "copy", tmp_path / "second" / "record.db", key_file(path))
    assert before == shown(person(restored.open()))
    assert [] == restored.opened[0].record.status(1)["problems"]
    restored.close()
    with shell(tmp_path / "copy") as raw:
        assert taken.tables == sqlite_copy.tables_of(raw)
        assert 3 == raw.execute("SELECT count(*) FROM read").fetchone()[0]  # the last one was in the journal only


def test_a_copy_taken_under_writers_is_of_one_moment(path: Path, tmp_path: Path) -> None:
    """A copy could hold an outcome without what it moved, or the fifth version without the fourth."""
    book, enough, ended = sqlite_book(path), threading.Event(), threading.Event()

    def writes(name: int) -> None:
        desk, nth = person(book.open(), f"w{name}"), 0
        while not ended.is_set():
            desk.write("a", f"{name}.{nth}")
            desk.run(f"{name}.{nth}", "failure", used=["a"])
            nth += 1
            if nth == 3:
                enough.set()

    threads = [threading.Thread(target=writes, args=(name,)) for name in range(WRITERS)]
    for thread in threads:
        thread.start()
    assert enough.wait(30)
    for nth in range(3):
        backup.take(path, tmp_path / f"copy{nth}", at=1)
    ended.set()
    for thread in threads:
        thread.join()
    for nth in range(3):
        restored = put_back(tmp_path / f"copy{nth}", tmp_path / f"{nth}.db", key_file(path))
        desk = person(restored.open())
        numbers = [version["version"] for version in desk.history("a")]
        assert list(range(1, len(numbers) + 1)) == sorted(numbers)
        assert all(claim["moves"][-1]["after"] == claim["confidence"] for claim in desk.claims("a") if claim["moves"])
        restored.close()
    book.close()


def test_nothing_is_written_over(ann: Desk, path: Path, tmp_path: Path) -> None:
    """The only good copy, or the record itself, would be gone by a slip of the hand."""
    ann.write("a", 1)
    backup.take(path, tmp_path / "copy", at=1)
    before = {each: each.read_bytes() for each in tmp_path.iterdir() if each.suffix != ".db-shm"}
    for attempt in (
        lambda: backup.take(path, tmp_path / "copy", at=2),
        lambda: backup.restore(tmp_path / "copy", path, key_file=key_file(path), at=2),
    ):
        with pytest.raises(Conflict, match="is there already"):
            attempt()
    assert before == {each: each.read_bytes() for each in before}
    (tmp_path / "gone.db-wal").touch()
    with pytest.raises(Conflict, match=r"gone\.db-wal"):
        backup.restore(tmp_path / "copy", tmp_path / "gone.db", key_file=key_file(path), at=2)


def test_only_the_owner_reads_a_copy(ann: Desk, path: Path, tmp_path: Path) -> None:
    """Whatever a fleet has learned would be open to everybody on the machine."""
    ann.write("a", 1)
    backup.take(path, tmp_path / "copy", at=1)
    backup.restore(tmp_path / "copy", tmp_path / "second.db", key_file=key_file(path), at=1)
    assert {0o600} == {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("copy", "copy.json", "second.db")}
    assert [] == [each.name for each in tmp_path.iterdir() if each.name.endswith(".part")]


def broken_copies() -> dict[str, tuple[type[HerdbookError], str]]:
    return {
        "one byte of it": (Broken, "SHA-256"),
        "its last page": (Broken, "SHA-256"),
        "what it must hold": (Broken, "does not say"),
        "a part": (NotFound, "two files"),
        "its schema": (SchemaNewer, "upgrade herdbook"),
        "its engine": (InvalidRequest, "on postgres"),
        "the key": (SealKeyWrong, "not the seal key of this copy"),
    }


@pytest.mark.parametrize("what", broken_copies())
def test_a_copy_that_is_not_whole_is_refused(ann: Desk, path: Path, tmp_path: Path, what: str) -> None:
    """A damaged copy, or one that goes with another key, would be found out only once the record is needed."""
    ann.write("a", 1)
    copy, key = tmp_path / "copy", tmp_path / "other.key"
    key.write_bytes(key_file(path).read_bytes())
    backup.take(path, copy, at=1)
    beside, whole = backup.beside(copy), copy.read_bytes()
    said = json.loads(beside.read_text())
    if what == "one byte of it":
        copy.write_bytes(whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])
    elif what == "its last page":
        copy.write_bytes(whole[:-4096])
    elif what == "what it must hold":
        beside.write_text("{}")
    elif what == "a part":
        beside.unlink()
    elif what == "the key":
        key.write_text("ab" * 32)
    else:
        beside.write_text(json.dumps(said | ({"schema": 999} if what == "its schema" else {"engine": "postgres"})))
    refusal, match = broken_copies()[what]
    with pytest.raises(refusal, match=match):
        backup.restore(copy, tmp_path / "new" / "record.db", key_file=key, at=1)
    assert not (tmp_path / "new" / "record.db").exists()


def test_a_copy_on_another_engine_is_refused(ann: Desk, path: Path, tmp_path: Path) -> None:
    """A file of SQLite would be handed to pg_restore."""
    ann.write("a", 1)
    backup.take(path, tmp_path / "copy", at=1)
    with pytest.raises(InvalidRequest, match="on sqlite"):
        backup.restore(tmp_path / "copy", Database("postgresql://127.0.0.1:1/none"), key_file=key_file(path), at=1)


def test_doctor_knows_when(ann: Desk, path: Path, tmp_path: Path) -> None:
    """Nobody could tell a record that is copied every night from one that never was."""
    ann.write("a", 1)
    at = SystemClock().now()
    backup.take(path, tmp_path / "copy", at=at)
    facts = ann.service.record.status(1)["record"]
    assert ("backup_at" in facts, "restored_at" in facts) == (True, False)
    restored = put_back(tmp_path / "copy", tmp_path / "second.db", key_file(path)).open()
    assert "1970-01-01T00:00:00.000001Z" == restored.record.status(1)["record"]["restored_at"]
    restored.close()
