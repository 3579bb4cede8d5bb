"""Two customers of one server, once as tenants of their own and once as paths of one tenant, and how one asks for the other's.

Whatever is asked for is asked for twice: by a name that the other one has, and by one that nobody has. The answers have to be the
same but for the name.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from herdbook.service import reaching
from herdbook.service.access import keys
from herdbook.service.door import Service
from herdbook.service.verbs import VERBS
from herdbook.surfaces.rest import examples
from herdbook.testing.record_book import Book, Desk, person
from tests.record.files import sqlite_book

CANARY, NOBODY = "canary", "canray"  # of one length and place in the alphabet, since names near it are suggested
SECRET = "what only the other one knows"
NAMED = {reaching.PATH, reaching.ENTRY, reaching.RUN, reaching.BOX, reaching.ENTRIES}
FIELDS = {name for name, kind in reaching.FIELDS.items() if kind in NAMED}
FIELDS |= {
    "name",
    "tenant",
    "who",
    "after",
    "query",
    "label",
    "version",
    "token",
    "queue",
    "job",
    "worker",
    "delivery",
    "ranker",
    "artefact",
}
MAKING = {
    "start_session": {"session"},
    "model_call": {"session"},
    "commit_outcome": {"ref"},
    "box_open": {"box"},
}  # by the name that is given
VARYING = frozenset(
    [
        "request_id",
        "artefact",  # an id out of what it is told, its name among it
        "session",
        "ref",
        "at",
        "n",
        "started_at",
        "id",
        "key",
        "version",
        "supersedes",
        "moved",
        "created",
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
        "ended_at",
        "snapshot",
        "replayed",
        "job",
        "state",
        "attempt",
        "artefact",
        "before",  # what one had routed oneself
        "model",
        "revoked",
    ]
)


class Town:
    """One server, two customers, and what the other one has."""

    def __init__(self, folder: Path, *, tenants: bool) -> None:
        self.book: Book = sqlite_book(folder / "record.db", synchronous="NORMAL")
        self.service: Service = self.book.open()
        self.tenants = tenants
        ann = person(self.service)
        made: dict[str, Any] = {"role": "admin", "attest": True}
        reaches: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        if tenants:
            admins = [self.holder(ann.do("tenant_create", tenant=name)["key"]) for name in ("mine", f"{CANARY}-tenant")]
            makers = admins
        else:
            made, makers = {"role": "host", "attest": True}, [ann, ann]
            reaches = ({"reach": ["mine"]}, {"reach": [CANARY]})
        self.keys: dict[str, str] = {
            owner: maker.do("key_create", name=f"{owner}-key", **made, **reach)["key"]
            for maker, owner, reach in zip(makers, ("mine", CANARY), reaches, strict=True)
        }
        self.mine, self.theirs = self.holder(self.keys["mine"]), self.holder(self.keys[CANARY])
        self.tokens = {owner: self.live(desk, owner) for desk, owner in ((self.mine, "mine"), (self.theirs, CANARY))}

    def holder(self, key: str) -> Desk:
        return Desk(self.service, keys.admitted(self.service, key))

    def live(self, desk: Desk, name: str) -> str:
        """What a customer leaves behind; the pass of its box."""
        text = SECRET if name == CANARY else "what I know"
        if self.tenants:
            job = {"queue": f"{name}-queue", "key": f"{name}-entry", "job": f"{name}-job", "delivery": f"{name}-delivery"}
            desk.do("job_put", **job, body=text)
        desk.do("start_session", session=f"{name}-run", agent="a", entity=f"{name}/ci", task=text)
        for number in range(3):
            desk.write(f"{name}-entry", {"text": f"{name} says {text} {number}"}, entity=f"{name}/ci", session=f"{name}-run")
        desk.do("brief", entity=f"{name}/ci", session=f"{name}-run")
        desk.do("record_action", session=f"{name}-run", tool="t", args={"a": text}, result=text, request_id=f"{name}-action")
        desk.outcome(f"{name}-run", ref=f"{name}-outcome", task_input=text)
        desk.do("attest", ref=f"{name}-outcome", exit_code=0)
        if name == CANARY and not self.tenants:
            return ""  # boxes stand beside the paths of a tenant: its hosts see all of them
        box = {"box": f"{name}-box", "provider": "p", "isolation": "namespace", "label": f"{name}-label", "owner": "o"}
        desk.do("box_open", **box, lease_seconds=24 * 3600)
        return str(desk.do("box_pass", box=f"{name}-box", seconds=900)["token"])

    def close(self) -> None:
        self.book.close()

    def named(self, field: str, owner: str) -> list[Any]:
        """What a field can name of this customer's."""
        entry = {"entity": f"{owner}/ci", "key": f"{owner}-entry"}
        runs = [f"{owner}-run", f"{owner}-outcome"]
        token = self.tokens[CANARY] or self.tokens["mine"]
        found: dict[str, list[Any]] = {
            "entity": [f"{owner}/ci", owner, f"{owner}/ci/deeper"],
            "key": [f"{owner}-entry"],
            "session": runs,
            "ref": runs,
            "box": [f"{owner}-box"],
            "used": [[entry], [f"{owner}-entry"], [entry | {"version": 2}]],
            "links": [[{"rel": rel, **entry}] for rel in ("derived_from", "see_also")],
            "after": [json.dumps([f"{owner}/ci", f"{owner}-entry"])],
            "version": [2],
            "query": [owner, f"{owner} says"],
            "token": [token if owner == CANARY and self.tenants else token[:-4] + ("aaaa" if token[-4:] != "aaaa" else "bbbb")],
        }
        return found.get(field) or [f"{owner}-{field.replace('who', 'key').replace('name', 'key')}"]

    def pair(self, verb: str, chance: random.Random) -> list[dict[str, Any]]:
        """The same request twice, by a name of theirs and by one of nobody's."""
        known = set(VERBS[verb].request.__struct_fields__)
        # Within one tenant names of runs, outcomes and boxes are one namespace: a name that is taken cannot be made again.
        fields = sorted(name for name in FIELDS & known if self.tenants or name not in MAKING.get(verb, ()))
        chosen = chance.sample(fields, chance.randint(min(1, len(fields)), len(fields)))
        places = {field: chance.randrange(len(self.named(field, CANARY))) for field in chosen}
        usual = {name: value for name, value in examples.REQUESTS.get(verb, {}).items() if name not in FIELDS}
        if VERBS[verb].scope == "write":
            usual |= {"entity": "mine/ci", "key": "mine-entry", "session": "mine-run"}
        usual = {name: value for name, value in usual.items() if name in known - {"request_id"}}
        return [{**usual, **{field: self.named(field, owner)[places[field]] for field in chosen}} for owner in (CANARY, NOBODY)]


def verbs(*, tells: bool) -> list[str]:
    """Those that can be asked by a name."""
    return [name for name, verb in VERBS.items() if verb.tells == tells and FIELDS & set(verb.request.__struct_fields__)]


def without_ids(answer: Any) -> str:
    """Without what is made up afresh for every request, and counts of what one did oneself."""
    if isinstance(answer, dict):
        answer = {name: value for name, value in answer.items() if name not in VARYING}
    return json.dumps(answer, sort_keys=True)
