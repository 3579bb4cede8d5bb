"""`/v1/stream`: the feed as server-sent events, through any server, for as long as the key is good."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from herdbook.record import changes as feed
from herdbook.record.record import Record
from herdbook.record.types import Stamp
from herdbook.service.callers import local_caller
from herdbook.service.door import Service
from herdbook.surfaces.rest import stream
from tests.rest.serving import Reply, Server, open_service, serving

ANN = local_caller("ann")


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[Service, Server, Server]]:
    one, two = open_service(tmp_path), open_service(tmp_path)
    with serving(one) as first, serving(two) as second:
        yield one, first, second
    one.close()
    two.close()


def place_of(reply: Reply) -> str:
    assert reply.headers["content-type"] == "text/event-stream"
    return [line for line in reply.body.decode().splitlines() if line.startswith("id: ")][-1].removeprefix("id: ")


def test_it_goes_on_where_it_was_left_on_another_server(servers: tuple[Service, Server, Server]) -> None:
    """A change would be missed, or told twice, when a balancer sends the follower elsewhere."""
    service, one, two = servers
    place = place_of(one.get("/v1/stream"))
    answers: list[Reply] = []
    waiting = threading.Thread(target=lambda: answers.append(two.get("/v1/stream", **{"Last-Event-ID": place})))
    waiting.start()
    service.perform(ANN, "write", {"entity": "acme/ci", "key": "a", "value": 1})
    waiting.join(20)
    assert b"event: version\n" in answers[0].body
    assert b'"key": "a"' in answers[0].body
    service.perform(ANN, "write", {"entity": "acme/ci", "key": "b", "value": 1})
    following = one.get("/v1/stream", **{"Last-Event-ID": place_of(answers[0])})
    assert b'"key": "b"' in following.body
    assert b'"key": "a"' not in following.body


def test_a_key_follows_what_it_reaches(servers: tuple[Service, Server, Server]) -> None:
    """A stream would tell one customer when another one writes."""
    service, one, _ = servers
    made = service.perform(ANN, "key_create", {"name": "k", "role": "reader", "reach": ["acme"]})
    key = {"Authorization": f"Bearer {made['key']}"}
    place = place_of(one.get("/v1/stream", **key))
    service.perform(ANN, "write", {"entity": "other", "key": "canary", "value": 1})
    service.perform(ANN, "write", {"entity": "acme/ci", "key": "mine", "value": 1})
    body = one.get("/v1/stream", **key, **{"Last-Event-ID": place}).body
    assert b"mine" in body
    assert b"canary" not in body


def test_a_revoked_key_follows_no_longer(servers: tuple[Service, Server, Server]) -> None:
    """Whoever was let in once would listen for ever."""
    service, one, two = servers
    key = {"Authorization": "Bearer " + service.perform(ANN, "key_create", {"name": "k", "role": "reader"})["key"]}
    place = place_of(one.get("/v1/stream", **key))
    answers: list[Reply] = []
    waiting = threading.Thread(target=lambda: answers.append(two.get("/v1/stream", **key, **{"Last-Event-ID": place})))
    waiting.start()
    service.perform(ANN, "key_revoke", {"name": "k"})
    waiting.join(20)
    assert 401 == answers[0].status


def test_a_follower_looks_through_nothing_twice(servers: tuple[Service, Server, Server], monkeypatch: pytest.MonkeyPatch) -> None:
    """One key that reaches nothing of a long feed would keep the server from answering anybody else."""
    service, one, _ = servers
    made = service.perform(ANN, "key_create", {"name": "k", "role": "reader", "reach": ["acme"]})
    for number in range(3):
        service.perform(ANN, "write", {"entity": "other", "key": f"k{number}", "value": 1})
    looked: list[tuple[int, int]] = []
    since = feed.since

    def counted(record: Record, stamp: Stamp, after: int, **more: Any) -> dict[str, Any]:
        looked.append((after, feed.latest(record, stamp.tenant)))
        return since(record, stamp, after, **more)

    monkeypatch.setattr(feed, "since", counted)
    answers: list[Reply] = []
    headers = {"Authorization": f"Bearer {made['key']}"}
    waiting = threading.Thread(target=lambda: answers.append(one.get("/v1/stream?after=0", **headers)))
    waiting.start()
    for key in ("other", "acme"):
        until = time.monotonic() + 20
        while len(looked) < (1 if key == "other" else 2) and time.monotonic() < until:
            time.sleep(0.01)
        service.perform(ANN, "write", {"entity": key, "key": "late", "value": 1})
    waiting.join(20)
    assert b'"entity": "acme"' in answers[0].body
    assert [0, looked[0][1], looked[1][1]] == [after for after, _ in looked]


def test_no_key_takes_every_stream(servers: tuple[Service, Server, Server], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else could follow anything."""
    service, one, _ = servers
    greedy, other = ({"Authorization": "Bearer " + service.perform(ANN, "key_create", {"name": n})["key"]} for n in "ab")
    monkeypatch.setattr(stream, "STREAMS_OF_A_KEY_MAX", 2)
    answers: list[Reply] = []
    place = place_of(one.get("/v1/stream", **greedy))
    threads = [
        threading.Thread(target=lambda key=key: answers.append(one.get("/v1/stream", **key)))
        for key in ({**each, "Last-Event-ID": place} for each in (greedy, greedy, other))
    ]
    for thread in threads:
        thread.start()
    until = time.monotonic() + 20
    while one.app.streams.total() < 3 and time.monotonic() < until:
        time.sleep(0.01)
    assert 503 == one.get("/v1/stream", **greedy, **{"Last-Event-ID": place}).status
    service.perform(ANN, "write", {"entity": "acme", "key": "a", "value": 1})
    for thread in threads:
        thread.join(20)
    assert [200] * 3 == [answer.status for answer in answers]
    assert 0 == one.app.streams.total()


def test_mistakes_are_answered_as_any(servers: tuple[Service, Server, Server]) -> None:
    """A follower would wait for ever for what cannot come."""
    _, one, _ = servers
    assert 400 == one.get("/v1/stream?after=nonsense").status
    assert 400 == one.get("/v1/stream?unknown=1").status
    assert 405 == one.post("stream", {}).status
