"""Conformance: a process that follows some paths by what has changed knows what one that reads them whole knows."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from herdbook.record.record import Record
from herdbook.record.store.protocol import Params, Row
from herdbook.record.types import HeadRow
from herdbook.service.callers import DEFAULT_TENANT
from herdbook.service.door import Service
from herdbook.testing.record_base import Contract
from herdbook.testing.record_book import ENTITY, Book, Desk, box

PATHS = (ENTITY, ENTITY.partition("/")[0])
STEPS = 60
KEYS = 8


class Follower:
    """The heads of some paths as one process has followed them."""

    def __init__(self, record: Record, paths: Sequence[str] = PATHS) -> None:
        self.record, self.paths = record, paths
        self.stamp: int | None = None
        self.heads: dict[int, HeadRow] = {}

    def look(self) -> int:
        """Learn what has changed; how many rows that took."""
        moved = self.record.heads_since(DEFAULT_TENANT, self.paths, self.stamp)
        self.stamp = moved.stamp
        self.heads |= moved.heads
        assert moved.entries == len(self.heads), "an entry was missed"
        return len(moved.heads)

    def whole(self) -> dict[int, HeadRow]:
        return self.record.heads_since(DEFAULT_TENANT, self.paths, None).heads


class FollowingContract(Contract):
    """Whatever is done to a record, by whichever process, shows in the next look."""

    def test_paths_are_looked_up_together(self, ann: Desk, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each ancestor where nothing was written would be asked for by itself, again and again."""
        ann.write("a", 1, entity="x/y/z/deep")
        store, asked = service.record.store, list[str]()
        rows = store.rows

        def noted(query: str, params: Params) -> list[Row]:
            asked.append(query)
            return rows(query, params)

        monkeypatch.setattr(store, "rows", noted)
        for known in ([], ["x/y/z/deep"]):
            asked.clear()
            assert len(known) == len(service.record.path_ids(DEFAULT_TENANT, known))
            assert 1 == len(service.record.path_ids(DEFAULT_TENANT, ["x", "x/y", "x/y/z", "x/y/z/deep", "x/nowhere"]))
            assert ["path_ids"] == asked
        asked.clear()
        assert 1 == len(service.record.path_ids(DEFAULT_TENANT, ["x/y/z/deep"]))
        assert [] == asked, "what is known is known"

    def test_what_is_followed_is_what_is_there(self, book: Book, service: Service, ann: Desk) -> None:
        """A briefing would rank by trust that has moved since, or not know what was written."""
        seed = 20_260
        print(f"seed {seed}")
        chosen = random.Random(seed)
        here, elsewhere = Follower(service.record), Follower(book.open().record)
        steps = [self.write, self.restate, self.run, self.attested_run, self.revised_run, self.read]
        for number in range(STEPS):
            step: Callable[[Desk, random.Random, int], None] = chosen.choice(steps if number else steps[:1])
            step(ann, chosen, number)
            book.clock.tick(seconds=60)
            for follower in (here, elsewhere):
                if chosen.random() < 0.4:
                    follower.look()
        for follower in (here, elsewhere):
            follower.look()
            assert follower.whole() == follower.heads

    def test_a_look_costs_what_has_changed(self, service: Service, ann: Desk) -> None:
        """One write to a large entity would be paid for with all of its entries."""
        for number in range(50):
            ann.write(f"key-{number}", number)
        follower = Follower(service.record)
        assert 50 == follower.look()
        ann.write("key-7", "again")
        follower.look()
        ann.write("key-9", "once more")
        assert follower.look() <= 5

    def entry(self, chosen: random.Random) -> dict[str, str]:
        return {"entity": chosen.choice(PATHS), "key": f"key-{chosen.randrange(KEYS)}"}

    def write(self, ann: Desk, chosen: random.Random, number: int) -> None:
        ann.write(**self.entry(chosen), value=chosen.randrange(3))

    def restate(self, ann: Desk, chosen: random.Random, number: int) -> None:
        where = self.entry(chosen)
        for why in ("because", "since"):
            ann.do("write", **where, value=0, why=why)

    def read(self, ann: Desk, chosen: random.Random, number: int) -> None:
        session = ann.begin(f"reader-{number}")
        ann.brief(entity=chosen.choice(PATHS), session=session)

    def run(self, ann: Desk, chosen: random.Random, number: int) -> None:
        """A run in a box, whose outcome nobody vouches for."""
        desk = box(ann.service, f"box-{number}")
        desk.begin(f"run-{number}")
        desk.brief(entity=chosen.choice(PATHS), session=f"run-{number}")
        if chosen.random() < 0.5:
            desk.write(**self.entry(chosen), value=chosen.randrange(3), session=f"run-{number}")
        desk.outcome(f"run-{number}", chosen.choice(["success", "failure", "critical_failure"]), ref=f"o-{number}")

    def attested_run(self, ann: Desk, chosen: random.Random, number: int) -> None:
        self.run(ann, chosen, number)
        ann.do("attest", ref=f"o-{number}", exit_code=chosen.choice([0, 0, 1]))

    def revised_run(self, ann: Desk, chosen: random.Random, number: int) -> None:
        self.attested_run(ann, chosen, number)
        ann.do("revise_outcome", ref=f"o-{number}", type=chosen.choice(["success", "failure"]), why="it was something else")
