"""The audit: what came through a door is in it, as it happened, and nothing that is nobody's business."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from herdbook.base.errors import DiskFull, HerdbookError
from herdbook.record import audit
from herdbook.service.access import auditing, keys
from herdbook.service.door import Service
from herdbook.service.verbs import VERBS
from herdbook.testing.record_book import Book, Desk, box, refused
from tests.record.files import shell


@pytest.fixture
def ci(service: Service, ann: Desk) -> Desk:
    """A key that came by the network."""
    return Desk(service, keys.admitted(service, ann.do("key_create", name="ci", reach=["acme"])["key"]))


def acts(desk: Desk, **asked: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = desk.do("audit", **asked)["acts"]
    return found


def told(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Oldest first."""
    return [(row["verb"], row["code"]) for row in reversed(rows)]


def test_what_came_through_a_door_is_kept(ann: Desk, ci: Desk) -> None:
    """Nobody could say who wrote, who read, or who tried to."""
    ci.write("a", "secret-value", why="secret-why", entity="acme/ci")
    ci.read("a", entity="acme/ci")
    for verb, fields in (
        ("write", {"entity": "other", "key": "a", "value": 1}),
        ("box_list", {}),
        ("read", {"entity": "acme", "key": "b"}),
    ):
        with pytest.raises(HerdbookError):
            ci.do(verb, **fields)
    with pytest.raises(HerdbookError):
        ci.do("write", entity="acme", key="a", value=1, if_version=7)
    rows = acts(ann, who="ci")
    expected = [
        ("write", "ok"), ("read", "ok"), ("write", "forbidden"), ("box_list", "forbidden"), ("read", "not_found"),
        ("write", "version_conflict"),
    ]  # fmt: skip
    assert sorted(expected) == sorted(told(rows))
    assert {"verified"} == {row["seal"] for row in rows}
    assert {ci.caller.key} == {row["key"] for row in rows}
    assert {"acme/ci", "other", "acme", None} == {row["entity"] for row in rows}
    assert "secret" not in json.dumps(acts(ann))


def test_every_verb_is_kept(service: Service, ann: Desk) -> None:
    """A verb could be used without a trace."""
    caller = replace(ann.caller, channel="rest")
    for verb in VERBS:
        with pytest.raises(HerdbookError):
            service.perform(caller, verb, {"no such field": 1})
    assert set(VERBS) == {row["verb"] for row in acts(ann, code="invalid_request", limit=1_000)}


def test_keys_and_tenants_are_kept_wherever_they_are_made(ann: Desk) -> None:
    """Whoever sits at the machine could make a key and leave no trace of it; their own reads are no business of the audit."""
    ann.do("key_create", name="ci")
    ann.do("tenant_create", tenant="acme")
    ann.write("a", 1)
    ann.read("a")
    assert [("key_create", "ok"), ("tenant_create", "ok")] == told(acts(ann))
    assert {"name": "ci"} == acts(ann, act="key_create")[0]["what"]


def test_a_box_is_named(ann: Desk, service: Service) -> None:
    """What a box did could not be told from what its fleet did."""
    box(service, "box-1").write("a", 1)
    assert ["box-1"] == [row["box"] for row in acts(ann, who="box-1")]


def test_it_is_searched_by_who_what_where_and_when(book: Book, ann: Desk, ci: Desk) -> None:
    """An incident would be looked for by hand."""
    for number in range(5):
        book.clock.tick(seconds=10)
        ci.write(f"k{number}", number, entity=f"acme/{number % 2}")
    rows = acts(ann, act="write")
    assert ["k4", "k3", "k2", "k1", "k0"] == [row["what"]["key"] for row in rows]
    assert ["k3", "k1"] == [row["what"]["key"] for row in acts(ann, entity="acme/1")]
    assert ["k4", "k3"] == [row["what"]["key"] for row in acts(ann, since=rows[1]["at"], act="write")]
    assert ["k1", "k0"] == [row["what"]["key"] for row in acts(ann, until=rows[2]["at"], act="write")]
    page = ann.do("audit", act="write", limit=2)
    following = ann.do("audit", act="write", limit=2, after=page["next"])
    assert ["k4", "k3", "k2", "k1"] == [row["what"]["key"] for row in page["acts"] + following["acts"]]


def test_a_tenant_sees_its_own(service: Service, ann: Desk, ci: Desk) -> None:
    """One customer would read what another one does; a writer what everybody does."""
    admin = Desk(service, keys.admitted(service, ann.do("tenant_create", tenant="acme")["key"]))
    ci.write("a", 1, entity="acme")
    assert ["audit"] == sorted({row["verb"] for row in acts(admin)} | {"audit"})
    with refused("forbidden"):
        acts(ci)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE audit SET code = 'ok' WHERE verb = 'box_list'",
        "UPDATE audit SET identity = 'x' WHERE n = 2",
        "DELETE FROM audit WHERE n = 3",
    ],
)
def test_what_was_changed_shows(ann: Desk, ci: Desk, tmp_path: Path, change: str) -> None:
    """Whoever can write the file would take their traces away."""
    for number in range(4):
        ci.write(f"k{number}", number, entity="acme")
    with refused("forbidden"):
        ci.do("box_list")
    assert [] == ann.do("audit", check=True)["problems"]
    with closing(shell(tmp_path / "record.db")) as raw:
        with pytest.raises(Exception, match="append_only"):
            raw.execute(change)
        raw.executescript("DROP TRIGGER audit_is_immutable_v1; DROP TRIGGER audit_is_kept_v1;")
        raw.execute(change)
        raw.commit()
    assert [] != ann.do("audit", check=True)["problems"]


def test_chains_of_several_processes_stand_side_by_side(book: Book, ann: Desk, ci: Desk) -> None:
    """Two servers over one record would break each other's chain, or wait for each other."""
    other = Desk(book.open(), ci.caller)
    for number in range(3):
        ci.write(f"a{number}", 1, entity="acme")
        other.write(f"b{number}", 1, entity="acme")
    other.service.auditor.flush()
    assert {"problems": []} == {"problems": ann.do("audit", check=True)["problems"]}
    assert 6 == len(acts(ann, act="write"))


def test_what_is_undone_leaves_no_row_and_a_retry_one(
    ann: Desk, ci: Desk, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change whose batch failed would be in the audit, or its chain broken for ever."""
    plans = [service.plan(ci.caller, "write", {"entity": "acme", "key": f"k{n}", "value": n}) for n in range(3)]
    ci.brief(entity="acme")
    with monkeypatch.context() as patch:
        patch.setattr(audit, "insert", lambda tx, rows: (_ for _ in ()).throw(DiskFull()))
        assert [DiskFull] * 3 == [type(result) for result in service.commit(plans)]
    assert [] == [row for row in acts(ann) if row["verb"] == "write"]
    service.commit(plans)
    assert ["ok"] * 3 == [row["code"] for row in acts(ann, act="write")]
    assert 1 == len(acts(ann, act="brief"))
    assert [] == ann.do("audit", check=True)["problems"]


def test_what_there_is_no_room_for_is_counted(ann: Desk, ci: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions would be missing without a word."""
    monkeypatch.setattr(auditing, "WAITING_MAX", 3)
    for _ in range(5):
        ci.brief(entity="acme")
    rows = acts(ann)
    assert 3 == len([row for row in rows if row["verb"] == "brief"])
    assert [{"lost": 2}] == [row["what"] for row in rows if row["code"] == "lost"]


def test_questions_are_kept_in_a_moment_by_themselves(book: Book, ann: Desk, ci: Desk) -> None:
    """A server that is only asked would never keep what it was asked."""
    ci.brief(entity="acme")
    timer = ci.service.auditor.timer
    assert timer is not None
    timer.join(20)
    assert [("brief", "ok")] == [each for each in told(acts(Desk(book.open(), ann.caller))) if each[0] == "brief"]
