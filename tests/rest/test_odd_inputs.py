"""What no honest client would send: refused with a typed 4xx that says what is wrong, and the record stays as it was."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from herdbook.service.door import Service
from herdbook.service.verbs import VERBS
from herdbook.surfaces.rest import examples
from tests.rest.serving import ENTRY, KEY, NEED_A_FIT, Server, open_service, serving

LEARNT = NEED_A_FIT | {"calibrate", "retrain"}  # refused as long as there is nothing to learn from
DEEP = b"[" * 100_000
NOBODYS = {"entity": "acme/ci", "key": "nobody wrote this"}
WRITE = {**ENTRY, "value": 1, "why": "because"}


class Told(NamedTuple):
    """A server over a record with one story in it, and the record's folder."""

    server: Server
    folder: Path

    def digest(self) -> str:
        """Of everything the record's file holds, but for who asked what, which is kept also of what is refused."""
        with closing(sqlite3.connect(f"file:{self.folder / 'record.db'}?mode=ro", uri=True)) as connection:
            rows = [line for line in connection.iterdump() if not line.startswith('INSERT INTO "audit"')]
        return hashlib.sha256("\n".join(rows).encode()).hexdigest()


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    folder = tmp_path_factory.mktemp("told")
    service = open_service(folder)
    with serving(service) as server:
        for verb, fields in examples.REQUESTS.items():
            refused = (400, 403, 404, 409) if verb in LEARNT else (403,)
            assert server.post(verb, fields).status in (200, *refused), verb
        server.post("search", {"query": "bring the text index up to date"})
        yield Told(server, folder)
    service.close()


@pytest.fixture
def keyed(service: Service) -> Iterator[Server]:
    """Where whoever asks may ask everything."""
    with serving(service, key=KEY) as running:
        yield running


@pytest.fixture
def untouched(told: Told) -> Iterator[Server]:
    """That server; its record must be the same afterwards."""
    before = told.digest()
    yield told.server
    assert before == told.digest()


def body_with(field: str, text: str) -> bytes:
    """A write whose field is this text of JSON, as it is."""
    fields = {name: json.dumps(value) for name, value in WRITE.items()} | {field: text}
    return ("{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in fields.items()) + "}").encode()


@pytest.mark.parametrize(
    "field, text, code",
    [
        ("confidence", "NaN", "invalid_value"),
        ("confidence", "Infinity", "invalid_value"),
        ("confidence", "1e400", "invalid_value"),
        ("confidence", "-0.1", "invalid_value"),
        ("confidence", "1.0000001", "invalid_value"),
        ("confidence", '"0.8"', "invalid_request"),
        ("confidence", "true", "invalid_request"),
        ("confidence", "[0.8]", "invalid_request"),
        ("confidence", "9" * 5_000, "too_large"),
        ("value", "9" * 5_000, "too_large"),
        ("value", "-" + "9" * 301, "too_large"),
        ("value", "NaN", "invalid_value"),
        ("value", '{"a": -Infinity}', "invalid_value"),
        ("value", "1e999", "invalid_value"),
        ("value", '{"a": 1, "a": 2}', "invalid_value"),
        ("value", '[{"a": {"b": 1, "b": 1}}]', "invalid_value"),
        ("value", "[" * 70 + "]" * 70, "too_large"),
        ("value", "[" * 100_000 + "]" * 100_000, "too_large"),
        ("value", '{"a":' * 2_000 + "1" + "}" * 2_000, "too_large"),
        ("value", '"\\ud800"', "invalid_text"),
        ("value", '{"\\udfff": 1}', "invalid_text"),
        ("value", json.dumps("x" * 64 * 1024), "too_large"),
        ("value", "01", "invalid_request"),
        ("value", "'single'", "invalid_request"),
        ("key", '""', "invalid_text"),
        ("key", '"   "', "invalid_text"),
        ("key", json.dumps("k" * 2_000), "too_large"),
        ("key", '"key\\n"', "invalid_text"),
        ("key", '"\\u202ekey"', "invalid_text"),
        ("key", '"nul\\u0000"', "invalid_text"),
        ("key", '"\\ud83d"', "invalid_text"),
        ("key", "null", "invalid_request"),
        ("key", "7", "invalid_request"),
        ("entity", '"acme//ci"', "invalid_text"),
        ("entity", '"/acme"', "invalid_text"),
        ("entity", json.dumps("/".join("a" * 17)), "too_large"),
        ("entity", json.dumps("e" * 513), "too_large"),
        ("entity", '"a\\u0000b"', "invalid_text"),
        ("why", json.dumps("w" * 4_001), "too_large"),
        ("why", '"nul \\u0000"', "invalid_text"),
        ("why", '"\\udc00"', "invalid_text"),
        ("kind", '"Fact"', "invalid_request"),
        ("kind", '"\\ud800"', "invalid_text"),
        ("worked", '"yes"', "invalid_request"),
        ("applies_when", '"\\u0007"', "invalid_text"),
        ("expires_at", '"tomorrow"', None),
        ("expires_at", '"9999999-01-01"', None),
        ("links", '[{"rel": "derived_from", "entity": "acme/ci", "key": "nobody"}]', None),
        ("links", '[{"rel": "likes", "entity": "acme/ci", "key": "retries"}]', "invalid_request"),
        ("links", "[" + ",".join(['{"rel":"see_also","entity":"acme/ci","key":"x"}'] * 33) + "]", None),
        ("session", '"no such session"', None),
        ("session", '"\\u0000"', None),
        ("request_id", '""', "invalid_text"),
        ("request_id", json.dumps("r" * 129), "too_large"),
        ("if_version", "-1", None),
        ("if_version", "99999999999999999999", None),
        ("if_version", "1.5", "invalid_request"),
        ("if_version", "7", "version_conflict"),
        ("tenant", "2", "invalid_request"),
        ("author", '"somebody else"', "invalid_request"),
        ("origin", '"principal"', "invalid_request"),
        ("\\ud800", "1", None),
    ],
)
def test_a_write_that_lies_is_refused(untouched: Server, field: str, text: str, code: str | None) -> None:
    """A lie would be stored, or the server would fail, on input that costs an attacker one line."""
    answer = untouched.ask("POST", "/v1/write", body_with(field, text).replace(b"\\\\ud800", b"\\ud800"))
    assert 400 <= answer.status < 500, answer
    assert answer.code == code or code is None, answer


@pytest.mark.parametrize(
    "body",
    [
        b"", b" ", b"{", b"}", b"[]", b"[{}]", b"null", b"true", b"1", b'"text"', b"{}{}", b'{"a":1,}', b"{'a':1}", b"NaN",
        b"\xff\xfe", b'{"a":"\xff"}', b"\xef\xbb\xbf{}", b'{"entity":"a","entity":"b"}', DEEP, b'{"a":' * 100_000,
        b'{"key":"\x00"}', b'{"key":"\n"}', b"-" * 1000,
        "{}".encode("utf-16"), "{}".encode("utf-32"), b'{"unknown": 1}', b"\x1f\x8b\x08\x00", b"entity=a&key=b",
    ],
)  # fmt: skip
def test_a_body_that_is_no_object_is_refused(untouched: Server, body: bytes) -> None:
    """A parser's failure would become a server's failure, or two readers would disagree about what was sent."""
    for verb in ("write", "read"):
        answer = untouched.ask("POST", f"/v1/{verb}", body)
        assert 400 <= answer.status < 500, (verb, answer)
        assert answer.code in ("invalid_request", "invalid_value", "invalid_text", "too_large")


@pytest.mark.parametrize(
    "verb, fields",
    [
        ("commit_outcome", {"session": "run-41", "type": "p1_incident"}),
        ("commit_outcome", {"session": "run-41", "type": "SUCCESS"}),
        ("commit_outcome", {"session": "run-41", "type": "ok"}),
        ("commit_outcome", {"session": "run-41", "type": "\ud800"}),
        ("commit_outcome", {"session": "run-41", "type": "success", "used": [{"entity": "acme/ci", "key": "nobody"}]}),
        ("commit_outcome", {"session": "run-41", "type": "success", "used": [{**examples.ENTRY, "version": 99}]}),
        ("commit_outcome", {"session": "run-41", "type": "success", "used": [{**examples.ENTRY, "version": 2**70}]}),
        ("commit_outcome", {"session": "run-41", "type": "success", "used": ["nobody served this"]}),
        ("commit_outcome", {"session": "run-41", "type": "success", "used": ["x"] * 1_001}),
        ("commit_outcome", {"session": "run-41", "type": "success", "observed": ["\ud800"]}),
        ("commit_outcome", {"session": "run-41", "type": "success", "artifacts": {"\ud800": 1}}),
        ("commit_outcome", {"session": "nobody", "type": "success"}),
        ("commit_outcome", {"session": "run-41", "type": "success", "task_input": "t" * 70_000}),
        ("commit_outcome", {"session": "run-41", "type": "failure", "ref": "ci-8841"}),
        ("revise_outcome", {"ref": "nobody", "type": "failure"}),
        ("revise_outcome", {"ref": "ci-8841", "type": "fail"}),
        ("start_session", {"agent": ""}),
        ("start_session", {"agent": "a\u0000"}),
        ("start_session", {"agent": "fixer", "session": "s" * 200}),
        ("start_session", {"agent": "fixer", "session": "\ud800"}),
        ("start_session", {"agent": "fixer", "task": "\ud800"}),
        ("end_session", {"session": "nobody"}),
        ("record_action", {"session": "run-41", "tool": "", "ok": True}),
        ("record_action", {"session": "run-41", "tool": "bash", "args": {"a": "\ud800"}}),
        ("record_action", {"session": "run-41", "tool": "bash", "result": "x" * 600_000}),
        ("record_action", {"session": "nobody", "tool": "bash"}),
        ("record_context", {"session": "run-41", "name": "n\n", "text": "t"}),
        ("record_context", {"session": "run-41", "name": "n", "text": "\ud800"}),
        ("attempt", {"session": "run-41", "result": "maybe"}),
        ("attempt", {"session": "run-41", "result": "failure", "used": ["nobody served this"]}),
        ("attempt", {"session": "run-41", "result": "failure", "used": [1]}),
        ("box_open", {**examples.REQUESTS["box_open"], "box": "b2", "isolation": "none"}),
        ("box_open", {**examples.REQUESTS["box_open"], "box": "b2", "lease_seconds": 0}),
        ("box_open", {**examples.REQUESTS["box_open"], "box": "b2", "lease_seconds": 10**30}),
        ("box_open", {**examples.REQUESTS["box_open"], "box": "\ud800"}),
        ("box_open", {**examples.REQUESTS["box_open"], "label": "another"}),
        ("box_beat", {"box": "nobody"}),
        ("box_beat", {"box": "box-7f3a", "lease_seconds": -5}),
        ("box_close", {"box": "nobody"}),
        ("read", NOBODYS),
        ("read", {**examples.ENTRY, "version": 0}),
        ("read", {**examples.ENTRY, "version": -1}),
        ("read", {**examples.ENTRY, "version": 2**63}),
        ("read", {**examples.ENTRY, "version": 10**300}),
        ("read", {**examples.ENTRY, "session": "nobody"}),
        ("read", {**examples.ENTRY, "session": "\ud800"}),
        ("read", {"entity": "\ud800", "key": "x"}),
        ("brief", {"entity": "acme", "tokens": 0}),
        ("brief", {"entity": "acme", "tokens": 10**30}),
        ("brief", {"entity": "acme", "task": "\ud800"}),
        ("brief", {"entity": ""}),
        ("search", {"query": ""}),
        ("search", {"query": "q" * 5_000}),
        ("search", {"query": "\ud800"}),
        ("search", {"query": "payment", "limit": 0}),
        ("search", {"query": "payment", "limit": -1}),
        ("search", {"query": "payment", "limit": 10**30}),
        ("list", {"limit": 0}),
        ("list", {"limit": 10**30}),
        ("list", {"after": "not a page"}),
        ("list", {"after": "[1, 2]"}),
        ("list", {"after": "[" * 100_000}),
        ("list", {"after": '["\\ud800", ""]'}),
        ("list", {"entity": "\u0000"}),
        ("history", NOBODYS),
        ("diff", {**examples.ENTRY, "old": 5, "new": 9}),
        ("diff", {**examples.ENTRY, "old": -1, "new": 10**30}),
        ("why", NOBODYS),
        ("trace", {"ref": "nobody"}),
        ("trace", {"ref": ""}),
        ("trace", {"ref": "\ud800"}),
        ("box_list", {"limit": -1}),
        ("box_list", {"limit": 10**30}),
        ("box_list", {"label": "\ud800"}),
        ("status", {"verbose": True}),
    ],
)  # fmt: skip
def test_a_request_that_makes_no_sense_is_refused(untouched: Server, verb: str, fields: dict[str, Any]) -> None:
    """What cannot be meant would be carried out, or answered as the server's failure."""
    answer = untouched.post(verb, fields)
    assert 400 <= answer.status < 500, answer
    assert answer.code


@pytest.mark.parametrize(
    "query",
    [
        "entity=acme/ci&key=retries&version=99999999999999999999", "entity=acme/ci&key=retries&version=" + "9" * 5_000,
        "entity=a&key=b&version=1.5", "entity=a&key=b&version=", "entity=a&entity=b&key=c", "entity=a", "entity=a&key=b&hue=1",
        "entity=%ff&key=b", "entity=%ed%a0%80&key=b", "entity=a&key=%00", "entity", "&&", "=1", "entity=a&key=b&" + "x=1&" * 60,
        "entity=a&key=" + "k" * 3_000, "entity=%", "entity=a&key=b&version=true", "entity=a&key=b&version=%D9%A3",
    ],
)  # fmt: skip
def test_a_query_that_makes_no_sense_is_refused(untouched: Server, query: str) -> None:
    """A number no database can hold, or half a parameter, would be the server's failure."""
    answer = untouched.get(f"/v1/read?{query}")
    assert 400 <= answer.status < 500, answer
    assert answer.code


@pytest.mark.parametrize("query", ["limit=99999999999999999999", "live=maybe", "limit=-9223372036854775809"])
def test_a_page_without_end_is_refused(untouched: Server, query: str) -> None:
    """One request would ask for everything, or overflow the engine's integers."""
    assert untouched.get(f"/v1/box_list?{query}").status == 400


PLACES = [
    "",
    "x",
    "-1",
    "9" * 19,
    "9" * 400,
    "1e9",
    "\u0661",
    "[0]",
    "[-1e999,0,0]",
    f'[{-(10**30)}, "", 0]',
    f'[0, "", {-(10**30)}]',
]


@pytest.mark.parametrize("place", [*PLACES, f'[{2**63}, "", 0]', '["", ""]', '["\u0000", ""]', "[" * 10_000, "1" * 5_000])
@pytest.mark.parametrize("verb", ["audit", "changes", "exposures", "list", "outcomes", "runs", "snapshot"])
def test_no_place_to_go_on_from_is_the_servers_failure(keyed: Server, verb: str, place: str) -> None:
    """A cursor that somebody made up would be a 500, or overflow the engine's integers."""
    asked = ("runs", {"snapshot": place}) if verb == "snapshot" else (verb, {"after": place})
    answer = keyed.post(*asked)
    assert answer.status in (200, 400, 413), answer
    assert answer.status == 200 or answer.code


def test_a_row_id_of_all_digits_there_are_is_one(keyed: Server) -> None:
    """From 2035 on ids have nineteen digits, and no page but the first could be asked for."""
    for verb, field in (("changes", "after"), ("exposures", "after"), ("runs", "snapshot")):
        assert 200 == keyed.post(verb, {field: str(2**63 - 1)}).status, verb


def test_traversal_is_only_text(server: Server) -> None:
    """A key with slashes or dots would name another place than it says."""
    for key in ("a/b", "../../etc/passwd", "."):
        assert server.post("write", {**WRITE, "key": key, "value": key}).status == 200
        assert server.post("read", {"entity": "acme/ci", "key": key}).json["value"] == key


def test_both_spellings_of_a_key_are_one_key(server: Server) -> None:
    """A key in two Unicode forms would be two entries that look the same."""
    assert server.post("write", {**WRITE, "key": "caf\u00e9"}).json["version"] == 1
    assert server.post("write", {**WRITE, "key": "cafe\u0301", "value": 2}).json["version"] == 2


def test_null_is_the_default(server: Server) -> None:
    """A confidence of null would be taken for a number."""
    assert server.post("write", {**WRITE, "confidence": None}).json["confidence"] == 0.5


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=8)
    | st.sampled_from(["\ud800", "\x00"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(), max_size=8), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def distorted(draw: st.DrawFn) -> tuple[str, Any]:
    """A verb with its example, in which some fields have become anything at all."""
    verb = draw(st.sampled_from(sorted(VERBS)))
    fields = dict(examples.REQUESTS[verb])
    names = [*VERBS[verb].request.__struct_fields__, "unknown"]
    for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=3)):
        fields[name] = draw(JSON)
    return verb, fields


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(distorted())
def test_nothing_a_client_sends_is_the_servers_failure(server: Server, request_: tuple[str, Any]) -> None:
    """Some combination that nobody thought of would be a 500."""
    verb, fields = request_
    answer = server.ask("POST", f"/v1/{verb}", json.dumps(fields).encode())
    assert answer.status < 500, (verb, fields, answer)
    assert answer.status == 200 or answer.code


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.binary(max_size=300))
def test_no_bytes_are_the_servers_failure(server: Server, data: bytes) -> None:
    """Some bytes in place of a request would be a 500, or silence that costs a connection."""
    answer = server.raw(
        b"POST /v1/write HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
        % (len(data), data)
    )
    assert answer is not None
    assert 400 <= answer.status < 500
