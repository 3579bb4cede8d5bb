"""What is read is what was written: any other is refused, a missing key is said, a wrong one is refused."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from herdbook.base.errors import HerdbookError
from herdbook.record import seals
from herdbook.record.record import Record
from herdbook.testing.records import ENTITY, Book, Desk, person, refused
from tests.record.files import key_file, shell

# Not under the seal, and why: the first two are how a retry is answered and say nothing to a reader.
UNSEALED = {"version": {"body", "answered"}}
TABLES = ("version", "outcome", "attestation", "revision", "trace")


@pytest.fixture
def told(book: Book, ann: Desk) -> Desk:
    """A run with something in every table, closed again: what is cached must not hide what is stored."""
    ann.write("other", 0)
    ann.do("start_session", session="s", agent="agent", task="task", entity=ENTITY)
    ann.read("other", session="s")
    ann.read("other", session="s")
    link = {"rel": "see_also", "entity": ENTITY, "key": "other"}
    more: dict[str, Any] = {
        "kind": "experience",
        "worked": True,
        "applies_when": "x",
        "expires_at": "2030-01-01T00:00:00Z",
        "links": [link],
    }
    ann.write("a", {"value": 1}, session="s", **more)
    ann.write("b", {"value": 2}, session="s")
    for n in range(3):
        ann.do("record_action", session="s", tool=f"t{n}", args=[n], result={"n": n}, ok=True)
        ann.do("record_context", session="s", name=f"n{n}", text="t")
        ann.do("attempt", session="s", result="failure", used=["other"], note="n")
    ann.outcome("s", ref="o", task_input="task", observed=["x"], artifacts={"a": 1}, verified_by="v")
    ann.do("attest", ref="o", exit_code=0, note="note")
    ann.do("revise_outcome", ref="o", type="failure", why="why")
    ann.do("end_session", session="s")
    assert "verified" == ann.do("trace", ref="s")["seal"]
    book.close()
    return ann


def change(path: Path, *statements: str) -> None:
    """What somebody does to the file who has it in hand: no trigger and no foreign key stands in the way."""
    with closing(shell(path)) as raw:
        for (trigger,) in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            raw.execute(f"DROP TRIGGER {trigger}")
        for statement in statements:
            raw.execute(statement)


def columns_of(table: str) -> list[str]:
    """The columns of a table, from the schema itself, so that a new one cannot be forgotten."""
    with closing(sqlite3.connect(":memory:")) as memory:
        from herdbook.record.store.sqlite import MIGRATIONS

        for _, _, sql in MIGRATIONS:
            memory.executescript(sql)
        return [row[1] for row in memory.execute(f"PRAGMA table_info({table})") if row[1] not in UNSEALED.get(table, set())]


def another(row: dict[str, Any], column: str) -> Any:
    """Some other content of the same type."""
    value = row[column]
    if isinstance(value, bytes):
        return value[:-1] + bytes([value[-1] ^ 1])
    if isinstance(value, float):
        return value / 2
    if isinstance(value, int):
        return {"worked": 0}.get(column, value + 100)
    allowed = {"kind": "fact", "origin": "principal", "result": "failure", "type": "minor_failure", "value": "3", "event": "{}"}
    allowed |= {"observed": "[]", "links": "[]", "artifacts": "2"}
    return allowed.get(column, f"{value}x" if value is not None else {"session": "s", "box": "b"}.get(column, "text"))


def cases() -> list[tuple[str, str]]:
    return [(table, column) for table in TABLES for column in columns_of(table)]


@pytest.mark.parametrize("table, column", cases())
def test_any_changed_column_is_refused(told: Desk, book: Book, path: Path, table: str, column: str) -> None:
    """Whoever has the file in hand could change what a fleet believes, and nobody would see it."""
    with closing(shell(path)) as raw:
        raw.row_factory = sqlite3.Row
        where = "key = 'a'" if table == "version" else "1 = 1"
        row = dict(raw.execute(f"SELECT * FROM {table} WHERE {where} ORDER BY 1 LIMIT 1").fetchone())
        value = another(row, column)
        assert value != row[column]
        for (trigger,) in [
            tuple(found) for found in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        ]:
            raw.execute(f"DROP TRIGGER {trigger}")
        places = " AND ".join(f"{name} IS :{name}" for name in row)
        raw.execute(f"UPDATE {table} SET {column} = :new WHERE {places}", {**row, "new": value})
        assert 1 == raw.execute("SELECT changes()").fetchone()[0]
    ann = person(book.open())
    problems = [code for code in (self_of(ann, ask) for ask in ASKS[table]) if code]
    assert problems, "nobody noticed"
    assert {"seal_broken", "broken link"} >= set(problems), problems


def self_of(ann: Desk, ask: Any) -> str | None:
    """What is wrong with an answer, if anything."""
    try:
        answer = ask(ann)
    except HerdbookError as problem:
        return problem.code
    if isinstance(answer, dict) and str(answer.get("seal", "")).startswith("broken"):
        return "broken link"
    return None


ASKS: dict[str, list[Any]] = {
    "version": [lambda ann: ann.read("a")],
    **{table: [lambda ann: ann.do("trace", ref="s")] for table in TABLES[1:]},
}


@pytest.mark.parametrize(
    "verb", ["read", "read, the version", "brief", "search", "search, scoped", "history", "diff", "list", "why", "trace"]
)
def test_every_way_to_a_forged_version_is_closed(told: Desk, book: Book, path: Path, verb: str) -> None:
    """What is refused at one door would be served at another."""
    change(path, """UPDATE version SET value = '{"value":"forged"}' WHERE key = 'a'""")
    ann = person(book.open())
    entry = {"entity": ENTITY, "key": "a"}
    fields: dict[str, dict[str, Any]] = {
        **dict.fromkeys(("read", "history", "diff", "why"), entry),
        "read, the version": entry | {"version": 1},
        "brief": {"entity": ENTITY},
        "search": {"query": "forged value"},
        "search, scoped": {"query": "forged value", "entity": ENTITY},
        "list": {},
        "trace": {"ref": "s"},
    }
    answer = answered(ann, verb.split(",", maxsplit=1)[0], fields[verb])
    if answer["code"] is None:
        assert "forged" not in str(answer).replace("forged value", "")
        assert verb in ("history", "why") or "'b'" in str(answer), "the others are still served"
    else:
        assert "seal_broken" == answer["code"]


def answered(desk: Desk, verb: str, fields: dict[str, Any]) -> dict[str, Any]:
    """An answer or the code of its refusal."""
    try:
        return desk.do(verb, **fields) | {"code": None}
    except HerdbookError as problem:
        return {"code": problem.code}


def test_a_forged_version_is_named_in_a_briefing_and_the_rest_served(told: Desk, book: Book, path: Path) -> None:
    """One forged note would silence all the others, or vanish without a word."""
    change(path, "UPDATE version SET why = 'forged' WHERE key = 'a'")
    briefing = person(book.open()).brief()
    assert {"b", "other"} == {entry["key"] for entry in briefing["entries"]}
    assert [("a", "seal_broken")] == [(refusal["key"], refusal["code"]) for refusal in briefing["refused"]]
    assert "a" in briefing["markdown"]


@pytest.mark.parametrize("verb", ["read", "brief", "history", "list", "why", "diff", "search"])
def test_a_version_that_is_gone_is_said(told: Desk, book: Book, path: Path, verb: str) -> None:
    """A row that was deleted from the file would take the process down."""
    change(path, "DELETE FROM version WHERE key = 'a'")
    ann = person(book.open())
    needs_key = verb in ("read", "history", "why", "diff")
    fields = {"entity": ENTITY, **({"key": "a"} if needs_key else {}), **({"query": "value"} if verb == "search" else {})}
    answer = answered(ann, verb, fields)
    assert answer["code"] in ("seal_broken", "not_found") or "refused" in answer or verb in ("history", "why", "list")


STEPS = {
    "an action changed": "UPDATE action SET result = '{}' WHERE n = 2",
    "an action's time changed": "UPDATE action SET at = at + 1 WHERE n = 2",
    "an action that failed": "UPDATE action SET ok = 0 WHERE n = 2",
    "the first action dropped": "DELETE FROM action WHERE n = 1",
    "the last action dropped": "DELETE FROM action WHERE n = 3",
    "all actions dropped": "DELETE FROM action",
    "an action slipped in": "INSERT INTO action SELECT tenant, session, 4, tool, args, result, ok, at FROM action WHERE n = 3;"
    "UPDATE action SET tool = 'slipped in' WHERE n = 3",
    "a context changed": "UPDATE context SET text = 'other' WHERE n = 1",
    "a context dropped": "DELETE FROM context WHERE n = 3",
    "an attempt changed": "UPDATE attempt SET result = 'success' WHERE n = 1",
    "an attempt dropped": "DELETE FROM attempt WHERE n = 2",
    "a read dropped": "DELETE FROM read WHERE id = (SELECT max(id) FROM read)",
    "a read's version changed": "UPDATE read SET version = (SELECT id FROM version WHERE key = 'b')",
    "a read withheld": "UPDATE read SET served = 0",
    "a read's odds changed": "UPDATE read SET probability = 0.5",
    "a read moved to after the outcome": "UPDATE read SET folded = folded + 9223372036854775807 / 4",
    "a read slipped in": "INSERT INTO read"
    " SELECT tenant, session, id + 1, version, rank, how, served, probability, at, folded, serving, features FROM read"
    " WHERE id = (SELECT max(id) FROM read)",
    "a write dropped": "DELETE FROM version WHERE key = 'b'",
    "a write given to another run": "UPDATE version SET session = NULL WHERE key = 'b'",
    "a write taken from another run": "UPDATE version SET session = 's' WHERE key = 'other'",
    "the outcome dropped": "DELETE FROM outcome",
    "the attestation dropped": "DELETE FROM attestation",
    "the revision dropped": "DELETE FROM revision",
    "a link dropped": "DELETE FROM trace WHERE n = 2",
    "the task changed": "UPDATE session SET task = 'another task'",
    "the agent changed": "UPDATE session SET agent = 'another agent'",
    "the box changed": "UPDATE session SET box = 'another box'",
    "the identity changed": "UPDATE session SET identity = 'another'",
    "the start changed": "UPDATE session SET started_at = started_at - 1",
}


@pytest.mark.parametrize("what", STEPS)
def test_a_run_that_was_changed_afterwards_shows(told: Desk, book: Book, path: Path, what: str) -> None:
    """A run could be made to look as if it had gone otherwise."""
    change(path, "PRAGMA foreign_keys = OFF", *STEPS[what].split(";"))
    ann = person(book.open())
    problem = self_of(ann, lambda desk: desk.do("trace", ref="s"))
    assert problem in ("broken link", "seal_broken"), "nobody noticed"


def test_an_outcome_that_was_changed_gives_nothing(told: Desk, book: Book, path: Path) -> None:
    """An attestation would vouch for another run than the one that was seen."""
    change(path, "UPDATE outcome SET session = 'other'")
    ann = person(book.open())
    for verb, fields in (("attest", {"exit_code": 0, "note": "once more"}), ("revise_outcome", {"type": "success"})):
        with refused("seal_broken"):
            ann.do(verb, ref="o", **fields)


def test_a_foreign_outcome_is_never_attested(ann: Desk, raw: sqlite3.Connection) -> None:
    """Whoever can write to the file would be vouched for by the next host."""
    ann.begin("s")
    ann.write("a", 1, session="s")
    raw.execute("INSERT INTO outcome (tenant, ref, session, type, identity, at) VALUES (1, 'foreign', 's', 'success', 'x', 0)")
    with refused("seal_broken"):
        ann.do("attest", ref="foreign", exit_code=0)
    assert "unproven" == ann.standing("a")


def test_without_the_key_reading_goes_on_and_says_so(told: Desk, book: Book, path: Path) -> None:
    """Nobody would know that nothing can be checked, or nobody could read at all."""
    key_file(path).unlink()
    ann = person(book.open())
    assert "unverified" == ann.read("a")["seal"]
    assert {"unverified"} == {entry["seal"] for entry in ann.brief()["entries"]}
    assert "unverified" == ann.do("trace", ref="s")["seal"]
    assert "missing" in ann.do("status")["seals"]
    assert not key_file(path).exists(), "an old record is never given another key"


@pytest.mark.parametrize(
    "verb, fields",
    [
        ("write", {"entity": ENTITY, "key": "new", "value": 1}),
        ("commit_outcome", {"session": "s", "type": "success", "ref": "new"}),
        ("attest", {"ref": "o", "exit_code": 1}),
        ("revise_outcome", {"ref": "o", "type": "success"}),
    ],
)
def test_without_the_key_nothing_is_written(told: Desk, book: Book, path: Path, verb: str, fields: dict[str, Any]) -> None:
    """Unsealed rows would pile up among the sealed ones."""
    key_file(path).unlink()
    ann = person(book.open())
    before = ann.do("status")["counts"]
    with refused("seal_key_missing"):
        ann.do(verb, **fields)
    assert before == ann.do("status")["counts"]


def test_another_key_is_refused_at_the_door(told: Desk, book: Book, path: Path) -> None:
    """Every entry would be called forged, or the record sealed with two keys."""
    key_file(path).write_text("ab" * seals.KEY_BYTES)
    with refused("seal_key_wrong", saying="right key"):
        book.open()


@pytest.mark.parametrize("content", ["", "zz", "ab" * 31, "ab" * 33, "\x00", "\u00e9"])
def test_a_key_file_that_holds_no_key_is_refused(told: Desk, book: Book, path: Path, content: str) -> None:
    """A damaged key would be used as if it were one."""
    key_file(path).write_text(content, encoding="utf-8")
    with refused("seal_key_wrong", saying="key"):
        book.open()


def test_the_key_is_its_owners_alone_and_outside_the_record(ann: Desk, path: Path) -> None:
    """Whoever may read the record could forge it."""
    assert 0o600 == key_file(path).stat().st_mode & 0o777
    key = key_file(path).read_text().strip()
    for file in path.parent.iterdir():
        if file != key_file(path):
            content = file.read_bytes()
            assert key.encode() not in content
            assert bytes.fromhex(key) not in content
            assert 0o600 == file.stat().st_mode & 0o777, file.name


def test_two_records_may_share_a_key(ann: Desk, path: Path, tmp_path: Path) -> None:
    """A second record of the same home would be refused, or the first one be given another key."""
    other = Record.open(tmp_path / "other.db", key_file=key_file(path))
    assert other.sealing
    other.close()


def test_no_border_between_the_parts_of_a_seal_can_be_moved() -> None:
    """A byte moved from one part to the next would keep the seal."""
    parts: list[tuple[seals.Part, ...]] = [
        ("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("", "abc"), ("a', 'b", "c"), ("ab", "c", None), ("ab", "c", "None"),
        (b"ab", "c"), ("b'ab'", "c"), (1, "c"), ("1", "c"), (1.0, "c"), (True, "c"), ("\u00e9",), ("\\xe9",), ("\n",), ("\\n",),
    ]  # fmt: skip
    assert len(parts) == len({seals.seal(b"k" * 32, *each) for each in parts})
    assert not seals.holds(b"k" * 32, None, "a")
    assert not seals.holds(os.urandom(32), seals.seal(b"k" * 32, "a"), "a")
