"""The same history on both engines gives the same answers, to the last bit of every number."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from herdbook.base.errors import HerdbookError
from herdbook.testing.record_model import run_model
from herdbook.testing.records import Book, Desk, box, person
from tests.record.files import sqlite_book

KEYS, PATHS = ("a", "b", "c"), ("acme", "acme/ci", "acme/ci/tests", "acme/web")
TYPES = ("success", "success", "success", "minor_failure", "failure", "critical_failure")
WORDS = ("lint", "timezone", "cache", "flaky", "docker", "utc", "retry")


VERBS = (
    "write", "write", "read", "brief", "attempt", "commit_outcome", "commit_outcome", "attest", "revise_outcome", "search", "why",
    "history", "trace", "list", "tune",
)  # fmt: skip
Told = tuple[str, str, dict[str, Any]]


def history(seed: int, *, steps: int) -> list[Told]:
    """Who does what, in order: everything that moves trust, and everything that shows it."""
    dice = random.Random(seed)
    told: list[Told] = []
    refs = ["none"]
    for n in range(steps):
        who, verb = dice.choice(("ann", "bob", "box-1", "box-2")), dice.choice(VERBS)
        session = f"{who}-{dice.randrange(3)}"
        told.append((who, "start_session", {"session": session, "agent": who}))
        by = "ann" if verb in ("attest", "revise_outcome", "tune") else who
        told.append((by, verb, asked(dice, verb, n, session, refs)))
        if verb == "commit_outcome":
            refs.append(f"o{n}")
    return told


def asked(dice: random.Random, verb: str, n: int, session: str, refs: list[str]) -> dict[str, Any]:
    """The fields of one request."""
    path, words = dice.choice(PATHS), " ".join(dice.choices(WORDS, k=3))
    entry, request = {"entity": path, "key": dice.choice(KEYS)}, {"request_id": f"r{n}"}
    used = [{"entity": dice.choice(PATHS), "key": dice.choice(KEYS)} for _ in range(dice.randrange(3))]
    stated = {"why": dice.choice(WORDS), "confidence": dice.choice((0.5, 0.8, 0.97))}
    ref, kind = {"ref": dice.choice(refs)}, {"type": dice.choice(TYPES)}
    declared = {"used": used} if dice.random() < 0.6 else {}
    fields: dict[str, dict[str, Any]] = {
        "write": {**entry, "value": words, **stated, "session": session, **request},
        "read": {**entry, "session": session},
        "brief": {"entity": path, "task": words, "session": session},
        "attempt": {"session": session, "result": "failure", "used": used, **request},
        "commit_outcome": {"session": session, **kind, "ref": f"o{n}", **declared},
        "attest": {**ref, "result": dice.choice(("success", "failure"))},
        "revise_outcome": {**ref, **kind, **request},
        "search": {"query": words},
        "why": entry,
        "history": entry,
        "trace": {"ref": session},
        "list": {},
        "tune": {"entity": path, "values": {"multiplier_failure": dice.choice((0.8, 0.95))}, **request},
    }
    return fields[verb]


def played(book: Book, told: list[Told]) -> list[str]:
    """Every answer and refusal, as a surface would send it."""
    service = book.open()
    desks: dict[str, Desk] = {who: box(service, who) if who.startswith("box") else person(service, who) for who, _, _ in told}
    said = []
    for n, (who, verb, fields) in enumerate(told):
        book.clock.tick(seconds=1 + n % 7)
        try:
            said.append(json.dumps(desks[who].do(verb, **fields)))
        except HerdbookError as problem:
            said.append(json.dumps(problem.as_dict()))
    return said


def agree(seed: int, tmp_path: Path, book: Book, *, steps: int) -> None:
    told = history(seed, steps=steps)
    file = sqlite_book(tmp_path / f"{seed}.db", synchronous="NORMAL")
    try:
        expected = played(file, told)
    finally:
        file.close()
    for (who, verb, fields), one, other in zip(told, expected, played(book, told), strict=True):
        assert one == other, f"seed {seed}: {who} {verb} {fields}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_a_random_history_gives_the_same_answers(seed: int, tmp_path: Path, book: Book) -> None:
    """What a company learnt on one engine would count for something else on the other."""
    agree(seed, tmp_path, book, steps=60)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(1_000, 3_000, 100))
def test_two_thousand_histories_give_the_same_answers(first: int, tmp_path: Path) -> None:
    """A rare order of events would round otherwise, or be ranked otherwise."""
    from tests.postgres_server import server
    from tests.record.databases import postgres_book

    for seed in range(first, first + 100):
        name = server().database()
        book = postgres_book(name, tmp_path / "seal.key")
        try:
            agree(seed, tmp_path, book, steps=60)
        finally:
            book.close()
            server().give_back(name)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_postgres_does_what_the_model_does(book: Book) -> None:
    """Some order of writes, outcomes, revisions and attestations would leave other numbers than a replay gives."""
    settings = hypothesis.settings(max_examples=60, stateful_step_count=30, suppress_health_check=list(hypothesis.HealthCheck))
    run_model(book, settings)
