"""`/v1/stream`: the feed as server-sent events, through any server, for as long as the key is good."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from herdbook.service.callers import local_caller
from herdbook.service.door import Service
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


def test_mistakes_are_answered_as_any(servers: tuple[Service, Server, Server]) -> None:
    """A follower would wait for ever for what cannot come."""
    _, one, _ = servers
    assert 400 == one.get("/v1/stream?after=nonsense").status
    assert 400 == one.get("/v1/stream?unknown=1").status
    assert 405 == one.post("stream", {}).status
