"""Opening a record: by many at once, by older software, where nothing may be written, on both sides of a fork, and closing it."""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import herdbook
from herdbook.base.errors import HerdbookError
from tests.crash import invariants
from tests.crash.running import Program, environment
from tests.crash.test_disk_full import small_disk

ENTITY = "acme/ci"
TIMES = 10


@pytest.mark.slow
def test_eight_processes_open_a_fresh_record_at_once(home: Path) -> None:
    """A fleet that starts together would find a record half made, or one of its processes without the key."""
    with Program("opener", "at_once", str(home), str(TIMES), home=home) as program:
        for nth in range(TIMES):
            assert [0] * 8 == program.must_say(), f"some of eight could not write, in the {nth}th fresh record"
            record = home / f"home-{nth}" / "record.db"
            invariants.check(record)
            assert {f"p{who}" for who in range(8)} == set(invariants.versions_by_request(record))


def test_a_newer_schema_is_left_as_it_is(home: Path) -> None:
    """Older software would damage what newer software wrote, by a checkpoint as much as by a write."""
    record = home / "record.db"
    newer = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('PRAGMA user_version=99'); c.commit(); os._exit(0)"
    )
    herdbook.open(record).close()
    subprocess.run([sys.executable, "-c", newer, str(record)], check=True, timeout=60)  # goes away without closing: the log stays
    files = [record, home / "record.db-wal"]
    before = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    for _ in range(2):
        with pytest.raises(HerdbookError, match="upgrade herdbook") as refusal:
            herdbook.open(record)
        assert "schema_newer" == refusal.value.code
    answer = subprocess.run(
        [sys.executable, "-m", "herdbook", "ls"], capture_output=True, text=True, env=environment(home), timeout=60
    )
    assert 0 != answer.returncode
    assert "upgrade herdbook" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert before == [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]


@pytest.mark.parametrize(
    "content", [b"not a database, but long enough to be looked at as one" * 40, b"SQLite format 3\0" + b"\xff" * 4096]
)
def test_what_is_no_record_is_left_as_it_is(home: Path, content: bytes) -> None:
    """A mistyped path would cost somebody a file."""
    record = home / "record.db"
    record.write_bytes(content)
    with pytest.raises(HerdbookError) as refusal:
        herdbook.open(record)
    assert "broken" == refusal.value.code
    assert content == record.read_bytes()


def test_another_applications_database_is_left_as_it_is(home: Path) -> None:
    """herdbook would put its tables into somebody else's database."""
    record = home / "record.db"
    connection = sqlite3.connect(record)
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()
    before = record.read_bytes()
    with pytest.raises(HerdbookError, match="another application"):
        herdbook.open(record)
    assert before == record.read_bytes()


@pytest.mark.slow
def test_a_place_where_nothing_may_be_written(home: Path) -> None:
    """Somebody without the permission would get a traceback instead of what to do."""
    disk, elsewhere = home / "disk", home / "elsewhere"
    disk.mkdir()
    elsewhere.mkdir()
    begin = "import herdbook; herdbook.open(session='').write('acme/ci', 'k', 1)"
    script = f'DISK="$1"; shift; HERDBOOK_HOME="$DISK/home" "$1" -c "{begin}" && mount -o remount,ro "$DISK" && exec "$@"'
    wrapped = (*small_disk(), str(disk), "sh", "-c", script, "sh", str(disk))
    with Program("opener", "read_only", str(disk), str(elsewhere), home=home, wrapped_by=wrapped) as program:
        said = program.must_say()
    assert {} == {name: what for name, what in said.items() if what.startswith("untyped") or what == "opened"}, said
    assert {"invalid_request"} == {said[name].split(":")[0] for name in ("new record", "new record, old home", "old record")}, (
        said
    )


@pytest.mark.parametrize(
    "path", ["", "/dev/null", "/proc/nowhere/record.db", "{home}", "{home}/file/record.db", "{home}/" + "n" * 300]
)
def test_a_path_that_cannot_be_a_record(home: Path, path: str) -> None:
    """A mistyped path would end in a traceback."""
    (home / "file").write_text("a file, no folder")
    with pytest.raises(HerdbookError):
        herdbook.open(path.format(home=home) or home / "\0")


@pytest.mark.slow
def test_a_fork_does_not_share_what_must_not_be_shared(home: Path) -> None:
    """A server that forks its workers after opening would lose writes it acknowledged."""
    with Program("opener", "forks", str(home), home=home) as program:
        in_child, parent = program.must_say(), program.must_say()
    assert {"opened"} == {in_child.pop("close")}
    assert [] == [said for said in in_child.values() if "after the fork" not in said]
    assert {"after": 0} == parent
    record = home / "record.db"
    invariants.check(record)
    assert {"before", "after", *(f"parent-{n}" for n in range(50))} == set(invariants.versions_by_request(record))


@pytest.mark.slow
def test_a_turn_to_write_ends_with_the_process_that_has_it(home: Path) -> None:
    """A child that outlives its parent would keep everybody from writing for as long as it runs."""
    with Program("opener", "lock_outlives", str(home), home=home) as program:
        child = program.must_say()["child"]
        program.process.kill()
        program.process.wait(60)
        try:
            opening = threading.Thread(target=lambda: herdbook.open(home / "record.db").close(), daemon=True)
            opening.start()
            opening.join(20)
            assert not opening.is_alive(), "nobody can have a turn"
        finally:
            os.kill(child, signal.SIGKILL)  # it waits for that, so the number is still its own


@pytest.mark.slow
def test_a_record_opened_twice_in_one_process_keeps_its_log(home: Path) -> None:
    """A second client in an agent's process, and one command beside it, would cost the writes the first was told are safe."""
    record = home / "record.db"
    with Program("opener", "twice", str(home), home=home) as program:
        assert program.must_say() == {"opened": True}
        command = [sys.executable, "-m", "herdbook", "write", ENTITY, "other", "1", "--why", "w"]
        subprocess.run(command, env=environment(home), check=True, timeout=60, capture_output=True)
        program.tell("go on")
        assert program.must_say() == {"written": True}
        invariants.check(record)
        assert {"second-0", *(f"first-{n}" for n in range(20))} <= set(invariants.versions_by_request(record))


def test_threads_that_come_and_go_leave_no_files_open(home: Path) -> None:
    """A process with a thread for each request would run out of files."""

    def ask() -> None:
        client.read(ENTITY, "k")
        client.history(ENTITY, "k")

    with herdbook.open(home / "record.db", session="") as client:
        client.write(ENTITY, "k", 1, why="w")
        before = len(os.listdir("/dev/fd"))
        for _ in range(200):
            thread = threading.Thread(target=ask)
            thread.start()
            thread.join(60)
        assert len(os.listdir("/dev/fd")) < before + 30


def test_closing_twice_and_using_what_is_closed(home: Path) -> None:
    """A file that was opened since would be locked or closed in its place."""
    client = herdbook.open(home / "record.db", session="")
    client.write(ENTITY, "k", 1, why="w")
    client.close()
    others = [os.open(home / "other", os.O_RDWR | os.O_CREAT) for _ in range(10)]
    client.close()
    for ask in (lambda: client.write(ENTITY, "k", 2), lambda: client.read(ENTITY, "k"), lambda: client.brief(ENTITY)):
        with pytest.raises(HerdbookError):
            ask()
    for descriptor in others:
        os.close(descriptor)  # still ours
