"""Ten thousand attempts to cross from one customer to another, over every verb and field: no byte of theirs, and no hint.

Two customers of one server, once as tenants of their own and once as paths of one tenant. Whatever is asked for is asked for
twice: by a name that the other one has, and by one that nobody has. The answers have to be the same but for the name.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from herdbook.base.errors import HerdbookError
from herdbook.service import reaching
from herdbook.service.access import keys
from herdbook.service.door import Service
from herdbook.service.verbs import VERBS
from herdbook.surfaces.rest import examples
from herdbook.testing.record_book import Book, Desk, person
from tests.record.files import sqlite_book

SEED = 20261130
ATTEMPTS = 5_000  # in each town
CANARY, NOBODY = "canary", "canray"  # of one length and place in the alphabet, since names near it are suggested
NAMED = {reaching.PATH, reaching.ENTRY, reaching.RUN, reaching.BOX, reaching.ENTRIES}
FIELDS = {name for name, kind in reaching.FIELDS.items() if kind in NAMED} | {"name", "tenant", "who", "after", "query", "label"}
MAKING = {"start_session": {"session"}, "commit_outcome": {"ref"}, "box_open": {"box"}}  # by the name that is given


class Town:
    """One server, two customers, and what the other one has."""

    def __init__(self, folder: Path, *, tenants: bool) -> None:
        self.book: Book = sqlite_book(folder / "record.db")
        self.service: Service = self.book.open()
        ann = person(self.service)
        if tenants:
            admins = [self.holder(ann.do("tenant_create", tenant=name)["key"]) for name in ("mine", f"{CANARY}-tenant")]
            self.mine, self.theirs = (
                self.holder(each.do("key_create", name=f"{name}-key", role="admin", attest=True)["key"])
                for each, name in zip(admins, ("mine", CANARY), strict=True)
            )
        else:
            made = {"role": "host", "attest": True}
            self.mine = self.holder(ann.do("key_create", name="mine", reach=["mine"], **made)["key"])
            self.theirs = self.holder(ann.do("key_create", name=f"{CANARY}-key", reach=[CANARY], **made)["key"])
        self.live(self.mine, "mine", "mine")
        self.live(self.theirs, CANARY, CANARY)

    def holder(self, key: str) -> Desk:
        return Desk(self.service, keys.admitted(self.service, key))

    def live(self, desk: Desk, path: str, name: str) -> None:
        if desk.caller.reach.everything:
            box = {"box": f"{name}-box", "provider": "p", "isolation": "namespace", "label": f"{name}-label", "owner": "o"}
            desk.do("box_open", **box)
        desk.do("start_session", session=f"{name}-run", agent="a", entity=f"{path}/ci", task="t")
        for number in range(3):
            desk.write(f"{name}-entry", {"text": f"{name} says {number}"}, entity=f"{path}/ci", session=f"{name}-run")
        desk.do("brief", entity=f"{path}/ci", session=f"{name}-run")
        desk.outcome(f"{name}-run", ref=f"{name}-outcome", task_input="t")
        desk.do("attest", ref=f"{name}-outcome", exit_code=0)


@pytest.fixture(scope="module", params=[True, False], ids=["tenants", "paths"])
def town(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    built = Town(tmp_path_factory.mktemp("town"), tenants=request.param)
    yield built
    built.book.close()


def names(field: str, owner: str) -> list[Any]:
    """What a field can name of this customer's."""
    entry = {"entity": f"{owner}/ci", "key": f"{owner}-entry"}
    runs = [f"{owner}-run", f"{owner}-outcome"]
    found: dict[str, list[Any]] = {
        "entity": [f"{owner}/ci", owner, f"{owner}/ci/deeper"],
        "key": [f"{owner}-entry"],
        "session": runs,
        "ref": runs,
        "box": [f"{owner}-box"],
        "used": [[entry], [f"{owner}-entry"], [entry | {"version": 2}]],
        "links": [[{"rel": rel, **entry}] for rel in ("derived_from", "see_also")],
        "after": [json.dumps([f"{owner}/ci", f"{owner}-entry"])],
        "name": [f"{owner}-key"],
        "tenant": [f"{owner}-tenant"],
        "who": [f"{owner}-key"],
        "query": [owner],
        "label": [f"{owner}-label"],
    }
    return found[field]


def said(desk: Desk, verb: str, fields: dict[str, Any], name: str) -> str:
    """The answer or refusal, with the name taken out."""
    try:
        answer: Any = desk.do(verb, **fields)
    except HerdbookError as problem:
        answer = [problem.status, problem.as_dict()]
    return json.dumps(answer, sort_keys=True).replace(name, "X")


@pytest.mark.slow
@pytest.mark.parametrize("tells", [False, True], ids=["asking", "telling"])  # in this order: telling makes things of one's own
def test_nothing_crosses(town: Town, tells: bool) -> None:
    """A customer's data, or that there is such a customer, would be told to another one."""
    chance = random.Random(SEED)
    asked, told = 0, set[str]()
    while asked < ATTEMPTS // 2:
        for verb in [
            name for name in VERBS if VERBS[name].tells == tells and FIELDS & set(VERBS[name].request.__struct_fields__)
        ]:
            answers = attempts(town, verb, chance)
            asked += len(answers)
            told.add(answers[0][:6])
            assert without_ids(answers[1]) == without_ids(answers[0]), (verb, SEED)
            assert "X says" not in answers[0], (verb, SEED)
    assert len(told) > 2  # refused and answered in several ways


def attempts(town: Town, verb: str, chance: random.Random) -> list[str]:
    """The same request by a name of theirs and by one of nobody's."""
    known = set(VERBS[verb].request.__struct_fields__)
    # Within one tenant names of runs, outcomes and boxes are one namespace: a name that is taken cannot be made again.
    fields = sorted(name for name in FIELDS & known if town.mine.caller.tenant != 1 or name not in MAKING.get(verb, ()))
    chosen = chance.sample(fields, chance.randint(1, len(fields)))
    places = {field: chance.randrange(len(names(field, CANARY))) for field in chosen}
    usual = {name: value for name, value in examples.REQUESTS.get(verb, {}).items() if name not in FIELDS}
    if VERBS[verb].scope == "write":
        usual |= {"entity": "mine/ci", "key": "mine-entry", "session": "mine-run"}
    usual = {name: value for name, value in usual.items() if name in known - {"request_id"}}
    found = []
    for owner in (CANARY, NOBODY):
        there = {field: names(field, owner)[places[field]] for field in chosen}
        found.append(said(town.mine, verb, {**usual, **there}, owner))
    return found


def without_ids(answer: str) -> str:
    """Without what is made up afresh for every request, and counts of what one did oneself."""
    found = json.loads(answer)
    if isinstance(found, dict):
        found = {name: value for name, value in found.items() if name not in VARYING}
    return json.dumps(found, sort_keys=True)


VARYING = {"request_id", "session", "ref", "at", "n", "started_at", "id", "key", "version", "supersedes", "moved", "created"}
VARYING |= {
    "next",
    "existed",
    "acts",
    "changes",
    "claim",
    "warnings",
    "confidence",
    "token",
    "expires_at",
    "created_at",
    "counts",
}
VARYING |= {"counts", "ended_at", "snapshot", "replayed", "job", "state", "attempt", "revoked"}
