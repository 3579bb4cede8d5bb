"""What a hostile box, a slow service or a full disk can do to the others: little, and never in silence."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from herdbook.base import limits
from herdbook.gateway.upstream import TIMEOUTS
from herdbook.gateway.upstream import Upstream as Pools
from tests.gateway.serving import Connection, World, code, raw
from tests.gateway.upstream import Asked, Upstream, chunked, plain, whole
from tests.rest.serving import PATIENCE_SECONDS


async def let_go(event: threading.Event) -> None:
    await asyncio.to_thread(event.wait, PATIENCE_SECONDS)


class Gate:
    """An answer that waits until it is let go."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.waiting = 0

    async def answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        self.waiting += 1
        await let_go(self.event)
        await plain(asked, writer)


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        threading.Event().wait(0.01)


def test_one_box_does_not_use_up_all_calls(world: World, upstream: Upstream) -> None:
    """A box that opens calls without end would keep everybody else out."""
    gate = Gate()
    upstream.answers["/slow"] = gate.answer
    world.connect("github", upstream.url)
    greedy, modest = world.box("greedy"), world.box("modest")
    open_calls = [Connection(world.paths[greedy]) for _ in range(limits.GATEWAY_CALLS_MAX)]
    try:
        for call in open_calls:
            call.request("GET", "/v1/gateway/github/slow")
        until(lambda: gate.waiting == len(open_calls), "the calls did not arrive")
        over = world.ask(greedy, "GET", "/v1/gateway/github/x")
        assert (503, "busy", "1") == (over.status, code(over), over.headers["retry-after"])
        assert 200 == world.ask(modest, "GET", "/v1/gateway/github/x").status
        gate.event.set()
        assert [200] * len(open_calls) == [call.getresponse().status for call in open_calls]
        for call in open_calls:
            call.close()
        until(lambda: world.ask(greedy, "GET", "/v1/gateway/github/x").status == 200, "its calls were not given back")
    finally:
        gate.event.set()


def test_a_box_that_hangs_up_ends_its_call(world: World, upstream: Upstream) -> None:
    """Calls of boxes that are gone would pile up at the service."""
    ended = threading.Event()

    async def endless(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            while not writer.is_closing():
                writer.write(b"3\r\n:\n\n\r\n")
                await writer.drain()
                await asyncio.sleep(0.01)
        finally:
            ended.set()

    upstream.answers["/events"] = endless
    world.connect("llm", upstream.url)
    connection = Connection(world.paths[world.box("one")])
    connection.request("GET", "/v1/gateway/llm/events")
    assert b":\n\n" == connection.getresponse().read1(3)
    connection.close()
    assert ended.wait(PATIENCE_SECONDS)
    until(lambda: world.audit()[-1]["event"] == "hung_up", "the end was not written down")


def test_a_silent_service_is_cut_off(tmp_path: Path, upstream: Upstream) -> None:
    """A service that never answers would hold its calls for ever."""
    gate = Gate()
    upstream.answers["/slow"] = gate.answer
    upstream.answers["/stops"] = chunked(b"some", b"more", between=lambda: let_go(gate.event))
    world = World(tmp_path, pools=Pools(timeouts={**TIMEOUTS, "read": 0.2}))
    try:
        world.connect("github", upstream.url)
        box = world.box("one")
        reply = world.ask(box, "GET", "/v1/gateway/github/slow")
        assert (504, "upstream_slow") == (reply.status, code(reply))
        found = raw(world.paths[box], b"GET /v1/gateway/github/stops HTTP/1.1\r\nHost: x\r\n\r\n")
        assert found.endswith(b"4\r\nsome\r\n")
    finally:
        gate.event.set()
        world.close()


@pytest.mark.parametrize("how", ["revoke", "withdraw", "remove"])
def test_a_revocation_cuts_what_is_under_way(world: World, upstream: Upstream, how: str) -> None:
    """A stream that was opened before would go on after the key was revoked."""
    go_on = threading.Event()
    upstream.answers["/events"] = chunked(b"one", b"two", between=lambda: let_go(go_on))
    world.connect("llm", upstream.url)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE_SECONDS)
        sock.connect(world.paths[world.box("one")])
        sock.sendall(b"GET /v1/gateway/llm/events HTTP/1.1\r\nHost: x\r\n\r\n")
        found = b""
        while b"one" not in found:
            found += sock.recv(65_536)
        getattr(world.keeper, how)("llm", **({"label": "ci"} if how == "withdraw" else {}))
        go_on.set()
        while piece := sock.recv(65_536):
            found += piece
    assert b"two" not in found
    assert "broken_off" == world.audit()[-1]["event"]


def test_without_its_line_no_call_is_made(world: World, upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a full disk, keys would be used without a trace."""
    world.connect("github", upstream.url)
    box = world.box("one")
    assert 200 == world.ask(box, "GET", "/v1/gateway/github/x").status
    write = os.write

    def full(descriptor: int, data: bytes) -> int:
        if b'"event"' in data:
            raise OSError(28, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", full)
    reply = world.ask(box, "GET", "/v1/gateway/github/x")
    assert (507, "disk_full") == (reply.status, code(reply))
    monkeypatch.undo()
    assert 1 == len(upstream.asked)
    assert 200 == world.ask(box, "GET", "/v1/gateway/github/x").status


SMUGGLED = {
    "both lengths": b"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x",
    "two lengths": b"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    "other encoding": b"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "line end in a value": b"GET {path} HTTP/1.1\r\nHost: x\r\nX-A: b\nX-Smuggled: 1\r\n\r\n",
    "name with a space": b"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization : Bearer x\r\n\r\n",
    "folded": b"GET {path} HTTP/1.1\r\nHost: x\r\nX-A: b\r\n Authorization: Bearer x\r\n\r\n",
    "two hosts": b"GET {path} HTTP/1.1\r\nHost: x\r\nHost: 127.0.0.1\r\n\r\n",
    "absolute": b"GET http://evil.example{path} HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "connect": b"CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n",
    "trace": b"TRACE {path} HTTP/1.1\r\nHost: x\r\n\r\n",
    "http2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "nul": b"GET {path} HTTP/1.1\r\nHost: x\r\nX-A: a\0b\r\n\r\n",
}


@pytest.mark.parametrize("what", SMUGGLED)
def test_no_request_hides_in_another(world: World, upstream: Upstream, what: str) -> None:
    """A box could make the service see a second request, or a header that was to be stripped."""
    world.connect("github", upstream.url)
    request = SMUGGLED[what].replace(b"{path}", b"/v1/gateway/github/x")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE_SECONDS)
        sock.connect(world.paths[world.box("one")])
        sock.sendall(request)
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(65_536):
            pass
    assert 1 >= len(upstream.asked)
    for asked in upstream.asked:
        assert {"host", "accept-encoding", "authorization"} >= {name for name, _ in asked.headers} - {"x-a", "content-length"}
        assert [f"127.0.0.1:{upstream.port}"] == asked.values("host")
        assert 1 == len(asked.values("authorization"))
        assert "/x" == asked.target


@pytest.fixture
def memory() -> Callable[[], int]:
    """How much this process has grown since, in bytes."""
    page = os.sysconf("SC_PAGE_SIZE")

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * page

    before = resident()
    return lambda: resident() - before


@pytest.mark.slow
def test_a_body_without_end_is_not_kept(world: World, upstream: Upstream, memory: Callable[[], int]) -> None:
    """A large answer, or a box that does not read, would fill the gateway's memory."""
    piece = b"x" * 65_536

    async def endless(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(2_000):
            writer.write(b"10000\r\n" + piece + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    upstream.answers["/endless"] = endless
    world.connect("files", upstream.url)
    connection = Connection(world.paths[world.box("one")])
    connection.request("GET", "/v1/gateway/files/endless")
    answer = connection.getresponse()
    total = 0
    while found := answer.read(1 << 20):
        total += len(found)
    connection.close()
    assert 2_000 * len(piece) == total
    assert memory() < 48 * 1024 * 1024


def test_the_service_decides_nothing_about_the_box(world: World, upstream: Upstream) -> None:
    """A service could set cookies, bind the box to itself, or pass its own words off as the gateway's."""
    sent = (
        b"Set-Cookie: a=b\r\nStrict-Transport-Security: max-age=1\r\nAlt-Svc: h3=x\r\nX-Herdbook-Refused: unauthorized\r\n"
        b"X-Herdbook-Call: forged\r\nAccess-Control-Allow-Origin: *\r\nConnection: X-Hop\r\nX-Hop: 1\r\n"
        b"X-Fine: 1\r\nDate: never\r\n"
    )
    upstream.answers["/x"] = whole(b"ok", headers=sent)
    world.connect("github", upstream.url)
    reply = world.ask(world.box("one"), "GET", "/v1/gateway/github/x")
    assert {"x-fine", "content-length", "date", "x-herdbook-call"} == set(reply.headers)
    assert reply.headers["x-herdbook-call"].startswith("call_")
    assert "never" != reply.headers["date"]
