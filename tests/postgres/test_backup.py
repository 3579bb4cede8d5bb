"""A record in PostgreSQL copied and put back, by herdbook and by a DBA's own pg_restore: the same rows, or doctor says so."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from herdbook.__main__ import main
from herdbook.base.settings import Database
from herdbook.record import backup
from herdbook.record.record import Record
from herdbook.record.store.postgres import copying, setup
from herdbook.testing.records import ENTITY, Book, Desk, person
from tests.postgres_server import LOGIN, server, tools
from tests.record.databases import postgres_book
from tests.record.test_backup import lived, shown

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's own pg_dump and pg_restore."""
    monkeypatch.setenv("PATH", f"{tools()}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def empty() -> Iterator[str]:
    """A database with nothing in it."""
    name = f"e{next(server().numbers)}"
    with server().admin() as admin:
        admin.execute(f"CREATE DATABASE {name}")
    yield name
    with server().admin() as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def copy(book: Book, ann: Desk, database: str, tmp_path: Path) -> Path:
    """Two tenants' record, copied."""
    lived(ann)
    book.tenant_maker(2)
    lived(person(ann.service, tenant=2))
    backup.take(Database(server().url(database)), tmp_path / "copy", at=1)
    return tmp_path / "copy"


def in_it(name: str) -> dict[str, tuple[int, str]]:
    with server().admin(name) as raw:
        return copying.tables_of(raw)


def found_in(name: str, key: Path) -> tuple[list[str], list[str]]:
    """What doctor's check finds, and which triggers are missing."""
    record = Record.open(Database(server().url(name, login=LOGIN)), key_file=key)
    status = record.status(1)
    record.close()
    return status["problems"], status["triggers_missing"]


def pg_restore(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = [str(tools() / "pg_restore"), "--no-password", f"--dbname={server().url(name)}", *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def made(name: str, *, schema: bool) -> None:
    """The roles, and an empty record if asked for."""
    setup.Setup.bring_up(server().url(name), post=True)
    with server().admin(name) as admin:
        admin.execute(
            "TRUNCATE herdbook.tenant, herdbook.multiplier, herdbook.migration CASCADE"
            if schema
            else "DROP SCHEMA herdbook CASCADE"
        )


def test_a_copy_put_back_is_the_record(
    copy: Path, ann: Desk, empty: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a server died, what was put back would not be what was lost, or one tenant's only."""
    monkeypatch.setenv("HERDBOOK_SEAL_KEY_FILE", str(tmp_path / "seal.key"))
    before = [shown(person(ann.service, tenant=tenant)) for tenant in (1, 2)]
    assert 0 == main(["restore", str(copy), "--record", server().url(empty), "--json"])
    assert json.loads(capsys.readouterr().out)["rows"] > 50
    assert ([], []) == found_in(empty, tmp_path / "seal.key")
    restored = postgres_book(empty, tmp_path / "seal.key")
    service = restored.open()
    assert before == [shown(person(service, tenant=tenant)) for tenant in (1, 2)]
    person(service).run("more", "success", used=["a"])  # ids, sequences and triggers go on from where they were
    assert ([], []) == found_in(empty, tmp_path / "seal.key")
    restored.close()
    assert 1 == main(["restore", str(copy), "--record", server().url(empty)])
    assert "there is a record in this database already" in capsys.readouterr().err


def test_what_was_put_back_is_planned_for(copy: Path, empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the server looks at the tables by itself, a briefing of a large path would walk all of it for each entry it shows."""
    monkeypatch.setenv("HERDBOOK_SEAL_KEY_FILE", str(tmp_path / "seal.key"))
    assert 0 == main(["restore", str(copy), "--record", server().url(empty), "--json"])
    with setup.logged_in(server().url(empty)) as raw:
        assert copying.one(raw, "SELECT reltuples FROM pg_class WHERE oid = 'herdbook.version'::regclass") > 0


def test_what_was_erased_before_the_copy_or_since_stays_erased(
    ann: Desk, database: str, empty: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restore would bring back whoever asked to be forgotten, or what they were asked to do."""
    monkeypatch.setenv("HERDBOOK_SEAL_KEY_FILE", str(tmp_path / "seal.key"))
    for agent in ("robin", "kim"):
        ann.do("start_session", session=agent, agent=agent, entity=ENTITY, task=f"ask {agent} for the keys of the shop")
        ann.write("tz", {"by": agent}, session=agent)
        ann.brief(session=agent)
        ann.outcome(agent, ref=f"{agent}.end", used=["tz"])
        ann.do("attest", ref=f"{agent}.end", exit_code=0)
    ann.do("erase", kind="author", subject="robin")
    backup.take(Database(server().url(database)), tmp_path / "copy", at=1)
    assert any("kim" in row[2] for row in ann.service.record.parts_asked(1, [ENTITY]))
    ann.do("erase", kind="author", subject="kim")
    assert 0 == main(["restore", str(tmp_path / "copy"), "--record", server().url(empty), "--json"])
    assert 1 == json.loads(capsys.readouterr().out)["erased_again"]
    restored = postgres_book(empty, tmp_path / "seal.key")
    desk = person(restored.open())
    assert [True, True] == [run["erased"] for run in desk.do("runs")["runs"]]
    assert {""} == {row[2] for row in desk.service.record.parts_asked(1, [ENTITY])}
    restored.close()


def test_a_parallel_restore_is_the_record(copy: Path, empty: str, tmp_path: Path) -> None:
    """A DBA in a hurry would get another record."""
    made(empty, schema=False)
    done = pg_restore(empty, "--jobs=2", "--exit-on-error", str(copy))
    assert (0, "") == (done.returncode, done.stderr)
    assert backup.read_copy(copy).tables == in_it(empty)
    assert ([], []) == found_in(empty, tmp_path / "seal.key")


def test_a_restore_of_rows_alone_is_refused_by_the_trigger(copy: Path, empty: str) -> None:
    """Every move would be made a second time, upon confidences that hold it already."""
    made(empty, schema=True)
    done = pg_restore(empty, "--data-only", str(copy))
    assert 0 != done.returncode
    assert "herdbook:append_only" in done.stderr
    assert 0 == in_it(empty)["outcome_cause"][0]


def test_a_restore_of_rows_alone_is_found_by_doctor(copy: Path, empty: str, tmp_path: Path) -> None:
    """Claims that rest on moves which are not there would pass for a record."""
    made(empty, schema=True)
    pg_restore(empty, "--data-only", str(copy))
    problems, _ = found_in(empty, tmp_path / "seal.key")
    assert [each for each in problems if each.endswith(("do not add up to its confidence", "is not there"))] == problems != []


def test_rows_alone_of_a_record_without_outcomes_are_found(ann: Desk, database: str, empty: str, tmp_path: Path) -> None:
    """A young record of which the claims alone came back would be well: nothing had moved them yet."""
    ann.write("a", 1)
    backup.take(Database(server().url(database)), tmp_path / "young", at=1)
    made(empty, schema=True)
    assert 0 != pg_restore(empty, "--data-only", str(tmp_path / "young")).returncode
    problems, _ = found_in(empty, tmp_path / "seal.key")
    assert [True] == [each.endswith("has claims and is not there") for each in problems]


def test_triggers_that_a_restore_left_passable_are_found(copy: Path, empty: str, tmp_path: Path) -> None:
    """pg_restore --disable-triggers turns them on again in a way that replication passes by; nobody would know."""
    made(empty, schema=True)
    done = pg_restore(empty, "--data-only", "--disable-triggers", "--exit-on-error", str(copy))
    assert (0, "") == (done.returncode, done.stderr)
    problems, _ = found_in(empty, tmp_path / "seal.key")
    assert "a trigger can be passed by: outcome_cause.outcome_cause_moves_trust_v1" in problems
    setup.Setup.bring_up(server().url(empty))
    assert ([], []) == found_in(empty, tmp_path / "seal.key")
    assert backup.read_copy(copy).tables == in_it(empty)


def test_a_login_below_row_security_takes_no_copy(ann: Desk, database: str, tmp_path: Path) -> None:
    """The copy would hold one tenant, or nothing, and pass for the whole."""
    ann.write("a", 1)
    url = server().url(database, login=LOGIN)
    assert 5 == main(["backup", str(tmp_path / "copy"), "--record", url])
    assert [] == [each.name for each in tmp_path.iterdir() if "copy" in each.name]


def test_without_the_programs_it_is_said(ann: Desk, database: str, tmp_path: Path, monkeypatch, capsys) -> None:
    """Whoever has no PostgreSQL on his machine would read about a file that is not there."""
    ann.write("a", 1)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert 3 == main(["backup", str(tmp_path / "copy"), "--record", server().url(database)])
    assert "pg_dump is not on the PATH: install PostgreSQL's client programs" in capsys.readouterr().err


def test_a_password_is_on_no_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """Everybody on the machine could read it in the list of processes."""
    seen = tmp_path / "seen"
    (tmp_path / "pg_dump").write_text(f'#!/bin/sh\necho "$@" > {seen}\necho "$PGPASSWORD" >> {seen}\n')
    (tmp_path / "pg_dump").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    copying.run("pg_dump", "postgresql://ann:hunter2@127.0.0.1:1/none", ["--file=x"])
    line, secret = seen.read_text().splitlines()
    assert "hunter2" == secret
    assert "hunter2" not in line
    assert "user=ann" in line
