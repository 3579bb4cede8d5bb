"""Rates and quotas: one bucket for every server, refused with when to come back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from herdbook.base.clock import TickClock
from herdbook.record.record import Record
from herdbook.service.callers import local_caller
from herdbook.service.door import Service
from tests.rest.serving import Reply, Server, serving

ANN = local_caller("ann")


@pytest.fixture
def clock() -> TickClock:
    return TickClock()


@pytest.fixture
def servers(tmp_path: Path, clock: TickClock) -> Iterator[tuple[Service, list[Server]]]:
    one, two = (Service(Record.open(tmp_path / "record.db", key_file=tmp_path / "seal.key"), clock) for _ in range(2))
    with serving(one) as first, serving(two) as second:
        yield one, [first, second]
    one.close()
    two.close()


def asked(server: Server, key: str, verb: str = "list", fields: dict[str, Any] | None = None) -> Reply:
    return server.post(verb, fields or {}, Authorization=f"Bearer {key}")


def passed(servers: list[Server], key: str, times: int, verb: str = "list", fields: dict[str, Any] | None = None) -> int:
    replies = [asked(servers[n % 2], key, verb, fields) for n in range(times)]
    refused = [reply for reply in replies if reply.status == 429]
    for reply in refused:
        assert "too_many_requests" == reply.code
        assert int(reply.headers["retry-after"]) == reply.json["error"]["retry_after"] >= 1
    return times - len(refused)


@pytest.mark.parametrize("rate", [6, 60, 300])
def test_servers_together_give_no_more_than_the_rate(servers: tuple[Service, list[Server]], clock: TickClock, rate: int) -> None:
    """With every server that is added, a key could ask for more."""
    service, both = servers
    key = service.perform(ANN, "key_create", {"name": "k", "rate_minute": rate})["key"]
    assert rate == passed(both, key, rate + 20)
    clock.tick(seconds=10)
    regained = passed(both, key, rate)
    assert rate / 6 - rate / 60 - 1 <= regained <= rate / 6


def test_a_key_is_ended_when_all_is_spent(servers: tuple[Service, list[Server]]) -> None:
    """A key that leaked would spend its tenant's whole quota, and its admin could not end it before the next day."""
    service, both = servers
    admin = service.perform(ANN, "tenant_create", {"tenant": "acme", "quota_day": 5})["key"]
    key = asked(both[0], admin, "key_create", {"name": "leaked"}).json["key"]
    passed(both, key, 30, "write", {"entity": "a", "key": "k", "value": 1})
    assert 429 == asked(both[0], admin, "key_create", {"name": "more"}).status
    assert 200 == asked(both[0], admin, "key_revoke", {"name": "leaked"}).status
    assert 401 == asked(both[1], key).status


def test_a_slow_client_may_spend_its_whole_day(servers: tuple[Service, list[Server]], clock: TickClock) -> None:
    """What is taken ahead and forfeited would cost whoever writes now and then nine tenths of its quota."""
    service, both = servers
    key = service.perform(ANN, "key_create", {"name": "k", "quota_day": 120})["key"]
    done = 0
    for number in range(130):
        clock.tick(seconds=10)
        fields = {"entity": "acme", "key": f"k{number}", "value": 1}
        done += passed(both, key, 1, "write", fields)
    assert 120 <= done <= 122


def test_a_tenant_is_limited_over_all_its_keys(servers: tuple[Service, list[Server]]) -> None:
    """A customer would make a hundred keys."""
    service, both = servers
    service.perform(ANN, "tenant_create", {"tenant": "acme"})
    admins = [service.perform(ANN, "tenant_admit", {"tenant": "acme"})["key"] for _ in range(3)]
    service.perform(ANN, "tenant_limit", {"tenant": "acme", "rate_minute": 9})
    assert 9 == sum(passed(both, key, 6) for key in admins)
    free = service.perform(ANN, "key_create", {"name": "k"})["key"]
    assert 20 == passed(both, free, 20)


def test_a_quota_counts_changes_only(servers: tuple[Service, list[Server]], clock: TickClock) -> None:
    """Whoever has written enough for a day could not read any more, or would go on writing."""
    service, both = servers
    key = service.perform(ANN, "key_create", {"name": "k", "quota_day": 4})["key"]
    write = {"entity": "acme", "key": "a", "value": 1}
    assert 4 == passed(both, key, 8, "write", write)
    assert 5 == passed(both, key, 5)
    wait = int(asked(both[0], key, "write", write).headers["retry-after"])
    assert 0 < wait <= 86_400 // 4
    clock.tick(seconds=wait)
    assert 1 == passed(both, key, 2, "write", write)
