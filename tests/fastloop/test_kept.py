"""What a process has followed answers as one that begins from nothing, to the byte."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from herdbook.base.clock import MICROSECONDS_PER_DAY
from herdbook.fastloop import kept as kept_module
from herdbook.fastloop.briefing import Briefed, Briefer, in_block
from herdbook.fastloop.kept import Kept, KeptPaths
from herdbook.fastloop.ordering import Orderer
from herdbook.fastloop.search import Searched, Searcher
from herdbook.record.precedents import EVERY, name_of
from herdbook.record.tunables import DEFAULT
from tests.fastloop.fake_record import NOW, TENANT, Asked, FakeRecord

PATHS = ("acme/ci", "acme", "acme/ci/unit")
WORDS = ["cache", "lock", "retry", "pool", "timeout", "tls", "proxy", "pytest", "flag", "budget", "région", "構成", "path"]
SEEDS = range(3)
STEPS = 10
TASKS = (None, "retry pool", "tls proxy of the cache", "nothing has these letters zzz", "構成")


def text(chosen: random.Random) -> str:
    return " ".join(chosen.choices(WORDS, k=chosen.randrange(1, 6)))


def change(record: FakeRecord, chosen: random.Random) -> None:
    """Something that a fleet does to a record."""
    path, key = chosen.choice(PATHS), f"key-{chosen.randrange(30)}"
    old = record.current.get((path, key))
    act = chosen.randrange(3)
    if act == 0 or old is None:
        stands = chosen.random() < 0.3
        expires = NOW + chosen.randrange(-1, 3) * 30_000_000 if chosen.random() < 0.2 else None
        more: dict[str, Any] = {"observed": int(stands), "expires_at": expires, "age_days": chosen.choice([0, 0, 3, 400])}
        if chosen.random() < 0.2:
            more |= {"kind": "experience", "worked": False}
        if old is not None and old.observed:
            more["standing_id"] = old.version_id
        record.write(path, key, text(chosen), why=chosen.choice([None, text(chosen)]), confidence=chosen.random(), **more)
        return
    credit = chosen.random()
    moved = (
        old._replace(held=old.held + credit, moves=old.moves + 1, failed_since=0.0)
        if act == 1
        else old._replace(failed=old.failed + credit, moves=old.moves + 1, failed_since=old.failed_since + credit)
    )
    moved = moved._replace(recalls=moved.recalls + 1)
    record.current[path, key] = record.trust[moved.version_id] = moved


def answers(record: FakeRecord, briefer: Briefer, searcher: Searcher, *, now: int) -> list[dict[str, Any]]:
    found: list[Briefed | Searched] = [
        briefer.brief(TENANT, Asked(task=task, tokens=tokens), now=now) for task in TASKS for tokens in (300, 2_000)
    ]
    found += [searcher.search(TENANT, Asked(query=task, entity="acme", limit=4), now=now) for task in TASKS[1:]]
    return [
        {"answer": each.answer, "exposures": [shown._asdict() for shown in each.exposures], "serving": each.serving._asdict()}
        for each in found
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_followed_answers_as_what_begins_anew(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A briefing after a write or an outcome would not be the one another server gives."""
    monkeypatch.setattr(kept_module, "COLUMNS_MIN", 1)
    print(f"seed {seed}")
    chosen, record, now = random.Random(seed), FakeRecord(), NOW
    warm = Orderer()
    for _ in range(40):
        change(record, chosen)
    for _ in range(STEPS):
        for _ in range(chosen.choice([0, 1, 1, 3])):
            change(record, chosen)
        now += chosen.choice([0, 0, 1_000_000, 20_000_000, 90_000_000, -5_000_000, 20 * MICROSECONDS_PER_DAY])
        record.bases = {path: chosen.choice([0.4, 0.5, 0.8]) for path in PATHS if chosen.random() < 0.9}
        if chosen.random() < 0.1:
            record.tuned = chosen.choice([DEFAULT, DEFAULT.__class__(evidence_lambda=chosen.random() * 8)])
        fresh = Orderer()
        expected = answers(record, Briefer(record, fresh), Searcher(record, fresh), now=now)
        found = answers(record, Briefer(record, warm), Searcher(record, warm), now=now)
        assert json.dumps(expected, sort_keys=True) == json.dumps(found, sort_keys=True)
    assert any(kept.columns is not None for kept in warm.kept.held.values())


def test_columns_and_rows_give_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """With numpy installed a record would be ranked otherwise than without."""
    chosen, record = random.Random(5), FakeRecord()
    for _ in range(200):
        change(record, chosen)
    parts = [name_of("tls proxy of the cache"), EVERY]
    record.parts = [(1, part, "", 9.0) for part in parts]
    record.used = [
        (1, part, version, float(version % 9) * (part != EVERY), 0.0, 0)
        for part in parts
        for version in range(1, len(record.stored), 3)
    ]
    answered = []
    for columns in (True, False):
        monkeypatch.setattr(kept_module, "numpy_there", lambda columns=columns: columns)
        monkeypatch.setattr(kept_module, "COLUMNS_MIN", 1)
        orderer = Orderer()
        for _ in range(3):
            last = answers(record, Briefer(record, orderer), Searcher(record, orderer), now=NOW)
        assert columns == all(kept.columns is not None for kept in orderer.kept.held.values())
        answered.append(json.dumps(last, sort_keys=True))
    assert answered[0] == answered[1]


def test_a_look_judges_what_has_changed() -> None:
    """One write to a large entity would cost what all of its entries cost."""
    record = FakeRecord()
    for number in range(300):
        record.write("acme/ci", f"key-{number}", number)
    orderer = Orderer()
    briefer = Briefer(record, orderer)
    briefer.brief(TENANT, Asked(task="a task"), now=NOW)
    [kept] = orderer.kept.held.values()
    assert 300 == kept.judged
    record.write("acme/ci", "key-7", "again", number=2)
    briefer.brief(TENANT, Asked(task="a task"), now=NOW + 1)
    assert 301 == kept.judged


@pytest.mark.parametrize("columns", [True, False])
def test_an_outcome_moves_every_evidence_and_judges_only_what_it_touched(columns: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each outcome changes how often runs succeed at all: a path whose entries were all tried would be judged whole each time."""
    monkeypatch.setattr(kept_module, "numpy_there", lambda: columns)
    record, orderer = FakeRecord(), Orderer()
    for number in range(300):
        record.write("acme/ci", f"key-{number}", number, held=float(number % 7), failed=float(number % 5))
    briefer = Briefer(record, orderer)
    for base in (0.5, 0.5, 0.9, 0.2):
        record.bases = {"acme/ci": base}
        found = briefer.brief(TENANT, Asked(task="a task", tokens=8_000), now=NOW)
        anew = Briefer(record, Orderer()).brief(TENANT, Asked(task="a task", tokens=8_000), now=NOW)
        assert anew.answer == found.answer
    [kept] = orderer.kept.held.values()
    assert (300, columns) == (kept.judged, kept.columns is not None)


def test_what_is_held_keeps_to_its_bound() -> None:
    """A server of many entities would grow until the machine kills it."""
    paths = KeptPaths(bytes_max=5_000)
    for number in range(9):
        kept = paths.of(number, floor=0.0, place_of=in_block)
        kept.heads.update({entry: (entry, None, 0.5, 0, 0, 0, 0, 0.0, None, 0.0, 0.0) for entry in range(2)})
        paths.tidy()
        assert sum(held.size_bytes for held in paths.held.values()) <= 5_000
    assert [7, 8] == list(paths.held), "the last ones asked for stay"


def test_an_entry_that_is_gone_is_not_served() -> None:
    """What was taken out of a record would be told until the server is started again."""
    record, orderer = FakeRecord(), Orderer()
    record.write("acme/ci", "gone", 1)
    record.write("acme/ci", "there", 2)
    briefer = Briefer(record, orderer)
    assert 2 == briefer.brief(TENANT, Asked(), now=NOW).answer["known"]
    del record.current["acme/ci", "gone"]
    assert ["there"] == [entry["key"] for entry in briefer.brief(TENANT, Asked(), now=NOW).answer["entries"]]


def test_what_expired_by_a_clock_that_is_set_back_is_there_again() -> None:
    """A server whose clock ran ahead for a moment would withhold entries for the rest of five minutes."""
    record, orderer = FakeRecord(), Orderer()
    now = NOW - NOW % kept_module.PERIOD
    record.write("acme/ci", "short", 1, expires_at=now + 10_000_000)
    briefer = Briefer(record, orderer)
    known = [len(briefer.brief(TENANT, Asked(), now=now + after * 1_000_000).answer["entries"]) for after in (0, 20, 5, 20, 9)]
    assert [1, 0, 1, 0, 1] == known


def test_superseded_versions_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Places of superseded versions would pile up for ever."""
    monkeypatch.setattr(kept_module, "COLUMNS_MIN", 1)
    record, orderer = FakeRecord(), Orderer()
    briefer = Briefer(record, orderer)
    for number in range(900):
        record.write("acme/ci", "key", f"value {number}", number=number + 1)
        if number % 5 == 0:
            briefer.brief(TENANT, Asked(), now=NOW)
            [kept] = orderer.kept.held.values()
            assert isinstance(kept, Kept)
            assert kept.columns is None or len(kept.columns.ids) < 300
