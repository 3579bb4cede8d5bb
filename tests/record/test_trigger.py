"""Trust moves in the database: a connection that knows nothing of herdbook moves it by the same rules, and bends none of them."""

from __future__ import annotations

import math
import sqlite3
from typing import Any

import pytest

from herdbook.record import trust
from herdbook.testing.records import Desk, refused

CAUSE = "INSERT INTO outcome_cause (tenant, outcome, version) VALUES (?, ?, ?)"


def outcome_id(raw: sqlite3.Connection, ref: str) -> int:
    return int(raw.execute("SELECT id FROM outcome WHERE ref = ?", (ref,)).fetchone()[0])


def version_id(raw: sqlite3.Connection, key: str, number: int = 1) -> int:
    return int(raw.execute("SELECT id FROM version WHERE key = ? AND number = ?", (key, number)).fetchone()[0])


def cause_of(raw: sqlite3.Connection, key: str) -> dict[str, Any]:
    """The last move of a key, as the log has it."""
    raw.row_factory = sqlite3.Row
    row = raw.execute("SELECT x.* FROM outcome_cause x WHERE x.version = ? ORDER BY x.n DESC", (version_id(raw, key),)).fetchone()
    raw.row_factory = None
    return dict(row)


@pytest.fixture
def known(ann: Desk) -> Desk:
    """An entry that stands, another that does not, and an outcome of each type that moved neither."""
    ann.begin("author")
    ann.write("stands", 1, session="author")
    ann.do("attest", ref=ann.outcome("author")["ref"], exit_code=0)
    ann.write("a", 1)
    for kind in trust.OUTCOME_TYPES:
        ann.run(kind, kind, used=[], ref=kind)
    return ann


@pytest.mark.parametrize("kind", trust.MULTIPLIERS)
def test_the_trigger_moves_confidence_by_itself(known: Desk, raw: sqlite3.Connection, kind: str) -> None:
    """An outcome written by another program would leave trust as it was."""
    raw.execute(CAUSE, (1, outcome_id(raw, kind), version_id(raw, "a")))
    after = 0.5 * trust.MULTIPLIERS[kind]
    entry = known.read("a")
    assert (after, 1) == (entry["confidence"], entry["moves"])
    assert {"type": kind, "ref": kind} == {name: entry["last_outcome"][name] for name in ("type", "ref")}
    move = cause_of(raw, "a")
    logged = (move["before"], move["factor"], move["after"], move["effective_factor"], move["n"], move["how"])
    assert (0.5, trust.MULTIPLIERS[kind], after, trust.MULTIPLIERS[kind], 1, "foreign") == logged


@pytest.mark.parametrize("kind", trust.MULTIPLIERS)
def test_a_foreign_cause_leaves_evidence_and_standing_alone(known: Desk, raw: sqlite3.Connection, kind: str) -> None:
    """Whoever can write to the file would decide what is believed."""
    names = ("held", "failed", "standing", "observed", "corroborated", "evidence")
    before = {name: known.claim("stands")[name] for name in names}
    for tries in range(30):
        known.run(f"r{tries}", kind, used=[], ref=f"r{tries}")
        raw.execute(CAUSE, (1, outcome_id(raw, f"r{tries}"), version_id(raw, "stands")))
    claim = known.claim("stands")
    assert before == {name: claim[name] for name in names}
    assert pytest.approx(trust.fold(0.5, [trust.MULTIPLIERS[kind]] * 30), abs=1e-12) == claim["confidence"]


def test_many_causes_in_one_statement_each_move(known: Desk, raw: sqlite3.Connection) -> None:
    """A trigger for statements would move one of them."""
    raw.execute(
        "INSERT INTO outcome_cause (tenant, outcome, version) SELECT 1, ?, id FROM version", (outcome_id(raw, "failure"),)
    )
    assert [0.45, 0.45] == [known.read(key)["confidence"] for key in ("a", "stands")]


def test_a_cause_counts_once(known: Desk, raw: sqlite3.Connection) -> None:
    """The same cause sent twice would move twice."""
    raw.execute(CAUSE, (1, outcome_id(raw, "failure"), version_id(raw, "a")))
    with pytest.raises(sqlite3.IntegrityError):
        raw.execute(CAUSE, (1, outcome_id(raw, "failure"), version_id(raw, "a")))
    assert 0.45 == known.read("a")["confidence"]


@pytest.mark.parametrize("what", ["version", "outcome", "tenant"])
def test_the_trigger_refuses_what_it_does_not_know(known: Desk, raw: sqlite3.Connection, what: str) -> None:
    """A move would be logged for nothing, or reach into another tenant."""
    raw.execute("INSERT INTO tenant (id, name) VALUES (2, 'other')")
    row = {"tenant": 1, "outcome": outcome_id(raw, "failure"), "version": version_id(raw, "a")}
    row[what] = row[what] + 1 if what != "tenant" else 2
    with pytest.raises(sqlite3.IntegrityError, match="herdbook:unknown_"):
        raw.execute(CAUSE, tuple(row.values()))
    assert 0 == raw.execute("SELECT count(*) FROM outcome_cause WHERE how = 'foreign'").fetchone()[0]
    assert 0.5 == known.read("a")["confidence"]


@pytest.mark.parametrize("factor", [-0.1, 2.1, math.inf, "x"])
def test_a_factor_out_of_bounds_is_refused(known: Desk, raw: sqlite3.Connection, factor: object) -> None:
    """One outcome would make a note certain, or turn its trust inside out."""
    with pytest.raises(sqlite3.IntegrityError):
        raw.execute(
            "INSERT INTO outcome_cause (tenant, outcome, version, factor) VALUES (1, ?, ?, ?)",
            (outcome_id(raw, "failure"), version_id(raw, "a"), factor),
        )
    assert 0.5 == known.read("a")["confidence"]


def test_a_factor_that_is_no_number_means_the_tables(known: Desk, raw: sqlite3.Connection) -> None:
    """Not-a-number would reach the clamp and come out as full trust."""
    raw.execute(
        "INSERT INTO outcome_cause (tenant, outcome, version, factor) VALUES (1, ?, ?, ?)",
        (outcome_id(raw, "failure"), version_id(raw, "a"), math.nan),
    )
    assert 0.45 == known.read("a")["confidence"]


def test_the_log_cannot_be_made_up(known: Desk, raw: sqlite3.Connection) -> None:
    """Before and after would be whatever the writer says."""
    fields = (outcome_id(raw, "failure"), version_id(raw, "a"))
    raw.execute(
        "INSERT INTO outcome_cause (tenant, outcome, version, before, after, effective_factor) VALUES (1, ?, ?, 0.1, 1.0, 2.0)",
        fields,
    )
    assert (0.5, 0.45, 0.9) == (*map(cause_of(raw, "a").get, ("before", "after", "effective_factor")),)
    with pytest.raises(sqlite3.IntegrityError, match="append_only"):
        raw.execute("INSERT INTO outcome_cause (tenant, outcome, version, how, n) VALUES (1, ?, ?, 'used', 7)", fields)
    assert 0.45 == known.read("a")["confidence"]


def next_move(raw: sqlite3.Connection, key: str) -> dict[str, Any]:
    """A key's next move as an outcome tells it, whole."""
    whose = raw.execute(
        "SELECT v.entry, v.claim, c.moves + 1, c.confidence FROM version v "
        "JOIN claim c ON c.entry = v.entry AND c.digest = v.claim WHERE v.key = ?",
        (key,),
    ).fetchone()
    told = dict(zip(("entry", "claim", "n", "before"), whose, strict=True))
    ids = {"tenant": 1, "outcome": outcome_id(raw, "failure"), "version": version_id(raw, key)}
    return ids | told | {"how": "foreign", "factor": 0.9, "effective_factor": 0.9, "result": 0, "after": told["before"] * 0.9}


def tell(raw: sqlite3.Connection, move: dict[str, Any]) -> None:
    marks = ", ".join("?" * len(move))
    raw.execute(f"INSERT INTO outcome_cause ({', '.join(move)}) VALUES ({marks})", tuple(move.values()))


def test_a_move_that_is_told_whole_moves_the_claim(known: Desk, raw: sqlite3.Connection) -> None:
    """Whoever tells what the claim stood at would be believed, and nothing would move."""
    tell(raw, next_move(raw, "a"))
    entry = known.read("a")
    assert (0.45, 1) == (entry["confidence"], entry["moves"])
    assert {"type": "failure", "ref": "failure"} == {name: entry["last_outcome"][name] for name in ("type", "ref")}
    with pytest.raises(sqlite3.IntegrityError):
        tell(raw, next_move(raw, "a"))  # the same cause again, as the move after it
    assert (0.45, 1) == (known.read("a")["confidence"], known.read("a")["moves"])


@pytest.mark.parametrize(
    "field, lie",
    [
        ("n", 2), ("n", 0), ("before", 0.6), ("after", 1.0), ("after", 0.5), ("after", None), ("factor", 1.0), ("factor", None),
        ("effective_factor", 1.03), ("effective_factor", None), ("result", None), ("claim", b"x" * 16), ("claim", None),
        ("entry", 7), ("outcome", 7), ("version", 7), ("tenant", 2),
    ],
)  # fmt: skip
def test_a_move_that_is_not_the_next_one_is_refused(known: Desk, raw: sqlite3.Connection, field: str, lie: object) -> None:
    """A told move would set trust to whatever its teller likes."""
    with pytest.raises(sqlite3.IntegrityError):
        tell(raw, next_move(raw, "a") | {field: lie})
    assert (0.5, 0) == (known.read("a")["confidence"], known.read("a")["moves"])


def test_a_move_told_of_another_entry_is_refused(known: Desk, raw: sqlite3.Connection) -> None:
    """A version of one entry would move the trust of another."""
    with pytest.raises(sqlite3.IntegrityError):
        tell(raw, next_move(raw, "a") | {"version": version_id(raw, "stands")})
    assert [0.5, 0.5] == [known.read(key)["confidence"] for key in ("a", "stands")]


def test_a_foreign_revision_folds_again(known: Desk, raw: sqlite3.Connection) -> None:
    """A revision written by another program would leave confidence as if it had never come."""
    raw.execute(CAUSE, (1, outcome_id(raw, "success"), version_id(raw, "a")))
    raw.execute(CAUSE, (1, outcome_id(raw, "failure"), version_id(raw, "a")))
    raw.execute(
        "INSERT INTO revision (tenant, outcome, n, type, identity, at) VALUES (1, ?, 1, 'critical_failure', 'x', 0)",
        (outcome_id(raw, "success"),),
    )
    claim = known.claim("a")
    assert pytest.approx(trust.fold(0.5, [0.85, 0.9]), abs=1e-12) == claim["confidence"]
    assert (0.0, 0.0) == (claim["held"], claim["failed"])


@pytest.mark.parametrize("foreign", [False, True])
@pytest.mark.parametrize(
    "paths, expected",
    [
        ({"": 0.7}, 0.7),
        ({"": 0.7, "acme": 0.6}, 0.6),
        ({"acme": 0.6, "acme/checkout": 0.4}, 0.4),
        ({"acme": 0.6, "acme/check": 0.1, "acme/checkout/tests": 0.1, "cme": 0.1, "ACME": 0.1, "acme%": 0.1}, 0.6),
    ],
)
def test_the_nearest_multiplier_wins(
    known: Desk, raw: sqlite3.Connection, paths: dict[str, float], expected: float, foreign: bool
) -> None:
    """A setting for one part of the record would reach another, or the application and the trigger would disagree."""
    for path, factor in paths.items():
        raw.execute("REPLACE INTO multiplier (tenant, path, type, factor) VALUES (1, ?, 'failure', ?)", (path, factor))
    if foreign:
        raw.execute(CAUSE, (1, outcome_id(raw, "failure"), version_id(raw, "a")))
    else:
        known.outcome("failure", "failure", used=[known.named("a")])
    assert pytest.approx(0.5 * expected) == known.read("a")["confidence"]
    known.outcome("success", used=[known.named("stands")], ref="later")
    known.do("revise_outcome", ref="later", type="failure")
    assert pytest.approx(0.5 * expected) == known.read("stands")["confidence"], "a revision looks it up again"


def test_each_tenant_has_its_own_multipliers(raw: sqlite3.Connection) -> None:
    """A new tenant's outcomes would move nothing, or by what another tenant chose."""
    raw.execute("UPDATE multiplier SET factor = 0.1 WHERE tenant = 1 AND type = 'failure'")
    raw.execute("INSERT INTO tenant (id, name) VALUES (2, 'other')")
    rows = raw.execute("SELECT type, factor FROM multiplier WHERE tenant = 2 AND path = ''").fetchall()
    assert trust.MULTIPLIERS == dict(rows)


@pytest.mark.parametrize("foreign", [False, True])
def test_without_a_multiplier_nothing_moves(known: Desk, raw: sqlite3.Connection, foreign: bool) -> None:
    """A missing setting would be taken for some number."""
    raw.execute("DELETE FROM multiplier WHERE type = 'failure'")
    if foreign:
        with pytest.raises(sqlite3.IntegrityError, match="no_multiplier"):
            raw.execute(CAUSE, (1, outcome_id(raw, "failure"), version_id(raw, "a")))
    else:
        with refused("broken", saying="no_multiplier"):
            known.outcome("failure", "failure", used=[known.named("a")])
        with refused("broken"):
            known.do("revise_outcome", ref=known.outcome("success", used=[known.named("a")])["ref"], type="failure")
        assert 0.515 == known.read("a")["confidence"]
        return
    assert 0.5 == known.read("a")["confidence"]


APPEND_ONLY = {
    "version": "value = '2'",
    "outcome": "type = 'success'",
    "attestation": "result = 'success'",
    "revision": "type = 'success'",
    "trace": "event = '{}'",
    "outcome_cause": "after = 1.0",
}


@pytest.mark.parametrize("table", APPEND_ONLY)
def test_what_was_written_stays(known: Desk, raw: sqlite3.Connection, table: str) -> None:
    """The past could be rewritten by anybody with a shell and one statement."""
    known.outcome("failure", "failure", ref="last", used=[known.named("a")])
    known.do("revise_outcome", ref="last", type="critical_failure")
    for statement in (f"UPDATE {table} SET {APPEND_ONLY[table]}", f"DELETE FROM {table}"):
        before = raw.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3").fetchall()
        assert before
        with pytest.raises(sqlite3.IntegrityError, match="herdbook:append_only"):
            raw.execute(statement)
        assert before == raw.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3").fetchall()


@pytest.mark.parametrize("column", ["tenant", "outcome", "version", "how", "entry", "claim", "n", "before", "after", "factor"])
def test_no_column_of_the_move_log_changes(known: Desk, raw: sqlite3.Connection, column: str) -> None:
    """The log would say something else than what happened."""
    known.outcome("failure", "failure", used=[known.named("a")])
    with pytest.raises(sqlite3.IntegrityError, match="herdbook:append_only"):
        raw.execute(f"UPDATE outcome_cause SET {column} = {column}")


def test_a_version_number_is_neither_skipped_nor_taken_twice(known: Desk, raw: sqlite3.Connection) -> None:
    """Another program would leave a gap, or two versions of one number."""
    known.write("a", 2)
    columns = [row[1] for row in raw.execute("PRAGMA table_info(version)")]
    for number in (0, 1, 2, 4, -1):
        changed = {"id": 1, "number": number, "request": "'x'"}
        selected = ", ".join(str(changed.get(column, column)) for column in columns)
        with pytest.raises(sqlite3.IntegrityError):
            raw.execute(
                f"INSERT INTO version ({', '.join(columns)}) SELECT {selected} FROM version WHERE key = 'a' AND number = 2"
            )
    for number in (1, 4):
        with pytest.raises(sqlite3.IntegrityError, match="herdbook:version_gap"):
            raw.execute("UPDATE entry SET number = ? WHERE key = 'a'", (number,))
    assert [1, 2] == [version["version"] for version in known.history("a")]


LIES = [
    ("version", "confidence", math.nan), ("version", "confidence", 1.1), ("version", "confidence", -0.1),
    ("version", "confidence", math.inf), ("version", "value", "{"), ("version", "kind", "opinion"), ("version", "worked", 2),
    ("version", "origin", "god"), ("version", "number", 1.5), ("version", "links", "["), ("version", "at", -1),
    ("claim", "confidence", math.nan), ("claim", "confidence", math.inf), ("claim", "confidence", -math.inf),
    ("claim", "confidence", 1.0000001), ("claim", "initial", -0.1), ("claim", "moves", -1), ("claim", "observed", -1),
    ("claim", "recalls", None), ("claim", "digest", b"short"),
    ("outcome", "type", "p1_incident"), ("outcome", "observed", "["),
    ("path", "successes", 99), ("path", "path", ""), ("entry", "key", ""),
    ("multiplier", "factor", 0), ("multiplier", "factor", math.nan),
    ("read", "probability", 0.0), ("read", "probability", math.nan), ("read", "served", 2), ("read", "how", "dreamt"),
    ("attempt", "result", "maybe"), ("box", "isolation", "hope"),
]  # fmt: skip


@pytest.mark.parametrize("table, column, value", LIES, ids=repr)
def test_no_lie_is_stored(known: Desk, raw: sqlite3.Connection, table: str, column: str, value: object) -> None:
    """What the door refuses would come in through another one."""
    known.do("box_open", box="b", provider="p", isolation="namespace", label="l", owner="o")
    known.begin("reader")
    known.read("a", session="reader")
    known.do("attempt", session="reader", result="failure")
    for (trigger,) in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        raw.execute(f"DROP TRIGGER {trigger}")
    before = raw.execute(f"SELECT * FROM {table}").fetchall()
    assert before
    with pytest.raises(sqlite3.IntegrityError):
        raw.execute(f"UPDATE {table} SET {column} = ?", (value,))
    assert before == raw.execute(f"SELECT * FROM {table}").fetchall()
