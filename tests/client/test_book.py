"""What `herdbook.open` answers: runs of their own over one record, here or behind a server, and what a notebook shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import herdbook
from herdbook.base.approach import dead_end_key
from herdbook.client import HerdbookError
from herdbook.surfaces.book import Shown
from tests.rest.serving import open_service, serving


@pytest.fixture(params=["local", "remote"])
def book(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[herdbook.Book]:
    monkeypatch.setenv("HERDBOOK_HOME", str(tmp_path))
    if request.param == "local":
        with herdbook.open(tmp_path / "record.db", agent="ann", entity="acme/ci") as found:
            yield found
        return
    service = open_service(tmp_path)
    with (
        serving(service) as server,
        herdbook.open("http://{}:{}".format(*server.address[:2]), agent="ann", entity="acme/ci") as found,
    ):
        yield found
    service.close()


def shown(answer: dict[str, Any]) -> str | None:
    assert isinstance(answer, Shown)
    return answer._repr_markdown_()


def test_runs_of_one_book_are_runs_of_their_own(book: herdbook.Book) -> None:
    """What one run read would be credited with how another ended, or the record be closed under the first."""
    book.write("acme/ci", "tz", "UTC", why="dates")
    with book.session(agent="bob", task="make it pass", entity="acme/ci") as run:
        assert ["tz"] == [entry["key"] for entry in run.brief("acme/ci")["entries"]]
        run.commit_outcome("first", "success")
    with book.session() as other:
        other.commit_outcome("second", "failure")
    one, two = book.trace("first"), book.trace("second")
    assert ("bob", "make it pass", "acme/ci") == (one["agent"], one["task"], one["entity"])
    assert ("ann", None, [], "acme/ci") == (two["agent"], two["task"], two["reads"], two["entity"])
    assert 3 == len({str(book.session), one["session"], two["session"]})
    assert one["ended_at"]
    assert "UTC" == book.read("acme/ci", "tz")["value"], "the record is still open"


def test_the_name_of_the_run_is_still_text(book: herdbook.Book) -> None:
    """Programs that hand the name on, to a child or as JSON, would hand on something else."""
    book.start_session(session="monday")
    assert "monday" == book.session == json.loads(json.dumps({"run": book.session}))["run"]
    assert "monday" == book.trace(book.session)["session"]
    assert {"HERDBOOK_SESSION": "monday"} == {"HERDBOOK_SESSION": f"{book.session}"}


def test_an_error_in_a_run_is_the_one_that_is_raised(book: herdbook.Book) -> None:
    """Whoever looks for why a run broke would read about the end of its session."""
    with pytest.raises(HerdbookError, match="no-such-key"), book.session() as run:
        run.read("acme/ci", "no-such-key")


def test_a_notebook_shows_what_people_read(book: herdbook.Book) -> None:
    """A briefing would be a page of braces; a value would be taken as markup, or break the table."""
    book.write("acme/ci", "tz", "a | b\n<script>alert(1)</script> `x`", why="dates")
    briefing = book.brief("acme/ci")
    assert briefing["markdown"] == shown(briefing)
    head, rule, row = str(shown(book.search("alert"))).split("\n")
    assert (head.count("|"), rule.count("|")) == (7, 7)
    assert 7 == row.replace("\\|", "").count("|")
    assert "`tz`" in row
    assert shown(book.status()) is None
    assert "of `ann`, about `acme/ci`" in book._repr_markdown_()
    assert dict(briefing) == json.loads(json.dumps(briefing))


def test_an_approach_is_a_dead_end_under_its_signature(book: herdbook.Book) -> None:
    """The next run would try again what was tried, since it was kept under a name that nobody looks up."""
    first = book.dead_end("acme/ci", approach="raise the pool to 200", why="the database allows 100")
    again = book.dead_end("acme/ci", approach="raise the  pool to 200", value={"env": {"POOL": "200"}}, why="still 100")
    plain = book.write("acme/ci", approach="raise the pool to 200", why="by hand")
    assert {dead_end_key("raise the pool to 200")} == {first["key"], again["key"], plain["key"]}
    (found,) = book.brief("acme/ci", task="raise the pool")["dead_ends"]
    assert ({"approach": "raise the pool to 200"}, False, "experience") == (found["value"], found["worked"], found["kind"])
    second = book.read("acme/ci", first["key"], version=2)
    assert {"approach": "raise the  pool to 200", "env": {"POOL": "200"}} == second["value"]


@pytest.mark.parametrize(
    "fields, said",
    [
        ({"why": "none"}, "a key and a value, or the approach"),
        ({"key": "k", "value": 1, "approach": "both"}, "give a key, or an approach"),
        ({"approach": "it works", "worked": True}, "did not work"),
        ({"approach": "a belief", "kind": "belief"}, "did not work"),
        ({"approach": "listed", "value": [1]}, "an object"),
        ({"approach": ""}, "approach"),
    ],
)
def test_a_write_names_what_it_is(book: herdbook.Book, fields: dict[str, Any], said: str) -> None:
    """An entry without a value would be kept as null, or an approach under two names."""
    with pytest.raises(HerdbookError, match=said) as refused:
        book.call("write", {"entity": "acme/ci", **fields})
    assert 400 == refused.value.status
