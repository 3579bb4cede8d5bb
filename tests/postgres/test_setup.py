"""`herdbook db`: a database made, looked at and brought up to date, and what a server says of one that is not ready for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from herdbook.__main__ import main
from herdbook.base.errors import Broken, HerdbookError, SchemaNewer
from herdbook.record.store.postgres import setup
from herdbook.record.store.postgres.store import PostgresStore
from tests.postgres_server import LOGIN, server


@pytest.fixture
def empty() -> Iterator[str]:
    """A database with nothing in it."""
    name = f"e{next(server().numbers)}"
    with server().admin() as admin:
        admin.execute(f"CREATE DATABASE {name}")
    yield name
    with server().admin() as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def herdbook(*line: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(list(line))
    return code, capsys.readouterr().out


def test_a_database_is_made_once(empty: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A DBA could not tell whether it is done, or would do it twice."""
    url = server().url(empty)
    with pytest.raises(Broken, match="herdbook db init"):
        PostgresStore(url)
    code, told = herdbook("db", "status", "--record", url, capsys=capsys)
    assert (1, True, False) == (code, "herdbook db init makes one" in told, "tenants are kept apart" in told)
    code, told = herdbook("db", "init", "--record", url, "--json", capsys=capsys)
    assert (0, [name for _, name, _ in setup.MIGRATIONS]) == (code, json.loads(told)["applied"])
    code, told = herdbook("db", "init", "--record", url, capsys=capsys)
    assert (0, "the schema is up to date\n") == (code, told)
    code, told = herdbook("db", "status", "--record", url, "--json", capsys=capsys)
    assert (0, "", [], []) == (code, *(json.loads(told)[name] for name in ("wrong", "missing", "mistakes")))
    PostgresStore(server().url(empty, login=LOGIN)).close()


def test_a_servers_login_is_made_out_of_its_passfile(empty: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever starts with a compose file would have nobody to log in as; a superuser's password would change by a slip."""
    url, passfile = server().url(empty), tmp_path / "login"
    made = ("db", "init", "--record", url, "--login-of", str(passfile), "--json")
    name = f"made_{empty}"
    try:
        for password in ("first", "se\\:cond"):
            passfile.write_text(f"# a comment\ndb:5432:herdbook:{name}:{password}\n")
            code, told = herdbook(*made, capsys=capsys)
            assert (0, name) == (code, json.loads(told)["login"])
            assert "cond" not in told
        PostgresStore(server().url(empty, login=name)).close()
        with server().admin(empty) as admin:
            digest, above = admin.execute(
                "SELECT rolpassword, rolsuper FROM pg_authid WHERE rolname = %s", (name,)
            ).fetchone() or ("", 1)
        assert digest.startswith("SCRAM-SHA-256$")
        assert not above
        for line, why in (
            ("db:5432:x:postgres:p", "above row security"),
            ("db:5432:x", "user or password"),
            ("", "user or password"),
        ):
            passfile.write_text(line)
            with pytest.raises(HerdbookError, match=why):
                setup.Setup.make_login(url, passfile)
    finally:
        with server().admin(empty) as admin:
            admin.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


def test_what_is_printed_is_what_is_run(empty: str, database: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A DBA would read one thing, and get another."""
    script = herdbook("db", "init", "--print-sql", capsys=capsys)[1]
    with server().admin(empty) as admin:
        admin.execute(script.encode())
    tables = (
        "SELECT attrelid::regclass::text, attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute a"
        " JOIN pg_class c ON c.oid = a.attrelid WHERE relnamespace = 'herdbook'::regnamespace AND attnum > 0 ORDER BY 1, 2"
    )
    with server().admin(empty) as one, server().admin(database) as other:
        assert other.execute(tables).fetchall() == one.execute(tables).fetchall()
        assert [] == setup.mistakes_in(one)


def test_a_server_takes_only_a_schema_it_knows(empty: str) -> None:
    """An old server would go on writing into a schema that no longer means what it thinks."""
    url = server().url(empty)
    setup.Setup.bring_up(url, post=True)
    later = setup.SCHEMA + 1
    with server().admin(empty) as admin:
        admin.execute("INSERT INTO herdbook.migration (number, name) VALUES (%s, %s)", (later, f"{later:04}_more"))
        PostgresStore(url).close()  # what old servers survive is applied before they end
        admin.execute("INSERT INTO herdbook.migration (number, name) VALUES (%s, %s)", (later + 1, f"{later + 1:04}_post_less"))
        with pytest.raises(SchemaNewer, match="_post_less"):
            PostgresStore(url)
        admin.execute("DELETE FROM herdbook.migration WHERE number >= %s", (setup.SCHEMA,))
    with pytest.raises(Broken, match="herdbook db migrate"):
        PostgresStore(url)


def test_two_at_once_make_one(empty: str) -> None:
    """Two DBAs, or two replicas of one job, would leave half a schema."""
    from concurrent.futures import ThreadPoolExecutor

    def bring_up(_: int) -> list[str] | str:
        try:
            return setup.Setup.bring_up(server().url(empty))
        except HerdbookError as problem:
            return problem.code

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(bring_up, range(2)))
    assert any(isinstance(each, list) for each in done)
    assert [] == setup.Setup.bring_up(server().url(empty))
    assert [] == setup.Setup.how_it_is(server().url(empty))["mistakes"]


def test_no_password_is_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The address of the record is in every status, log and error."""
    code = main(["status", "--record", "postgresql://ann:hunter2@127.0.0.1:1/none"])
    told = capsys.readouterr()
    assert 0 != code
    assert "hunter2" not in told.out + told.err


@pytest.mark.parametrize("line", [("db", "status"), ("db", "init"), ("status",), ("backup", "copy")])
def test_an_address_that_leads_nowhere_is_said(line: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever misspelt the database would be told that a connection was lost, and to try the same once more."""
    code = main([*line, "--record", server().url("misspelt")])
    told = capsys.readouterr().err
    assert (3, True, False) == (code, 'database "misspelt" does not exist' in told, "retry" in told)
    assert "check that it runs, and host, port, database" in told
