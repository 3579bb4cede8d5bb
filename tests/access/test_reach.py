"""What a key does not reach is answered, byte for byte, as by a record in which it never was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from herdbook.base.errors import HerdbookError
from herdbook.base.reach import Reach
from herdbook.service import reaching
from herdbook.service.door import Service
from herdbook.service.verbs import VERBS
from herdbook.testing.record_book import Desk, person, refused
from tests.record.files import sqlite_book

CANARY = "canary"
OWN, CHILD = "acme/ci", "acme/ci/tests"
FOREIGN = ("acme", "acme/billing", "acme/ci-two", "other/ci", "zeta")
PATTERNS = ("acme/ci",)


def keyed(service: Service, *patterns: str, identity: str = "fleet") -> Desk:
    caller = replace(person(service, identity).caller, reach=Reach.of(patterns))
    return Desk(service, caller)


def live(desk: Desk, path: str, name: str, *, text: str = "rounding is half even") -> None:
    """A run at a path: reads, writes, tries, an outcome that somebody vouches for."""
    desk.do("start_session", session=f"s-{name}", agent="a", entity=path, task=f"{text} {name}")
    for key in ("mode", f"only-{name}"):
        desk.write(key, {"text": f"{text} {name}"}, entity=path, session=f"s-{name}", request_id=f"w-{name}-{key}")
    desk.write("mode", {"text": f"{text} {name}, really"}, entity=path, session=f"s-{name}", request_id=f"w2-{name}")
    desk.do("brief", entity=path, session=f"s-{name}")
    desk.do("record_action", session=f"s-{name}", tool="t", args={"name": name}, request_id=f"a-{name}")
    desk.outcome(f"s-{name}", ref=f"o-{name}", task_input=name)
    desk.do("attest", ref=f"o-{name}", exit_code=0)


def filled(folder: Path, *, foreign: bool) -> Iterator[Service]:
    """A record in which the key's own things happened, with or without everything else beside them."""
    book = sqlite_book(folder / "record.db")
    service = book.open()
    others = person(service, "others")
    if foreign:
        for number, path in enumerate(FOREIGN):
            live(others, path, f"{CANARY}-{number}")
    own = keyed(service, *PATTERNS)
    live(own, OWN, "own")
    live(own, CHILD, "child")
    if foreign:
        for number, path in enumerate(FOREIGN):
            live(others, path, f"{CANARY}-late-{number}")
    yield service
    book.close()


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    yield from filled(tmp_path_factory.mktemp("crowded"), foreign=True)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    yield from filled(tmp_path_factory.mktemp("alone"), foreign=False)


def said(desk: Desk, verb: str, fields: dict[str, Any]) -> str:
    """An answer or a refusal, as text."""
    try:
        answer = desk.do(verb, **fields)
        if verb == "changes":  # a place in the feed is a time, and the two records were not made in the same microsecond
            answer = {"changes": [change | {"id": ""} for change in answer["changes"]], "moved": answer["next"] != "0"}
        return json.dumps(answer, sort_keys=True)
    except HerdbookError as problem:
        return json.dumps([problem.status, problem.as_dict()], sort_keys=True)


PATHS = [*FOREIGN, OWN, CHILD, "acme/ci/nowhere", "acme/nowhere", "nowhere", "acm"]
RUNS = ["own", "child", *(f"{CANARY}-{n}" for n in range(5)), *(f"{CANARY}-late-{n}" for n in range(5)), "nobody"]
QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    *(("brief", {"entity": path, "task": task, "names": True}) for path in PATHS for task in (None, "rounding canary")),
    *(("search", {"query": query, "entity": path}) for path in [*PATHS, None] for query in ("rounding", CANARY, "anary-1")),
    *(("list", {"entity": path, "limit": limit}) for path in [*PATHS, None] for limit in (1, 3, 100)),
    *(("list", {"after": json.dumps([path, "mode"])}) for path in PATHS),
    *(
        (verb, {"entity": path, "key": key})
        for verb in ("read", "history", "diff", "why")
        for path in PATHS
        for key in ("mode", "mod", "only-own", f"only-{CANARY}-1", f"only-{CANARY}-3")
    ),
    *(("read", {"entity": path, "key": "mode", "version": 1}) for path in PATHS),
    *(("contradictions", {"entity": path}) for path in PATHS),
    *(("changes", {"entity": path}) for path in [*PATHS, None]),
    *(("outcomes", {"entity": path}) for path in [*PATHS, None]),
    ("outcomes", {"type": "success"}),
    *(("trace", {"ref": f"{kind}-{name}"}) for name in RUNS for kind in ("o", "s")),
    *(("read", {"entity": OWN, "key": "mode", "session": f"s-{name}"}) for name in RUNS if name not in ("own", "child")),
]


@pytest.mark.parametrize("patterns", [PATTERNS, ("acme/ci", "acme/nowhere", "no/*/where")], ids=str)
def test_what_is_out_of_reach_was_never_there(crowded: Service, alone: Service, patterns: tuple[str, ...]) -> None:
    """Somebody else's data, or that there is any, would be told."""
    among, by_itself = keyed(crowded, *patterns), keyed(alone, *patterns)
    for verb, fields in QUESTIONS:
        asked = {name: value for name, value in fields.items() if value is not None}
        one, two = said(among, verb, asked), said(by_itself, verb, asked)
        assert two == one, (verb, asked)
        assert CANARY not in one or any(CANARY in str(value) for value in asked.values()), (verb, asked, one)


TELLS: list[tuple[str, dict[str, Any]]] = [
    ("attest", {"ref": "o-{}", "exit_code": 1}),
    ("revise_outcome", {"ref": "o-{}", "type": "failure"}),
    ("commit_outcome", {"session": "s-{}", "type": "failure"}),
    ("attempt", {"session": "s-{}", "result": "failure"}),
    ("record_action", {"session": "s-{}", "tool": "t"}),
    ("record_context", {"session": "s-{}", "name": "n", "text": "t"}),
    ("end_session", {"session": "s-{}"}),
    ("write", {"entity": OWN, "key": "x", "value": 1, "session": "s-{}"}),
]


@pytest.mark.parametrize("verb, fields", TELLS, ids=str)
def test_runs_out_of_reach_are_told_as_missing(crowded: Service, verb: str, fields: dict[str, Any]) -> None:
    """One team's key would end, judge or rewrite another team's runs, or learn that they are there."""
    desk = keyed(crowded, *PATTERNS, identity="others")  # even of the same identity
    answers = set()
    for run in (f"{CANARY}-1", f"{CANARY}-late-3", "nobody-at-all"):
        named = {name: value.format(run) if isinstance(value, str) else value for name, value in fields.items()}
        answers.add(said(desk, verb, named).replace(run, "R"))
    assert 1 == len(answers)
    assert "not_found" in answers.pop()


@pytest.mark.parametrize("path", [*FOREIGN, "nowhere", "acme/nowhere"])
def test_nothing_is_written_out_of_reach(crowded: Service, path: str) -> None:
    """A key for one customer would plant what another customer reads; and be told whether there is such a customer."""
    desk = keyed(crowded, *PATTERNS)
    for verb, fields in (("write", {"key": "mode", "value": 1}), ("start_session", {"agent": "a", "session": "s-new"})):
        with refused("forbidden", saying=f"this key does not reach {path!r}: use one whose patterns cover it"):
            desk.do(verb, entity=path, **fields)


@pytest.mark.parametrize("path", [*FOREIGN, "nowhere"])
def test_what_is_out_of_reach_is_not_used_or_linked(crowded: Service, path: str) -> None:
    """An outcome would move another customer's trust."""
    desk = keyed(crowded, *PATTERNS)
    desk.do("start_session", session="s-using", agent="a")
    for version in ({}, {"version": 1}, {"version": 2}):
        there = {"entity": path, "key": "mode", **version}
        for verb, fields in (
            ("attempt", {"session": "s-using", "result": "failure", "used": [there]}),
            ("commit_outcome", {"session": "s-using", "type": "failure", "used": [there]}),
            ("write", {"entity": OWN, "key": "y", "value": 1, "links": [{"rel": "derived_from", **there}]}),
        ):
            with refused("unknown_entry"):
                desk.do(verb, **fields)


def test_a_link_out_of_reach_is_not_shown(crowded: Service) -> None:
    """An entry would tell a key of places it does not reach."""
    links = [{"rel": "see_also", "entity": path, "key": "mode"} for path in ("zeta", CHILD)]
    person(crowded, "others").write("linked", 1, entity=OWN, links=links)
    desk = keyed(crowded, *PATTERNS)
    answers = [desk.read("linked", entity=OWN), *desk.history("linked", entity=OWN)]
    assert [[CHILD]] * 2 == [[link["entity"] for link in answer["links"]] for answer in answers]
    assert "zeta" not in json.dumps(desk.brief(entity=OWN))
    crowd = person(crowded, "others").read("linked", entity=OWN)["links"]
    assert ["zeta", CHILD] == [link["entity"] for link in crowd]


def test_a_run_of_a_wider_key_is_shown_without_what_lies_outside(crowded: Service) -> None:
    """A trace would tell what a run inherited from where the key does not reach."""
    wide = person(crowded, "others")
    wide.do("start_session", session="s-wide", agent="a", entity=CHILD)
    wide.do("brief", entity=CHILD, session="s-wide")
    wide.outcome("s-wide", ref="o-wide")
    whole = wide.do("trace", ref="o-wide")
    seen = keyed(crowded, *PATTERNS).do("trace", ref="o-wide")
    assert 0 == whole["outside"] < seen["outside"]
    assert len(whole["versions"]) == len(seen["versions"]) + seen["outside"]
    assert CANARY not in json.dumps(seen)
    assert "verified" == seen["seal"]


def test_what_is_about_the_whole_tenant_needs_the_whole_reach(crowded: Service) -> None:
    """A key for one path would count everybody's entries."""
    with refused("forbidden"):
        keyed(crowded, *PATTERNS).do("status")


def test_every_question_is_asked() -> None:
    """A verb would be left out of what is compared."""
    asking = {name for name, verb in VERBS.items() if not verb.tells and reaching.VERBS[name] == reaching.SCOPED}
    assert asking == {verb for verb, _ in QUESTIONS}
