"""The HTTP edge against clients that send too much, too slowly, or something else altogether. Deadlines are small.

Behind it is the real server, over TCP or, where the system's own buffers would blur what was read, over a unix socket.
"""

from __future__ import annotations

import gzip
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from herdbook.base.http_edge import EdgeLimits
from herdbook.service.door import Service
from tests.rest.serving import ENTRY, KEY, PATIENCE_SECONDS, Server, serving

pytestmark = pytest.mark.slow

QUICK = EdgeLimits(header_seconds=0.3, body_seconds=0.3, linger_seconds=0.3, idle_seconds=1, stop_seconds=5)
MEBIBYTE = 1024 * 1024
WRITE = json.dumps({**ENTRY, "value": 1, "why": "because"}).encode()


@pytest.fixture
def quick(service: Service) -> Iterator[Server]:
    with serving(service, limits=QUICK) as running:
        yield running


def head(*, length: int | None = None, extra: bytes = b"", verb: bytes = b"write") -> bytes:
    size = b"" if length is None else b"Content-Length: %d\r\n" % length
    return b"POST /v1/%b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%b%b\r\n" % (verb, size, extra)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def test_trickling_headers_are_cut_off(quick: Server) -> None:
    """A client that sends a header byte by byte would hold a connection for ever."""
    with quick.connect() as wire:
        wire.send(b"POST /v1/write HTTP/1.1\r\nHost: x\r\nX-a: ")
        began = time.monotonic()
        refused = wire.drip(b"b")
    assert refused is not None
    assert (408, "too_slow") == (refused.status, refused.code)
    assert time.monotonic() - began < 5


def test_many_trickling_clients_do_not_stop_the_others(quick: Server) -> None:
    """A handful of slow clients would make the server useless for everybody."""
    with ExitStack() as stack:
        slow = [stack.enter_context(quick.connect()) for _ in range(300)]
        for wire in slow:
            wire.send(b"POST /v1/write HTTP/1.1\r\nX-a: ")
        assert quick.get("/healthz").status == 200
        for wire in slow:
            assert wire.next().status == 408


def test_empty_lines_do_not_keep_a_connection_alive(quick: Server) -> None:
    """Line ends between requests, which a parser skips, would hold a connection for ever."""
    with quick.connect() as wire:
        wire.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert wire.next().status == 200
        assert wire.drip(b"\r\n") is None


def test_a_silent_connection_is_closed(quick: Server) -> None:
    """A connection on which nothing ever comes would be held for ever."""
    with quick.connect() as wire:
        assert wire.reply() is None


def test_an_idle_connection_is_closed(quick: Server) -> None:
    """A client that stays after its answer would be held for ever."""
    with quick.connect() as wire:
        wire.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert wire.next().status == 200
        assert wire.reply() is None


def test_a_trickling_body_is_cut_off(quick: Server) -> None:
    """A body byte by byte would hold a connection, and its half-read request, for ever."""
    with quick.connect() as wire:
        wire.send(head(length=1_000) + b'{"a":"')
        refused = wire.drip(b"b")
    assert refused is not None
    assert (408, "too_slow") == (refused.status, refused.code)


def test_a_body_shorter_than_it_says_is_cut_off(quick: Server) -> None:
    """A request whose end never comes would never be answered."""
    with quick.connect() as wire:
        wire.send(head(length=len(WRITE) + 5) + WRITE)
        assert wire.next().code == "too_slow"


def test_a_body_longer_than_it_says_is_not_read_as_more(quick: Server) -> None:
    """What hangs over a body would be taken for the next request, and somebody else's proxy would disagree."""
    with quick.connect() as wire:
        wire.send(head(length=len(WRITE)) + WRITE + b"surplus\r\n\r\n")
        assert wire.next().json["version"] == 1
        assert wire.reply() is None


@pytest.mark.parametrize("unix", [False, True])
def test_a_large_body_is_refused_by_its_length_alone(service: Service, tmp_path: Path, unix: bool) -> None:
    """A client would have to send all of a body to learn that it is too large."""
    with serving(service, unix=tmp_path / "s" if unix else None) as server, server.connect() as wire:
        wire.send(head(length=MEBIBYTE + 1))
        answer = wire.next()
        assert (413, "too_large", "close") == (answer.status, answer.code, answer.headers["connection"])


def test_a_chunked_body_is_refused_before_two_mebibytes(service: Service, tmp_path: Path) -> None:
    """A body that hides its length would be read to its end, whatever its size."""
    with serving(service, unix=tmp_path / "s") as server, server.connect() as wire:
        wire.send(head(extra=b"Transfer-Encoding: chunked\r\n"))
        sent, piece = 0, chunk(b" " * 16_384)
        while not wire.answered() and wire.send(piece):
            sent += len(piece)
        assert wire.next().code == "too_large"
    assert MEBIBYTE < sent < 2 * MEBIBYTE


def test_one_byte_chunks_do_not_pass_the_limit(service: Service, tmp_path: Path) -> None:
    """The wrapping of a body would be free: six bytes read for each one counted."""
    with serving(service, unix=tmp_path / "s") as server, server.connect() as wire:
        wire.send(head(extra=b"Transfer-Encoding: chunked\r\n"))
        piece = chunk(b" ") * 10_000
        while not wire.answered() and wire.send(piece):
            pass
        assert wire.next().code == "too_large"


def test_the_refusal_reaches_a_client_that_sends_everything_first(server: Server) -> None:
    """The connection would be reset before the client could read why."""
    answer = server.ask("POST", "/v1/write", b" " * (MEBIBYTE + MEBIBYTE // 4))
    assert (413, "too_large") == (answer.status, answer.code)


def test_a_client_that_sends_on_after_the_refusal_is_let_finish(server: Server) -> None:
    """A client that was still sending would see a broken pipe instead of the reason."""
    with server.connect() as wire:
        wire.send(head(length=MEBIBYTE + MEBIBYTE // 4))
        assert wire.answered(within_seconds=PATIENCE_SECONDS)
        for _ in range(20):
            assert wire.send(b" " * (MEBIBYTE // 16))
        assert wire.next().code == "too_large"


def test_a_body_at_the_limit_is_read(server: Server) -> None:
    """The limit would be lower than it says."""
    answer = server.ask("POST", "/v1/write", WRITE[:-1] + b" " * (MEBIBYTE - len(WRITE)) + b"}")
    assert answer.status == 200, answer


def test_a_connection_survives_large_bodies(server: Server) -> None:
    """A body longer than one read would be taken for oversized headers of the next request."""
    body = WRITE[:-1] + b" " * 700_000 + b"}"
    with server.connect() as wire:
        for _ in range(3):
            wire.send(head(length=len(body)))
            for start in range(0, len(body), 200_000):
                wire.send(body[start : start + 200_000])
            answer = wire.next()
            assert (200, None) == (answer.status, answer.headers.get("connection"))
    assert 'verb="none"' not in server.get("/metrics").body.decode()


def test_expect_continue(server: Server) -> None:
    """A client that asks before it sends would wait, or send a body that is refused anyway."""
    with server.connect() as wire:
        wire.send(head(length=len(WRITE), extra=b"Expect: 100-continue\r\n"))
        assert wire.file.read(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        wire.send(WRITE)
        assert wire.next().status == 200
    answer = server.raw(head(length=2 * MEBIBYTE, extra=b"Expect: 100-continue\r\n"))
    assert answer is not None
    assert answer.status == 413


@pytest.mark.parametrize(
    "extra, body, status, code",
    [
        (b"Content-Encoding: gzip\r\n", gzip.compress(b" " * MEBIBYTE), 415, "unsupported_media_type"),
        (b"Content-Encoding: br\r\n", b"x", 415, "unsupported_media_type"),
        (b"Content-Encoding: identity\r\n", WRITE, 200, None),
        (b"Content-Length: 3\r\n", WRITE, 400, "invalid_request"),
        (b"Transfer-Encoding: chunked\r\n", WRITE, 400, "invalid_request"),
        (b"Host: localhost\r\n", WRITE, 400, "invalid_request"),
        (b"X-a: " + b"a" * 70_000 + b"\r\n", WRITE, 431, "headers_too_large"),
        (b"X-a: b\r\n" * 12_000, WRITE, 431, "headers_too_large"),
        (b"X-a\r\n", WRITE, 400, "invalid_request"),
        (b"X-a: \x00\r\n", WRITE, 400, "invalid_request"),
        (b" folded: header\r\n", WRITE, None, None),
        (b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n", WRITE, None, None),
    ],
)
def test_headers_that_mislead(server: Server, extra: bytes, body: bytes, status: int | None, code: str | None) -> None:
    """A header would make this server read another request than a proxy before it did."""
    answer = server.raw(head(length=len(body), extra=extra) + body)
    assert answer is not None
    assert status is None or status == answer.status, answer
    assert answer.status < 500
    assert code is None or code == answer.code


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n\r\nhello\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 200,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x00" * 100,
        b"GET /healthz HTTP/9.9\r\nHost: a\r\n\r\n", b"GET /healthz\r\n\r\n", b"GET  HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n", b"GET http://[ HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n",
        b"CONNECT localhost:1 HTTP/1.1\r\nHost: a\r\n\r\n", b"POST /v1/write HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/write HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"POST /v1/write HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 2\r\n\r\n",
        b"POST /v1/write HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"POST /v1/write HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /healthz HTTP/1.1\nHost: a\n\n" * 3,
    ],
)  # fmt: skip
def test_what_is_not_http_is_refused_in_the_one_shape(server: Server, data: bytes) -> None:
    """A stray client would meet a plain text, a 500, or silence."""
    answer = server.raw(data)
    assert answer is not None
    assert 400 <= answer.status < 500
    assert answer.code
    assert answer.headers["x-request-id"]


def test_trailers_are_no_headers(service: Service) -> None:
    """What a proxy keeps out of the headers would come in behind the body."""
    with serving(service, key=KEY) as server:
        trailer = f"Authorization: Bearer {KEY}\r\n\r\n".encode()
        data = head(extra=b"Transfer-Encoding: chunked\r\n") + chunk(WRITE) + b"0\r\n" + trailer
        answer = server.raw(data)
    assert answer is not None
    assert answer.code == "unauthorized"


def test_pipelined_requests_are_answered_in_order(server: Server) -> None:
    """A client that sends ahead would get one request's answer for another."""
    requests = [json.dumps({**ENTRY, "value": number, "why": "w"}).encode() for number in range(5)]
    with server.connect() as wire:
        wire.send(b"".join(head(length=len(body)) + body for body in requests))
        assert [1, 2, 3, 4, 5] == [wire.next().json["version"] for _ in requests]


def test_what_was_accepted_is_answered_before_the_bad_one_behind_it_is_refused(server: Server) -> None:
    """One malformed request would cost the answer of the good one before it."""
    with server.connect() as wire:
        wire.send(head(length=len(WRITE)) + WRITE + b"nonsense\r\n\r\n")
        assert wire.next().json["version"] == 1
        assert wire.reply() is None


def test_a_client_that_ends_its_side_is_still_answered(server: Server) -> None:
    """`printf ... | nc` would write, and never hear that it did."""
    with server.connect() as wire:
        wire.send(head(length=len(WRITE)) + WRITE)
        wire.sock.shutdown(socket.SHUT_WR)
        assert wire.next().json["version"] == 1
        assert wire.reply() is None
    with server.connect() as wire:
        wire.send(head(length=len(WRITE) + 1) + WRITE)
        wire.sock.shutdown(socket.SHUT_WR)
        assert wire.reply() is None, "half a request is no request"


REQUEST = head(length=len(WRITE)) + WRITE


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, len(REQUEST)), st.binary(max_size=3)), min_size=1, max_size=4))
def test_no_damage_to_a_request_is_the_servers_failure(server: Server, damage: list[tuple[int, bytes]]) -> None:
    """Some bytes in place of others would be a 500, or stop the server."""
    data = bytearray(REQUEST)
    for place, replacement in damage:
        data[place : place + 1] = replacement
    with server.connect() as wire:
        wire.send(bytes(data))
        wire.sock.shutdown(socket.SHUT_WR)
        answer = wire.reply()
    assert answer is None or answer.status < 500


def test_connections_are_bounded(service: Service) -> None:
    """A flood of connections would use up the descriptors that the record needs."""
    with serving(service, limits=EdgeLimits(connections=3)) as server, ExitStack() as stack:
        held = [stack.enter_context(server.connect()) for _ in range(3)]
        for wire in held:  # answered, so that the server has counted them
            wire.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert wire.next().status == 200
        refused = server.get("/healthz")
        assert (503, "busy", "1") == (refused.status, refused.code, refused.headers["retry-after"])


def test_who_left_before_being_refused_leaves_nothing(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    """A crowd that comes and goes would fill the log with tracebacks, and its connections stay in the count."""
    with serving(service, limits=EdgeLimits(connections=1)) as server, server.connect() as held:
        held.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert held.next().status == 200
        go_on = threading.Event()
        server.thread.loop.call_soon_threadsafe(go_on.wait)
        for _ in range(5):
            with server.dial() as gone:
                gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # leaves with a reset
        go_on.set()
        assert (503, "busy") == ((refused := server.get("/healthz")).status, refused.code)
    assert [] == [record.getMessage() for record in caplog.records if record.name == "asyncio"]


def test_refusals_are_counted(quick: Server) -> None:
    """An attack would not show in the metrics."""
    assert quick.raw(b"nonsense\r\n\r\n") is not None
    assert 'herdbook_requests_total{verb="none",status="400"} 1' in quick.get("/metrics").body.decode()
