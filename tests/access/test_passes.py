"""Passes of boxes: made by hosts, good while the box lives, and never for more than the host may itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from herdbook.base.reach import Reach
from herdbook.service.access import keys
from herdbook.service.access.metering import wanted_of
from herdbook.service.door import Service
from herdbook.testing.record_book import Book, Desk, refused

BOX = {"box": "b", "provider": "p", "isolation": "namespace", "label": "l", "owner": "host 1", "lease_seconds": 3_600}


def narrow(desk: Desk, *patterns: str, connections: tuple[str, ...] = ("github",)) -> Desk:
    caller = replace(desk.caller, reach=Reach.of(patterns), connections=connections)
    return Desk(desk.service, caller)


def made(desk: Desk, **more: Any) -> str:
    token: str = desk.do("box_pass", box="b", **more)["token"]
    return token


def test_a_pass_holds_while_its_box_lives(book: Book, ann: Desk) -> None:
    """What a dead box left behind would open doors."""
    ann.do("box_open", **BOX)
    token = made(ann, reach=["acme/ci"], connections=["github"], seconds=60)
    told = ann.do("box_check", token=token)
    assert (True, "b", "ann", ["acme/ci"], ["github"]) == tuple(
        told[name] for name in ("valid", "box", "identity", "reach", "connections")
    )
    ann.do("box_close", box="b")
    assert not ann.do("box_check", token=token)["valid"]


def test_a_pass_ends_with_its_time_and_with_the_lease(book: Book, ann: Desk) -> None:
    """A box whose host died would go on."""
    ann.do("box_open", **BOX | {"lease_seconds": 30})
    token = made(ann, seconds=60)
    book.clock.tick(seconds=31)
    assert not ann.do("box_check", token=token)["valid"]
    ann.do("box_beat", box="b", lease_seconds=600)
    assert ann.do("box_check", token=token)["valid"]
    book.clock.tick(seconds=30)
    assert not ann.do("box_check", token=token)["valid"]


def test_no_pass_for_a_box_that_does_not_live(ann: Desk) -> None:
    """Anybody's name would do."""
    with refused("not_found"):
        made(ann)
    ann.do("box_open", **BOX)
    ann.do("box_close", box="b")
    with refused("not_found"):
        made(ann)


@pytest.mark.parametrize("more", [{"reach": ["*"]}, {"reach": ["acme"]}, {"connections": ["aws"]}])
def test_a_host_hands_on_no_more_than_it_has(ann: Desk, more: dict[str, Any]) -> None:
    """A key for one customer would make passes for all."""
    ann.do("box_open", **BOX)
    host = narrow(ann, "acme/ci")
    with refused("forbidden"):
        made(host, **more)
    told = host.do("box_check", token=made(host))
    assert (["acme/ci"], ["github"]) == (told["reach"], told["connections"])


def test_another_tenants_pass_is_no_pass(book: Book, ann: Desk) -> None:
    """A gateway of one tenant would serve boxes of another."""
    book.tenant_maker(2)
    other = Desk(ann.service, replace(ann.caller, tenant=2))
    other.do("box_open", **BOX)
    token = made(other)
    assert other.do("box_check", token=token)["valid"]
    assert {"valid", "why"} == set(ann.do("box_check", token=token))
    assert ann.do("box_check", token=token)["why"] == ann.do("box_check", token="hbx_e30.e30")["why"]


def host_key(desk: Desk, **more: Any) -> Desk:
    key = desk.do("key_create", name="host", role="host", **more)["key"]
    return Desk(desk.service, keys.admitted(desk.service, key))


def test_a_pass_ends_with_the_key_that_made_it(book: Book, ann: Desk) -> None:
    """A leaked key that was revoked would go on in every pass it had made."""
    host = host_key(ann)
    host.do("box_open", **BOX)
    token = made(host)
    assert ann.do("box_check", token=token)["valid"]
    rotated = ann.do("key_rotate", name="host", grace_seconds=60)
    assert ann.do("box_check", token=token)["valid"]
    book.clock.tick(seconds=60)
    assert not ann.do("box_check", token=token)["valid"]
    with refused("unauthorized"):
        keys.admitted(ann.service, token)
    again = made(Desk(ann.service, keys.admitted(ann.service, rotated["key"])))
    assert "b" == keys.admitted(ann.service, again).box
    ann.do("key_revoke", name="host")
    with refused("unauthorized"):
        keys.admitted(ann.service, again)


def test_a_pass_does_only_the_verbs_of_its_key(ann: Desk) -> None:
    """A key that may only open boxes would read and write through one."""
    host = host_key(ann, verbs=["box_open", "box_pass", "read"])
    host.do("box_open", **BOX)
    box = Desk(ann.service, keys.admitted(ann.service, made(host)))
    with refused("forbidden"):
        box.write("a", 1)
    with refused("not_found"):
        box.read("a")


def test_a_pass_spends_what_its_key_and_tenant_may(ann: Desk) -> None:
    """A tenant would pass its quota, and a key its rate, by opening a box."""
    admin = Desk(ann.service, keys.admitted(ann.service, ann.do("tenant_create", tenant="acme", quota_day=60)["key"]))
    host = host_key(admin, rate_minute=30)
    host.do("box_open", **BOX)
    box = keys.admitted(ann.service, made(host))
    assert wanted_of(host.caller, requests=1, changes=1) == wanted_of(box, requests=1, changes=1)
    assert 2 == len(wanted_of(box, requests=1, changes=1))


def test_what_became_of_a_pass_is_its_tenants_to_know(service: Service, ann: Desk) -> None:
    """Whoever came by another tenant's pass could ask whether its box still lives."""
    admins = [Desk(service, keys.admitted(service, ann.do("tenant_create", tenant=name)["key"])) for name in ("acme", "globex")]
    acme, globex = admins
    box = {"box": "b", "provider": "p", "isolation": "namespace", "label": "l", "owner": "o"}
    acme.do("box_open", **box)
    token = acme.do("box_pass", box="b")["token"]
    told = [globex.do("box_check", token=token)]
    acme.do("box_close", box="b", detail="done")
    told.append(globex.do("box_check", token=token))
    told.append(globex.do("box_check", token="hbx_e30.e30"))
    assert [told[0]] * 3 == told
    assert "gone" in acme.do("box_check", token=token)["why"]
