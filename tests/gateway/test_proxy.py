"""What a box gets through the gateway: the service it was granted, as it is, and nothing of the credential."""

from __future__ import annotations

import base64
import json
import threading
from urllib.parse import quote

import pytest

from herdbook.base import limits
from tests.gateway.serving import SECRET, World, code, raw
from tests.gateway.upstream import Asked, Upstream, chunked, whole


def test_a_box_calls_a_service_without_any_key(world: World, upstream: Upstream) -> None:
    """A box could not use a service without holding its key."""
    world.connect("github", upstream.url)
    reply = world.ask(world.box("one"), "GET", "/v1/gateway/github/repos/acme?per_page=2")
    assert (200, b"ok") == (reply.status, reply.body)
    [asked] = upstream.asked
    assert ("GET", "/repos/acme?per_page=2") == (asked.method, asked.target)
    assert [f"Bearer {SECRET}"] == asked.values("authorization")
    assert ["identity"] == asked.values("accept-encoding")
    assert [f"127.0.0.1:{upstream.port}"] == asked.values("host")


def test_the_same_socket_leads_to_the_record(world: World, upstream: Upstream) -> None:
    """A box would need two sockets, or lose the record where there is a gateway."""
    world.connect("github", upstream.url)
    box = world.box("one")
    body = json.dumps({"entity": "acme/ci", "key": "k", "value": 1, "why": "because", "request_id": "w-1"})
    assert 200 == world.ask(box, "POST", "/v1/write", body, content_type="application/json").status
    assert 200 == world.ask(box, "GET", "/v1/gateway/github/").status


def test_a_box_sees_what_it_may_call_and_nothing_else(world: World, upstream: Upstream) -> None:
    """An agent could not find out what it may call, or would learn of connections of others."""
    world.connect("github", upstream.url, allow=("GET /repos/**",))
    world.connect("slack", upstream.url, label="on-call")
    reply = world.ask(world.box("one"), "GET", "/v1/gateway")
    expected = {"connection": "github", "base_path": "/v1/gateway/github", "service": upstream.url, "rules": ["GET /repos/**"]}
    assert {"connections": [expected | {"budget": {"calls": None, "bytes_up": None, "bytes_down": None}}]} == reply.json


def test_the_box_can_not_add_to_the_credential(world: World, upstream: Upstream) -> None:
    """A box could bring a credential of its own, speak for another client, or have another method or host carried out."""
    world.connect("github", upstream.url)
    smuggled = {
        "Authorization": "Bearer mine", "Cookie": "session=1", "Proxy-Authorization": "Basic eA==", "X-Forwarded-For": "10.0.0.1",
        "Forwarded": "for=10.0.0.1", "X-HTTP-Method-Override": "DELETE", "X-Original-URL": "/admin", "X-Api-Key": "mine",
        "Connection": "x-drop-me, x-github-api-version", "X-Drop-Me": "1", "TE": "trailers", "Upgrade": "websocket",
        "X-Real-IP": "10.0.0.1", "Via": "1.1 box", "X-GitHub-Api-Version": "2022-11-28", "Accept": "application/json",
        "Accept-Encoding": "gzip",
    }  # fmt: skip
    assert 200 == world.ask(world.box("one"), "GET", "/v1/gateway/github/user", **smuggled).status
    [asked] = upstream.asked
    expected = {"host", "accept-encoding", "accept", "authorization"}
    assert expected == {name for name, _ in asked.headers}
    assert [f"Bearer {SECRET}"] == asked.values("authorization")


def test_a_body_is_passed_on_whole(world: World, upstream: Upstream) -> None:
    """A write through the gateway would arrive cut, doubled or empty."""
    world.connect("github", upstream.url)
    box = world.box("one")
    assert 200 == world.ask(box, "POST", "/v1/gateway/github/a", b"x" * 100_000).status
    pieces = iter([b"one", b"two" * 1_000, b"three"])
    assert 200 == world.ask(box, "PUT", "/v1/gateway/github/b", pieces).status
    assert [b"x" * 100_000, b"one" + b"two" * 1_000 + b"three"] == [asked.body for asked in upstream.asked]


def test_a_redirect_is_answered_and_not_followed(world: World, upstream: Upstream) -> None:
    """A service could send the gateway, with the credential, to a place nobody allowed."""
    elsewhere = Upstream()
    try:
        upstream.answers["/out"] = whole(b"", status="302 Found", headers=f"Location: {elsewhere.url}/steal\r\n".encode())
        upstream.answers["/in"] = whole(b"", status="301 Moved", headers=f"Location: {upstream.url}/new?a=1\r\n".encode())
        upstream.answers["/up"] = whole(b"", status="301 Moved", headers=b"Location: /../../v1/write\r\n")
        upstream.answers["/list"] = whole(b"", headers=f'Link: <{upstream.url}/list?page=2>; rel="next"\r\n'.encode())
        world.connect("github", upstream.url)
        box = world.box("one")
        out, moved, up, listed = (world.ask(box, "GET", f"/v1/gateway/github/{path}") for path in ("out", "in", "up", "list"))
        assert (302, None) == (out.status, out.headers.get("location"))
        assert (301, "/v1/gateway/github/new?a=1") == (moved.status, moved.headers["location"])
        assert (301, None) == (up.status, up.headers.get("location"))
        assert '</v1/gateway/github/list?page=2>; rel="next"' == listed.headers["link"]
        assert [] == elsewhere.asked
    finally:
        elsewhere.close()


@pytest.mark.parametrize(
    "credential, secret, expected",
    [
        ({"type": "header", "name": "x-api-key"}, SECRET, ("x-api-key", SECRET)),
        ({"type": "header", "name": "authorization", "before": "token "}, SECRET, ("authorization", f"token {SECRET}")),
        (
            {"type": "basic", "user": "bot"},
            SECRET,
            ("authorization", "Basic " + base64.b64encode(f"bot:{SECRET}".encode()).decode()),
        ),
    ],
)
def test_a_credential_goes_where_its_kind_says(
    world: World, upstream: Upstream, credential: dict[str, str], secret: str, expected: tuple[str, str]
) -> None:
    """A service that wants its key elsewhere than in a bearer header could not be used."""
    world.connect("service", upstream.url, credential=credential, secret=secret)
    assert 200 == world.ask(world.box("one"), "GET", "/v1/gateway/service/x", X_Api_Key="mine").status
    [asked] = upstream.asked
    assert [expected[1]] == asked.values(expected[0])


def test_a_secret_in_the_query_replaces_the_boxes_own(world: World, upstream: Upstream) -> None:
    """A box could make the service see a key of its choice beside the right one."""
    world.connect("service", upstream.url, credential={"type": "query", "name": "key"})
    path = "/v1/gateway/service/x?a=1&key=mine&K%65y=mine&key[]=mine&b=2"
    assert 200 == world.ask(world.box("one"), "GET", path).status
    assert [f"/x?a=1&b=2&key={quote(SECRET, safe='')}"] == [asked.target for asked in upstream.asked]


def test_a_webhook_whose_path_is_the_secret(world: World, upstream: Upstream) -> None:
    """A chat's webhook could not be used without telling its address to the box."""
    secret = "/services/T00000000/B00000000/canary0123456789abcdef"
    world.connect("slack", upstream.url, credential={"type": "path"}, secret=secret, allow=("POST /",))
    upstream.answers[secret] = whole(secret.encode(), headers=f"X-Where: {secret}\r\nLocation: {secret}\r\n".encode())
    reply = world.ask(world.box("one"), "POST", "/v1/gateway/slack/", b'{"text":"hi"}')
    assert [secret] == [asked.target for asked in upstream.asked]
    assert 200 == reply.status
    assert "canary" not in str(reply)
    assert "location" not in reply.headers


def test_an_echo_of_the_credential_is_overwritten(world: World, upstream: Upstream) -> None:
    """A debug page of the service would give the key to the box."""
    encoded = base64.b64encode(f"Bearer {SECRET}".encode())
    body = f"{SECRET} {json.dumps(SECRET)} {quote(SECRET, safe='')} {SECRET.encode().hex()} ".encode() + encoded
    upstream.answers["/echo"] = whole(body, headers=f"X-Echo: Bearer {SECRET}\r\nSet-Cookie: a=b\r\n".encode())
    world.connect("github", upstream.url)
    reply = world.ask(world.box("one"), "GET", "/v1/gateway/github/echo")
    assert (200, len(body)) == (reply.status, len(reply.body))
    assert "set-cookie" not in reply.headers
    assert reply.headers["x-echo"] == "Bearer " + "*" * len(SECRET)
    for form in (SECRET.encode(), quote(SECRET, safe="").encode(), SECRET.encode().hex().encode(), encoded[12:-6]):
        assert form not in reply.body


def test_an_echo_split_over_chunks_is_overwritten(world: World, upstream: Upstream) -> None:
    """A service that sends byte by byte would give the key to the box."""
    text = f"before {SECRET} after".encode()
    upstream.answers["/echo"] = chunked(*(text[at : at + 1] for at in range(len(text))))
    world.connect("github", upstream.url)
    reply = world.ask(world.box("one"), "GET", "/v1/gateway/github/echo")
    assert b"before " + b"*" * len(SECRET) + b" after" == reply.body


def test_a_compressed_answer_is_refused(world: World, upstream: Upstream) -> None:
    """An answer that cannot be read could hold the key."""
    upstream.answers["/zip"] = whole(b"\x1f\x8b", headers=b"Content-Encoding: gzip\r\n")
    world.connect("github", upstream.url)
    reply = world.ask(world.box("one"), "GET", "/v1/gateway/github/zip")
    assert (502, "upstream_unreadable") == (reply.status, code(reply))


def test_events_arrive_as_they_are_sent(world: World, upstream: Upstream) -> None:
    """A stream of events would arrive at its end, all at once."""
    go_on = [threading.Event() for _ in range(3)]
    turns = iter(go_on)

    async def between() -> None:
        waiting = next(turns)
        import asyncio

        await asyncio.to_thread(waiting.wait, 20)

    events = [b"data: %d\n\n" % number for number in range(3)]
    upstream.answers["/events"] = chunked(*events, headers=b"Content-Type: text/event-stream\r\n", between=between)
    world.connect("llm", upstream.url)
    from tests.gateway.serving import Connection

    connection = Connection(world.paths[world.box("one")])
    try:
        connection.request("GET", "/v1/gateway/llm/events")
        answer = connection.getresponse()
        for event, allowed in zip(events, go_on, strict=True):
            assert event == answer.read1(len(event))  # the next one is not sent before this one was read
            allowed.set()
        assert b"" == answer.read()
    finally:
        connection.close()


def test_a_service_that_is_away_is_said(world: World, upstream: Upstream) -> None:
    """A box could not tell its own mistake from an outage."""
    world.connect("gone", "http://127.0.0.1:1")

    async def breaks(asked: Asked, writer: object) -> None:
        writer.close()  # type: ignore[attr-defined]

    upstream.answers["/breaks"] = breaks
    world.connect("github", upstream.url)
    box = world.box("one")
    for path in ("gone/x", "github/breaks"):
        reply = world.ask(box, "GET", f"/v1/gateway/{path}")
        assert (502, "upstream_failed", "upstream_failed") == (reply.status, code(reply), reply.headers["x-herdbook-refused"])


def test_an_answer_that_breaks_off_is_cut(world: World, upstream: Upstream) -> None:
    """Half an answer would be taken for the whole."""

    async def half(asked: Asked, writer: object) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")  # type: ignore[attr-defined]
        await writer.drain()  # type: ignore[attr-defined]
        writer.close()  # type: ignore[attr-defined]

    upstream.answers["/half"] = half
    world.connect("github", upstream.url)
    found = raw(world.paths[world.box("one")], b"GET /v1/gateway/github/half HTTP/1.1\r\nHost: x\r\n\r\n")
    assert found.startswith(b"HTTP/1.1 200")
    assert not found.endswith(b"0\r\n\r\n")
    assert "broken_off" in [each["event"] for each in world.audit()]


def test_a_large_body_is_neither_kept_nor_cut(world: World, upstream: Upstream) -> None:
    """A large answer would be cut, or fill the gateway's memory."""
    size = 24 * 1024 * 1024
    upstream.answers["/large"] = whole(b"x" * size)
    world.connect("files", upstream.url)
    token = world.token(world.box("one"), connections=["files"])
    reply = world.ask_outside("GET", "/v1/gateway/files/large", Authorization=f"Bearer {token}")
    assert size == len(reply.body)
    sent = world.ask_outside("POST", "/v1/gateway/files/up", b"y" * size, Authorization=f"Bearer {token}")
    assert (200, size) == (sent.status, len(upstream.asked[-1].body))
    over = world.ask_outside(
        "POST", "/v1/gateway/files/up", b"y" * 10, Authorization=f"Bearer {token}",
        Content_Length=str(limits.GATEWAY_BODY_BYTES_MAX + 1),
    )  # fmt: skip
    assert (413, "too_large") == (over.status, code(over))


def test_every_call_is_written_down(world: World, upstream: Upstream) -> None:
    """Nobody could tell afterwards what was done with a key."""
    upstream.answers["/echo"] = whole(SECRET.encode())
    world.connect("github", upstream.url, allow=("GET /echo",))
    box = world.box("one")
    world.ask(box, "GET", "/v1/gateway/github/echo?q=private")
    world.ask(box, "DELETE", "/v1/gateway/github/echo", b"body text")
    sent, answered, refused = world.audit()
    assert sent["call"] == answered["call"]
    about = {"box": "one", "label": "ci", "via": "socket", "connection": "github", "method": "GET", "path": "/echo"}
    assert {**about, "event": "sent", "rule": "GET /echo"}.items() <= sent.items()
    ended = {"event": "answered", "status": 200, "bytes_in": 0, "bytes_out": len(SECRET), "redacted": 1}
    assert {**about, **ended}.items() <= answered.items()
    assert {"event": "refused", "code": "not_allowed", "answer": 403, "method": "DELETE"}.items() <= refused.items()
    text = json.dumps(world.audit())
    assert not any(word in text for word in (SECRET, "private", "body text"))
