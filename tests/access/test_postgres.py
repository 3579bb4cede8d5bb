"""Keys, tenants, rates and the audit on PostgreSQL, where row security stands behind the door: two servers over one database."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from herdbook.base.errors import TooManyRequests
from herdbook.service.access import keys
from herdbook.service.access.metering import Meter
from herdbook.testing.record_book import Book, Desk, person, refused
from tests.access.test_keys import timed
from tests.postgres_server import server
from tests.record.databases import postgres_book

pytestmark = pytest.mark.slow


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    name = server().database()
    found = postgres_book(name, tmp_path / "seal.key")
    yield found
    found.close()
    server().give_back(name)


def test_two_servers_know_the_same_keys_and_keep_one_audit(book: Book) -> None:
    """A key made on one server would be unknown on another, go on there when it is revoked, or leave no trace."""
    one, two = book.open(), book.open()
    ann = person(one)
    admins = [ann.do("tenant_create", tenant=name)["key"] for name in ("acme", "globex")]
    acme, globex = (Desk(two, keys.admitted(two, key)) for key in admins)
    key = acme.do("key_create", name="ci", role="writer", reach=["acme"])["key"]
    for service in (one, two):
        Desk(service, keys.admitted(service, key)).write("a", "canary", entity="acme/ci")
        with refused("not_found"):
            globex.read("a", entity="acme/ci")
    acme.do("key_revoke", name="ci")
    for service in (one, two):
        with refused("unauthorized"):
            keys.admitted(service, key)
    one.auditor.flush()
    kept = acme.do("audit", check=True)
    assert [] == kept["problems"]
    assert ["key_create", "key_revoke", "write", "write"] == sorted(act["verb"] for act in kept["acts"] if act["code"] == "ok")
    assert "canary" not in str(globex.do("audit", check=True))


def test_a_key_is_revoked_once_no_server_goes_by_its_old_row(book: Book) -> None:
    """Whoever was told that a key is revoked would see it used on another server a moment later."""
    one, two = book.open(), book.open()
    ann = person(one)
    key = ann.do("key_create", name="ci", role="writer")["key"]
    assert two.record.store.lent_seconds > 0
    for _ in range(3):
        keys.admitted(two, key)
        book.clock.tick(seconds=1)  # of two keys made in one instant, neither is the newer
        began = time.monotonic()
        old, key = key, ann.do("key_rotate", name="ci", grace_seconds=0)["key"]
        assert time.monotonic() - began >= two.record.store.lent_seconds
        with refused("unauthorized"):
            keys.admitted(two, old)


def test_verifying_a_key_takes_no_time(book: Book) -> None:
    """Every request would pay for a question to the database."""
    one = book.open()
    key = person(one).do("key_create", name="ci", role="writer")["key"]
    best = min(timed(one, key) for _ in range(20))
    assert best < 50e-6, f"{best * 1e6:.1f} us"


def test_two_servers_take_from_one_bucket(book: Book) -> None:
    """With every server that is added, a key could ask for more."""
    one, two = book.open(), book.open()
    key = person(one).do("key_create", name="k", rate_minute=30)["key"]
    meters, passed = [Meter(one), Meter(two)], 0
    with suppress(TooManyRequests):
        while True:
            meter = meters[passed % 2]
            caller = keys.admitted(meter.service, key)
            while empty := meter.spend(caller, requests=1, changes=0):
                plan = meter.take(empty)
                meter.got(meter.service.record.store.write(plan.work, tenant=plan.tenant))
            passed += 1
    assert 30 == passed
