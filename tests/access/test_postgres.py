"""Keys, tenants, rates and the audit on PostgreSQL, where row security stands behind the door: two servers over one database."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from herdbook.base.errors import HerdbookError, TooManyRequests
from herdbook.record import audit
from herdbook.record.store.postgres import store as postgres
from herdbook.record.store.postgres.refusals import Passing
from herdbook.service.access import auditing, keys
from herdbook.service.access.metering import Meter
from herdbook.service.door import Service
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


def answer_lost(service: Service, monkeypatch: pytest.MonkeyPatch, *, times: int) -> None:
    """The connection breaks after so many commits, before anybody is told of them."""
    durably: Callable[..., Any] = service.record.store._durably  # type: ignore[attr-defined]
    left = [None] * times

    def lossy(*args: Any, **more: Any) -> Any:
        done = durably(*args, **more)
        if left:
            left.pop()
            raise Passing
        return done

    monkeypatch.setattr(service.record.store, "_durably", lossy)


@pytest.mark.parametrize("patience", [postgres.RETRY_SECONDS, 0.0])
def test_a_commit_whose_answer_was_lost_is_in_the_audit_once(
    book: Book, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    """After a restart of the database a server would keep no audit any more, or tell of changes twice."""
    service = book.open()
    ann = person(service)
    ci = Desk(service, keys.admitted(service, ann.do("key_create", name="ci", reach=["acme"])["key"]))
    ci.brief(entity="acme")
    monkeypatch.setattr(postgres, "RETRY_SECONDS", patience)
    with monkeypatch.context() as patch:
        answer_lost(service, patch, times=1)
        with suppress(Passing):
            ci.write("a", 1, entity="acme", request_id="r1")
    book.clock.tick(seconds=1)
    ci.write("b", 2, entity="acme", request_id="r2")
    found = ann.do("audit", check=True)
    assert [] == found["problems"]
    assert 2 == len([act for act in found["acts"] if act["verb"] == "write"])


def test_nothing_is_kept_without_its_audit(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change would be acknowledged of which there is no trace."""
    service = book.open()
    ann = person(service)
    ci = Desk(service, keys.admitted(service, ann.do("key_create", name="ci", reach=["acme"])["key"]))
    with monkeypatch.context() as patch:
        patch.setattr(audit, "insert", lambda tx, rows: tx.many("insert_audit", [*rows, *rows]))
        with suppress(HerdbookError, auditing.AuditFailed):
            ci.write("a", 1, entity="acme")
    with refused("not_found"):
        ci.read("a", entity="acme")
    ci.write("b", 1, entity="acme")
    found = ann.do("audit", check=True)
    assert [] == found["problems"]
    assert 1 == len([act for act in found["acts"] if act["verb"] == "write"])
