"""The change feed: everything that was committed, once and in order, whoever writes meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from herdbook.record import changes as feed
from herdbook.service.access.keys import admitted
from herdbook.testing.record_book import Book, Desk, person, refused
from tests.postgres_server import server
from tests.record.databases import postgres_book
from tests.record.files import sqlite_book

WRITERS = 8


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Book]:
    """A record on each engine."""
    name = server().database() if request.param == "postgres" else None
    book = postgres_book(name, tmp_path / "seal.key") if name else sqlite_book(tmp_path / "record.db")
    yield book
    book.close()
    if name:
        server().give_back(name)


def followed(desk: Desk, after: str | None = None, **asked: Any) -> tuple[list[dict[str, Any]], str]:
    """Everything from a place on, page by page."""
    found: list[dict[str, Any]] = []
    while True:
        page = desk.do("changes", **{"after": after} if after else {}, **asked)
        found, after = found + page["changes"], page["next"]
        if not page["changes"]:
            return found, after


@pytest.mark.slow
def test_no_row_is_passed_over_while_many_write(either: Book) -> None:
    """An index, an export or a dashboard would lack what was committed late."""
    each = 40
    desks = [person(either.open(), f"w{n}") for n in range(3)]
    reader, after, seen = person(either.open()), None, list[str]()
    desks[0].write("first", 0)
    threads = [
        threading.Thread(target=lambda n=n: [desks[n % 3].write(f"k{n}-{m}", m, entity=f"acme/{n}") for m in range(each)])
        for n in range(WRITERS)
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        found, after = followed(reader, after)
        seen += [change["key"] for change in found]
    found, after = followed(reader, after)
    seen += [change["key"] for change in found]
    assert 1 + WRITERS * each == len(seen) == len(set(seen))
    assert ([], after) == followed(reader, after)


def test_it_says_what_was_written_and_how_runs_ended(either: Book) -> None:
    """Whoever follows would have to ask for everything again."""
    ann = person(either.open())
    place = ann.do("changes", after="latest")["next"]
    ann.do("start_session", session="s", agent="fixer", entity="acme/ci")
    ann.write("a", 1, entity="acme/ci", session="s")
    ann.outcome("s", ref="o")
    ann.write("b", 1, entity="other")
    ann.do("attest", ref="o", exit_code=0)
    ann.do("revise_outcome", ref="o", type="failure")
    found, _ = followed(ann, place)
    told = [
        (each["what"], each["entity"], each["key"], each["version"], each["ref"], each["kind"], each["author"]) for each in found
    ]
    assert [
        ("version", "acme/ci", "a", 1, None, "fact", "fixer"),
        ("outcome", "acme/ci", None, None, "o", "success", "fixer"),
        ("version", "other", "b", 1, None, "fact", "ann"),
        ("attestation", "acme/ci", None, None, "o", "success", "ann"),
        ("revision", "acme/ci", None, None, "o", "failure", "ann"),
    ] == told
    assert ["a", None, None, None] == [each["key"] for each in followed(ann, place, entity="acme")[0]]
    assert ["a"] == [each["key"] for each in ann.do("changes", after=place, limit=1)["changes"]]
    for wrong in ("x", "-1", "1" * 30):
        with refused("invalid_request"):
            ann.do("changes", after=wrong)


def test_a_narrow_key_looks_at_its_own(either: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first look of one customer's key would walk through everything that every other one ever wrote."""
    monkeypatch.setattr(feed, "SCANNED_AT_ONCE", 5)
    service = either.open()
    ann = person(service)
    for n in range(12):
        ann.write(f"k{n}", n, entity=f"other/{n}")
    keys = {"a": ["acme/ci"], "b": ["acme/*/public"], "c": ["*/ci"], "all": ["*"]}
    made = {name: ann.do("key_create", name=name, role="host", attest=True, reach=reach)["key"] for name, reach in keys.items()}
    desks = {name: Desk(service, admitted(service, key)) for name, key in made.items()}
    for name, path in (("a", "acme/ci"), ("b", "acme/web/public"), ("c", "globex/ci")):
        desk = desks[name]
        for n in range(7):
            desk.write(f"{name}{n}", n, entity=path)
        desk.do("start_session", session=f"{name}-run", agent="x", entity=path)
        desk.do("start_session", session=f"{name}-loose", agent="x")
        desk.outcome(f"{name}-run", ref=f"{name}-o")
        desk.outcome(f"{name}-loose", ref=f"{name}-l")
        desk.do("attest", ref=f"{name}-o", exit_code=0)
        desk.do("revise_outcome", ref=f"{name}-o", type="success")
    everything = [(each["id"], each["entity"], each["what"]) for each in followed(desks["all"])[0]]
    for name, root in (("a", "acme/ci"), ("b", "acme/web/public"), ("c", None)):
        found = [(each["id"], each["entity"], each["what"]) for each in followed(desks[name])[0]]
        paths = {"acme/ci", "globex/ci"} if root is None else {root}
        loose = [each for each in everything if each[1] is None and each in found]
        assert 1 == len(loose)
        assert [each for each in everything if each[1] in paths or each in loose] == found
    newest = {"a": "a-l a-o", "b": "b-l b-o", "c": "c-l c-o a-o", "all": "c-l c-o b-l b-o a-l a-o"}
    assert newest == {name: " ".join(each["ref"] for each in desk.do("outcomes")["outcomes"]) for name, desk in desks.items()}
    asked: list[str] = []
    rows = service.record.store.rows

    def counted(query: str, params: Any) -> Any:
        asked.append(query)
        return rows(query, params)

    monkeypatch.setattr(service.record.store, "rows", counted)
    before = [each["key"] for each in followed(desks["a"], entity="acme")[0]]
    assert ["a0", "a6"] == [before[0], before[6]]
    assert asked.count("changes") <= asked.count("changes_below") + 1
