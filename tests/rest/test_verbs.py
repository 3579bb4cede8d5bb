"""Every verb over REST: the same story in order, with POST and GET, and what surrounds an answer."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
import pytest

from herdbook.service.callers import SCOPES
from herdbook.service.door import Service
from herdbook.service.verbs import VERBS
from herdbook.surfaces.rest import examples
from herdbook.surfaces.rest.auth import KEYLESS
from tests.rest.serving import ENTRY, KEY, NEED_A_FIT, Server, serving

ASKS = sorted(name for name, verb in VERBS.items() if not verb.tells)
TELLS = sorted(name for name, verb in VERBS.items() if verb.tells)
WRITE = {**ENTRY, "value": {"PAYMENT_RETRIES": "3"}, "why": "two are rejected"}


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def test_the_whole_story(service: Service) -> None:
    """Some verb would not be reachable over REST, or would answer in another form than it says."""
    with serving(service, key=KEY) as server:
        for verb, fields in examples.REQUESTS.items():
            answer = server.post(verb, fields)
            if verb in NEED_A_FIT:
                assert 400 <= answer.status < 500, (verb, answer)
                continue
            assert answer.status == 200, (verb, answer)
            msgspec.convert(answer.json, VERBS[verb].answer)


def test_every_verb_has_an_example_and_every_example_a_verb() -> None:
    """A verb without an example would be left out of the story, and of the description."""
    assert set(VERBS) == set(examples.REQUESTS)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_is_routed_and_has_a_scope(server: Server, verb: str) -> None:
    """A verb would exist in process only, or be open to everybody."""
    assert VERBS[verb].scope in SCOPES
    answer = server.post(verb, {"no such field": 1})
    expected = (403, "forbidden") if VERBS[verb].scope not in KEYLESS else (400, "invalid_request")
    assert expected == (answer.status, answer.code)


@pytest.mark.parametrize("verb", ASKS)
def test_get_answers_as_post_does(server: Server, verb: str) -> None:
    """A question in an address bar would be answered differently."""
    server.post("start_session", examples.REQUESTS["start_session"])
    server.post("write", examples.REQUESTS["write"])
    server.post("commit_outcome", examples.REQUESTS["commit_outcome"])
    fields = {name: value for name, value in examples.REQUESTS[verb].items() if name != "session"}
    query = urlencode({name: as_text(value) for name, value in fields.items()}, quote_via=quote)
    asked, got = server.post(verb, fields), server.get(f"/v1/{verb}?{query}")
    expected = 200 if VERBS[verb].scope in KEYLESS else 403
    assert (expected, expected) == (asked.status, got.status), got
    assert set(asked.json) == set(got.json)


@pytest.mark.parametrize("verb", TELLS)
def test_a_link_changes_nothing(server: Server, verb: str) -> None:
    """Following a link, or a prefetching browser, would write to the record."""
    query = urlencode({name: as_text(value) for name, value in examples.REQUESTS[verb].items()})
    answer = server.get(f"/v1/{verb}?{query}")
    assert (405, "method_not_allowed", "POST") == (answer.status, answer.code, answer.headers["allow"])


@pytest.mark.parametrize("method", ["HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(server: Server, method: str) -> None:
    """A method nobody thought about would do something."""
    for path in ("/v1/read", "/v1/write", "/metrics"):
        if (method, path) != ("HEAD", "/metrics"):
            answer = server.ask(method, path)
            assert answer.status == 405, path
            assert "allow" in answer.headers


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/", "/v1/no_such_verb", "/v1/write/", "/v2/write", "/v1/write/x", "/healthz/", "//", "/%00"]
)
def test_an_unknown_address_is_not_found(server: Server, path: str) -> None:
    """A typo would be redirected, or answered with a page."""
    answer = server.ask("POST", path, b"{}")
    assert (404, "not_found") == (answer.status, answer.code)


def test_a_missing_entry_is_not_found(server: Server) -> None:
    """Nothing known would look like an answer."""
    answer = server.post("read", {"entity": "acme/ci", "key": "nobody wrote this"})
    assert (404, "not_found") == (answer.status, answer.code)


def test_the_surroundings_of_an_answer(server: Server) -> None:
    """A cache would keep an answer, a browser guess it to be a page, or nobody could find it in the log."""
    for answer in (server.post("write", WRITE), server.post("read", ENTRY), server.get("/nowhere"), server.get("/healthz")):
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-request-id"].startswith("req_")
        assert answer.headers["date"].endswith(" GMT")
        assert "server" not in answer.headers
        assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "content_type, status",
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/JSON;charset=UTF-8", 200),
        ("application/json; charset=latin-1", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("text/plain", 415),
        ("text/plain; application/json", 415),
        ("application/jsonx", 415),
        ("", 415),
    ],
)
def test_only_json_is_taken(server: Server, content_type: str, status: int) -> None:
    """A form on any web page could write to the record, since a browser sends forms anywhere."""
    answer = server.post("write", WRITE, **{"Content-Type": content_type})
    assert status == answer.status
    assert status == 200 or answer.code == "unsupported_media_type"


def test_a_retry_gets_the_first_answer_and_another_body_is_refused(server: Server) -> None:
    """A lost reply would make a second version, or a reused id would hide another write."""
    first = server.post("write", {**WRITE, "request_id": "r-1"})
    again = server.post("write", {**WRITE, "request_id": "r-1"})
    other = server.post("write", {**WRITE, "value": 2, "request_id": "r-1"})
    assert first.body == again.body
    assert (409, "request_conflict") == (other.status, other.code)
    assert len(server.post("history", ENTRY).json["versions"]) == 1


def test_what_nobody_foresaw_is_answered_without_a_traceback(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug would close the connection, or show the server's insides to whoever found it."""

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("inside knowledge")

    monkeypatch.setattr(service, "perform", fail)
    with serving(service) as server:
        answer = server.post("read", ENTRY)
        assert server.get("/healthz").status == 200
    assert (500, "internal") == (answer.status, answer.code)
    assert b"inside knowledge" not in answer.body
    assert answer.headers["x-request-id"] in caplog.text
    assert "inside knowledge" in caplog.text


def test_the_client_is_served_with_its_digest(server: Server) -> None:
    """A cold box could not fetch the client, or not tell whether it came whole."""
    answer = server.get("/client.py")
    assert files("herdbook").joinpath("client.py").read_bytes() == answer.body
    assert hashlib.sha256(answer.body).hexdigest() == answer.headers["x-checksum-sha256"]


def test_pages_answer_head(server: Server) -> None:
    """A load balancer that only looks would see an error."""
    answer = server.ask("HEAD", "/healthz")
    assert (200, b"") == (answer.status, answer.body)
    assert answer.headers["content-length"] == "14"


def test_ready_means_that_the_record_answers(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server whose record is gone would go on receiving requests."""
    from herdbook.base.errors import Busy

    with serving(service) as server:
        assert server.get("/readyz").json == {"ready": True}

        def locked(*_: object, **__: object) -> None:
            raise Busy

        monkeypatch.setattr(service, "perform", locked)
        answer = server.get("/readyz")
        assert (503, "busy", "1") == (answer.status, answer.code, answer.headers["retry-after"])
        assert server.get("/healthz").status == 200
