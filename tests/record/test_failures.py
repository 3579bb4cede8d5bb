"""What goes wrong in the middle: a killed writer, a full disk, a statement that fails. All of it is stored, or none."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from herdbook.base.errors import Broken, HerdbookError
from herdbook.record.store.sqlite import SqliteStore
from herdbook.testing.records import Book, Desk, as_bytes, person, refused
from tests.record.files import shell

ROOT = Path(__file__).parents[2]
SEED = 20_260_101
WRITER = """if True:
    import sys
    from pathlib import Path
    from tests.record.files import sqlite_book
    from herdbook.testing.records import person
    desk = person(sqlite_book(Path(sys.argv[1])).open())
    name = sys.argv[2]
    desk.begin("s")
    print("begun", flush=True)
    for n in range(10**6):
        version = desk.write("shared", f"{name}-{n}", request_id=f"{name}-w{n}", session="s")["version"]
        print("w", n, version, flush=True)
        desk.read("shared", session="s")
        desk.outcome("s", "success" if n % 3 else "failure", ref=f"{name}-o{n}", used=["shared"])
        print("o", n, 0, flush=True)
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_writer_loses_nothing_it_acknowledged(book: Book, path: Path) -> None:
    """What was told as done would be gone, done twice by the retry, or leave a gap."""
    kills = 100 if hypothesis.settings().max_examples >= 1_000 else 15
    print(f"seed {SEED}")
    luck = random.Random(SEED)
    ann = person(book.open())
    for kill in range(kills):
        name = f"k{kill}"
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(path), name], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert "begun\n" == process.stdout.readline()
        until = time.monotonic() + luck.uniform(0.0, 0.06)
        while time.monotonic() < until:
            pass
        process.send_signal(signal.SIGKILL)
        acknowledged = [line.split() for line in process.stdout.read().splitlines() if len(line.split()) == 3]
        process.stdout.close()
        process.wait(30)
        versions = {version["value"]: version["version"] for version in ann.history("shared")} if acknowledged else {}
        for what, n, version in acknowledged:
            if what == "w":
                assert int(version) == versions[f"{name}-{n}"]
            else:
                ann.do("trace", ref=f"{name}-o{n}")
        writes = sum(what == "w" for what, *_ in acknowledged)
        answer = ann.write("shared", f"{name}-{writes}", request_id=f"{name}-w{writes}", session="s")  # it may have been done
        assert len(ann.history("shared")) == answer["version"] or answer["version"] == versions.get(f"{name}-{writes}")
    numbers = [version["version"] for version in ann.history("shared")]
    assert list(range(1, len(numbers) + 1)) == numbers
    assert len(numbers) == len({version["value"] for version in ann.history("shared")})
    assert ([], "verified") == (ann.do("status")["problems"], ann.do("trace", ref="s")["seal"])


@pytest.mark.slow
def test_a_full_disk_is_said_and_forgotten_when_there_is_room(path: Path) -> None:
    """A full disk would lose what was acknowledged, stop reads, or need a restart."""
    code = f"""if True:
        import os, resource
        from pathlib import Path
        from tests.record.files import sqlite_book
        from herdbook.base.errors import Broken, HerdbookError
        from herdbook.testing.records import person
        path = Path({str(path)!r})
        desk = person(sqlite_book(path).open())
        desk.begin("s")
        free = resource.getrlimit(resource.RLIMIT_FSIZE)
        sizes = [file.stat().st_size for file in path.parent.iterdir()]
        resource.setrlimit(resource.RLIMIT_FSIZE, (max(sizes) + 100_000, free[1]))
        done, codes = 0, set()
        for n in range(200):
            try:
                desk.write(f"k{{n}}", "x" * 5000, request_id=f"r{{n}}")
                done += 1
                assert not codes, "nothing got smaller"
            except HerdbookError as problem:
                codes.add(problem.code)
                break
        assert codes == {{"disk_full"}}, codes
        for n in range(done):
            assert desk.read(f"k{{n}}")["version"] == 1
        try:
            desk.write("k0", 1, if_version=0)
        except HerdbookError as problem:
            assert problem.code in ("disk_full", "version_conflict"), problem.code
        resource.setrlimit(resource.RLIMIT_FSIZE, free)
        for n in range(done, done + 5):
            assert desk.write(f"k{{n}}", "x" * 5000, request_id=f"r{{n}}")["version"] == 1
        assert desk.do("status")["counts"]["versions"] == done + 5
        print(done)
    """
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60, check=False, capture_output=True, text=True)
    assert 0 == answer.returncode, answer.stderr
    assert 0 < int(answer.stdout) < 200


BAD = "\ud800"
ENTRY = {"entity": "a", "key": "a", "value": 1}
NEED_A_SESSION = ("record_action", "record_context", "attempt", "commit_outcome")
HOLED: list[tuple[str, dict[str, Any]]] = [
    ("read", {"entity": "a", "key": "a", "session": BAD}),
    ("read", {"entity": BAD, "key": "a"}),
    ("search", {"query": BAD}),
    ("brief", {"entity": "a", "task": BAD}),
    ("brief", {"entity": "a", "session": BAD}),
    ("end_session", {"session": BAD}),
    ("start_session", {"agent": BAD}),
    ("start_session", {"agent": "a", "task": BAD}),
    ("list", {"after": BAD}),
    ("list", {"after": '["\\ud800", ""]'}),
    ("trace", {"ref": BAD}),
    ("box_list", {"label": BAD}),
    ("box_beat", {"box": BAD}),
    ("attest", {"ref": BAD, "exit_code": 0}),
    ("revise_outcome", {"ref": BAD, "type": "success"}),
    ("record_action", {"session": BAD, "tool": "x"}),
    ("record_action", {"tool": BAD}),
    ("record_action", {"tool": "x", "args": BAD}),
    ("record_context", {"name": "x", "text": BAD}),
    ("attempt", {"result": "failure", "used": [BAD]}),
    ("commit_outcome", {"session": BAD, "type": "success"}),
    ("commit_outcome", {"type": BAD}),
    *[("commit_outcome", {"type": "success", name: BAD}) for name in ("ref", "artifacts", "verified_by", "task_input")],
    *[("commit_outcome", {"type": "success", name: [BAD]}) for name in ("observed", "used")],
    *[("write", ENTRY | {name: BAD}) for name in ("value", "why", "request_id", "applies_when", "session", "expires_at")],
    ("write", ENTRY | {"links": [{"rel": "supports", "entity": BAD, "key": "x"}]}),
]


def writer_of(desk: Desk) -> sqlite3.Connection:
    store = desk.service.record.store
    assert isinstance(store, SqliteStore)
    return store._writer.raw


@pytest.mark.parametrize("verb", ["write", "commit_outcome", "attest", "revise_outcome", "start_session"])
def test_a_statement_that_fails_undoes_all_before_it(ann: Desk, path: Path, verb: str) -> None:
    """Half of an outcome would be stored, and its retry refused or counted twice."""
    for key in ("a", "b"):
        ann.write(key, 1)
    ann.begin("s")
    ann.read("a", session="s")
    ann.outcome("s", ref="known", used=[ann.named("a")])
    requests: dict[str, dict[str, Any]] = {
        "write": {"entity": "acme/new", "key": "c", "value": 1, "why": "w", "request_id": "r"},
        "commit_outcome": {"session": "s", "type": "failure", "ref": "new", "used": [ann.named("a"), ann.named("b")]},
        "attest": {"ref": "known", "exit_code": 1},
        "revise_outcome": {"ref": "known", "type": "failure", "request_id": "r"},
        "start_session": {"session": "t", "agent": "x"},
    }
    fields = requests[verb]
    connection = writer_of(ann)
    before = dump(path)
    for steps in range(1, 10_000):
        left = [steps]

        def run_out(left: list[int] = left) -> int:
            left[0] -= 1
            return int(left[0] == 0)

        connection.set_progress_handler(run_out, 10)  # the statement is interrupted after so many steps of SQLite's machine
        try:
            ann.do(verb, **fields)
            break
        except Broken:
            assert before == dump(path)
        finally:
            connection.set_progress_handler(None, 0)
    else:
        pytest.fail("it never got through")
    assert steps > 3, "nothing was interrupted"
    assert before != dump(path)
    after = as_bytes(ann.claim("a"))
    if verb != "start_session":
        ann.do(verb, **fields)
        assert after == as_bytes(ann.claim("a"))


def dump(path: Path) -> list[str]:
    """Everything that is stored, except how far the journal has been folded."""
    raw = shell(path)
    try:
        return [line for line in raw.iterdump() if "reads_journal" not in line and not line.startswith('INSERT INTO "read"')]
    finally:
        raw.close()


def test_a_mistake_of_ours_undoes_the_transaction(ann: Desk) -> None:
    """A bug in one verb would leave the record locked, or half a change in it."""
    store = ann.service.record.store

    def mistake(tx: object) -> None:
        tx.run("set_meta", {"name": "half", "value": "done"})  # type: ignore[attr-defined]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.write(mistake)
    assert store.row("meta", {"name": "half"}) is None
    assert 1 == ann.write("a", 1)["version"]


def test_a_record_that_was_closed_stays_closed(book: Book, ann: Desk, tmp_path: Path) -> None:
    """Closing twice would close somebody else's file, which has its number by now."""
    ann.service.close()
    with (tmp_path / "others").open("wb") as others:
        ann.service.close()
        others.write(b"still open")
        others.flush()
    assert b"still open" == (tmp_path / "others").read_bytes()


def test_a_lone_surrogate_is_refused_wherever_it_comes(ann: Desk) -> None:
    """One character would make the server answer that it is broken."""
    ann.begin("s")
    before = ann.do("status")["counts"]
    for verb, fields in HOLED:
        fields = ({"session": "s"} if verb in NEED_A_SESSION else {}) | fields
        status = status_of(ann, verb, fields)
        assert 400 <= status < 500 or (status == 200 and verb in ("search", "brief", "box_list")), f"{verb} {fields}: {status}"
    assert before == ann.do("status")["counts"]


def status_of(desk: Desk, verb: str, fields: dict[str, Any]) -> int:
    try:
        desk.do(verb, **fields)
    except HerdbookError as problem:
        return problem.status
    return 200


@pytest.mark.parametrize("after", ["x", "{}", "[1,2]", '["a"]', "[" * 5000, "null", '["a","b","c"]', "NaN"])
def test_a_page_that_is_none_is_refused(ann: Desk, after: str) -> None:
    """A mistyped page would make the server answer that it is broken."""
    with refused("invalid_request"):
        ann.do("list", after=after)


@pytest.mark.parametrize(
    "at", ["tomorrow", "", "2026-13-01", "9999-12-31T23:59:59-14:00", "2026-01-01T00:00:00+99:00", "1969-12-31", "0001-01-01"]
)
def test_a_time_that_is_none_is_refused(ann: Desk, at: str) -> None:
    """A note would expire never, or at once."""
    with pytest.raises(HerdbookError) as caught:
        ann.write("a", 1, expires_at=at)
    assert 400 == caught.value.status
