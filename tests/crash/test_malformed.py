"""What nobody should send, in every verb and every field: refused by name, and the record is to the byte what it was."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from herdbook.base.clock import SystemClock
from herdbook.base.errors import HerdbookError
from herdbook.record.record import Record
from herdbook.service.callers import local_caller
from herdbook.service.door import Service
from herdbook.service.verbs import VERBS
from herdbook.surfaces.rest import examples
from tests.crash import invariants
from tests.crash.running import figures, seeded
from tests.rest.serving import NEED_A_FIT, Server, serving

CALLER = local_caller("tester")
TOGETHER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


ROUND: list[Any] = []
ROUND.append(ROUND)

# No field of any verb takes one of these.
NOWHERE: tuple[Any, ...] = (
    *("\ud800", "a\udfffb", {"\ud800": 1}, ["\udc00"], b"\xff\x00", "x" * 2_000_000),
    *(math.nan, math.inf, -math.inf, [math.nan], {"a": {"b": -math.inf}}, 10**400, -(10**5_000), [10**400], 1j),
    *({1: 2}, {None: 1}, {(1, 2): 3}, {1, 2}, range(3), nested(70), nested(5_000), ROUND, {"a": ROUND}),
    *(object(), Exception("x"), type, memoryview(b"x"), nested),
)

# The same as texts of JSON, where there are such texts, and what only a text can say.
NOWHERE_JSON = (
    *('"\\ud800"', '"a\\udfffb"', '{"\\ud800":1}', "\x00", '"\x01"', '"unfinished'),
    *("NaN", "Infinity", "-Infinity", "[NaN]", '{"a":{"b":-Infinity}}', "1e400", "-1e999", "9" * 5_000, "[" + "9" * 301 + "]"),
    *('{"a":1,"a":1}', '[{"b":{"c":1,"c":2}}]', "[" * 70 + "]" * 70, "[" * 100_000 + "]" * 100_000, "[" * 100_000),
    *("01", "+1", "'a'", "True", "undefined", "[1,]", "{1:2}", "0x10", "1_000"),
)


TYPED = frozenset({"invalid_request", "invalid_text", "invalid_value", "too_large", "unknown_outcome_type", "request_conflict"})
ID_OF = {"commit_outcome": ("ref",), **dict.fromkeys(("write", "record_action", "record_context", "attempt"), ("request_id",))}
PLACES = [
    (verb, name) for verb in sorted({*VERBS} - NEED_A_FIT) for name in (*VERBS[verb].request.__struct_fields__, "tenant", "")
]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A record with one story in it, served, and open in process."""
    home = tmp_path_factory.mktemp("told")
    service = Service(Record.open(home / "record.db", key_file=home / "seal.key"), SystemClock())
    with serving(service) as server:
        for verb, fields in examples.REQUESTS.items():
            if verb not in NEED_A_FIT:
                service.perform(CALLER, verb, fields)
        service.perform(CALLER, "search", {"query": "bring the text index up to date"})
        yield server
    service.close()


@pytest.fixture
def untouched(told: Server) -> Iterator[Server]:
    path = record_of(told)
    before = invariants.digest(path)
    yield told
    assert before == invariants.digest(path), "something malformed changed the record"
    invariants.check(path)


def record_of(server: Server) -> Path:
    path = server.app.service.record.store.path  # type: ignore[attr-defined]  # it is SQLite's
    assert isinstance(path, Path)
    return path


@pytest.mark.slow
def test_what_no_field_takes_in_process(untouched: Server) -> None:
    """An odd value from an agent's own code would end in a traceback, or half of it in the record."""
    service, codes = untouched.app.service, Counter[str]()
    findings: list[str] = []
    for verb, name in PLACES:
        for wrong in NOWHERE:
            try:
                service.perform(CALLER, verb, {**examples.REQUESTS[verb], name: wrong})
                said = "answered"
            except HerdbookError as refusal:
                said = refusal.code if refusal.status // 100 == 4 else f"{refusal.status}"
                said = said if len(json.dumps(refusal.as_dict())) < 4_000 else "all of it again"
            except Exception as problem:  # because whatever comes is the finding
                said = f"untyped {problem!r:.100}"
            codes[said] += 1
            if said not in TYPED:
                findings.append(f"{verb}, {name} = {short(wrong)}: {said}")
    figures("refused in process", codes)
    assert not findings, "\n".join(findings)
    assert codes.total() > 2_000


@pytest.mark.slow
def test_what_no_field_takes_over_rest(untouched: Server) -> None:
    """An odd body would be answered with 500, or by a server that no longer answers."""
    codes: Counter[str] = Counter()
    everything = [(verb, name, wrong) for verb, name in PLACES for wrong in NOWHERE_JSON]
    for verb, name, wrong in seeded().sample(everything, 800):
        texts = {each: json.dumps(value) for each, value in examples.REQUESTS[verb].items()} | {name: wrong}
        body = "{" + ",".join(f"{json.dumps(each)}:{text}" for each, text in texts.items()) + "}"
        reply = untouched.ask("POST", f"/v1/{verb}", body.encode())
        assert 400 <= reply.status < 500, (verb, name, short(wrong), reply.status, reply.body[:300])
        assert len(reply.body) < 4_000
        assert b"Traceback" not in reply.body
        codes[reply.code] += 1
    figures("refused over REST", codes)
    assert 200 == untouched.get("/readyz").status


def short(value: Any) -> str:
    try:
        return repr(value)[:80]
    except (RecursionError, ValueError) as problem:
        return f"{type(value).__name__} of which {problem}"


ODD = st.characters(categories=["Cs", "Cc", "Cf"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=20) | ODD
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3) | st.tuples(inner)
    ),
    max_leaves=6,
)


@pytest.mark.slow
def test_anything_at_all_in_any_field(told: Server) -> None:
    """Some value that nobody thought of would come out as a failure that nobody typed."""
    service = told.app.service
    ways: Counter[str] = Counter()

    @given(st.sampled_from(PLACES), ANYTHING)
    @settings(TOGETHER, max_examples=600)
    def answered_or_refused(place: tuple[str, str], odd: Any) -> None:
        verb, name = place
        fresh = {each: None for each in ("request_id", "ref") if verb != "attest" and each in ID_OF.get(verb, ())}
        try:
            service.perform(CALLER, verb, {**examples.REQUESTS[verb], **fresh, name: odd})
            ways["answered"] += 1
        except HerdbookError as refusal:
            assert 400 <= refusal.status < 500, refusal  # noqa: PT017  only one of the two ways raises
            ways[refusal.code] += 1

    answered_or_refused()
    figures("anything", ways)
    invariants.check(record_of(told))
