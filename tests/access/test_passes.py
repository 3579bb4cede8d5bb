"""Passes of boxes: made by hosts, good while the box lives, and never for more than the host may itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from herdbook.base.reach import Reach
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
