"""Connections over HTTP are bounded for each key, counted against its rate, and let go with their runs when nobody uses them."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from herdbook.base.clock import TickClock
from herdbook.service.callers import Caller, local_caller
from herdbook.service.door import Service
from herdbook.surfaces.mcp.connections import Connections
from herdbook.surfaces.mcp.http import McpOverHttp, Perform, id_of
from herdbook.testing.boxes import eventually
from tests.rest.serving import KEY, Reply, Server, open_service, serving

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    found = open_service(tmp_path)
    yield found
    found.close()


def sent(server: Server, method: str, params: dict[str, Any], *, key: str, connection: str = "", number: int = 1) -> Reply:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    headers |= {"Authorization": f"Bearer {key}"} | ({"Mcp-Session-Id": connection} if connection else {})
    body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
    return server.ask("POST", "/mcp", body, headers=headers)


def opened(server: Server, key: str) -> str:
    reply = sent(server, "initialize", HELLO, key=key)
    assert 200 == reply.status, reply.body
    return reply.headers["mcp-session-id"]


def left(server: Server, connection: str, key: str) -> None:
    assert server.ask("DELETE", "/mcp", headers={"Mcp-Session-Id": connection, "Authorization": f"Bearer {key}"}).status < 300


def test_one_key_cannot_take_every_connection(service: Service) -> None:
    """One runaway agent would keep everybody else out, until the server is started again."""
    others = service.perform(local_caller("ann"), "key_create", {"name": "other"})["key"]
    connections = Connections(time.monotonic, each_max=2)
    with serving(service, key=KEY, mcp=partial(McpOverHttp, connections=connections)) as server:
        first = opened(server, KEY)
        opened(server, KEY)
        refused = sent(server, "initialize", HELLO, key=KEY)
        assert (429, "too_many_requests") == (refused.status, refused.code)
        assert "2 connections open" in refused.body.decode()
        opened(server, others)
        left(server, first, KEY)
        opened(server, KEY)


def test_a_connection_that_nobody_uses_is_let_go_with_its_run(service: Service) -> None:
    """Runs of agents that were cut off would stay open for ever, and their connections with them."""
    connections = Connections(time.monotonic, idle_seconds=0.3)
    with serving(service, key=KEY, mcp=partial(McpOverHttp, connections=connections)) as server:
        gone = opened(server, KEY)
        brief = {"name": "brief", "arguments": {"entity": "acme"}}
        assert 200 == sent(server, "tools/call", brief, key=KEY, connection=gone).status
        eventually(  # and nobody asks for anything meanwhile
            lambda: service.perform(local_caller("ann"), "trace", {"ref": f"mcp-{gone}"})["ended_at"] is not None,
            what="its run is ended",
        )
        assert 404 == sent(server, "ping", {}, key=KEY, connection=gone).status


def test_a_connection_is_for_whoever_opened_it(service: Service) -> None:
    """Who learns a connection's name would go on in another's place."""
    other = service.perform(local_caller("ann"), "key_create", {"name": "other"})["key"]
    with serving(service, key=KEY, mcp=McpOverHttp) as server:
        mine = opened(server, KEY)
        assert (404, 200) == tuple(sent(server, "ping", {}, key=key, connection=mine).status for key in (other, KEY))
        assert 404 == server.ask("DELETE", "/mcp", headers={"Mcp-Session-Id": mine, "Authorization": f"Bearer {other}"}).status
        assert 200 == sent(server, "ping", {}, key=KEY, connection=mine).status


class Held(McpOverHttp):
    """Its verb `list` is answered when a test says so."""

    reached, go_on = threading.Event(), threading.Event()

    def __init__(self, perform: Perform) -> None:
        async def held(caller: Caller, verb: str, fields: dict[str, Any]) -> dict[str, Any]:
            if verb == "list":
                self.reached.set()
                await asyncio.to_thread(self.go_on.wait, 30)
            return await perform(caller, verb, fields)

        super().__init__(held)


def test_an_id_is_for_one_request_at_a_time(service: Service) -> None:
    """The one that came first would wait for ever, its client gone: some hundreds of them are every connection there is."""
    with serving(service, key=KEY, mcp=Held) as server, ThreadPoolExecutor(1) as pool:
        mine = opened(server, KEY)
        asked = partial(sent, server, "tools/call", {"name": "list", "arguments": {}}, key=KEY, connection=mine)
        first = pool.submit(asked)
        assert Held.reached.wait(30)
        assert (409, "request_conflict") == ((reply := asked()).status, reply.code)
        assert 200 == sent(server, "ping", {}, key=KEY, connection=mine, number=2).status
        Held.go_on.set()
        assert 200 == first.result(30).status
        assert 200 == asked().status


@pytest.mark.parametrize(
    "body, known",
    [
        (b'{"id": 1, "params": {"a": NaN, "b": %s}}' % (b"9" * 5000), "1"),
        (b'{"id": "1"}', "1"),
        (b'{"id": 2, "id": 1}', "1"),
        (b'{"id": null}', None),
        (b'{"method": "x"}', None),
        (b'[{"id": 1}]', None),
        (b'{"id": 1', None),
        (b"[" * 100_000, None),
    ],
)
def test_ids_are_told_apart_as_the_sdk_does(body: bytes, known: str | None) -> None:
    """Whoever writes an id in another way would have two requests with one id after all."""
    assert known == id_of(body)


def test_every_message_counts_against_the_rate(service: Service) -> None:
    """A key with a rate would have one on every verb, and none on opening connections."""
    service.clock = TickClock(service.clock.now())  # nothing is refilled meanwhile
    key = service.perform(local_caller("ann"), "key_create", {"name": "slow", "rate_minute": 6})["key"]
    with serving(service, key=KEY, mcp=McpOverHttp) as server:
        statuses = [sent(server, "initialize", HELLO, key=key).status for _ in range(8)]
    assert [*[200] * 6, 429, 429] == statuses


def test_the_one_that_was_idle_longest_goes_first() -> None:
    """A connection in use would be let go, or the idle ones looked for among all of them at every request."""
    now = [0.0]
    ann = local_caller("ann")
    held = Connections(lambda: now[0], idle_seconds=10)
    for name in ("a", "b"):
        held.opened(name, ann)
    now[0] = 9.0
    held.used("a", ann)
    now[0] = 10.0
    assert ["b"] == held.idle()
    assert 0.0 == held.next_seconds()
    assert (ann, None) == (held.closed("b"), held.closed("b"))
    assert ["a"] == list(held.held)
    assert 9.0 == held.next_seconds()
    held.closed("a")
    assert 10.0 == held.next_seconds()
