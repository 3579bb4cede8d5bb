"""Who may call: live boxes, by their own socket or their own pass. Everybody else is refused, and nothing goes out for them."""

from __future__ import annotations

import pytest

from herdbook.base import limits
from herdbook.base.box_token import BoxPass, sign
from herdbook.base.clock import TickClock
from tests.gateway.serving import SECRET, World, code
from tests.gateway.upstream import Upstream

PATH = "/v1/gateway/github/x"


def test_from_outside_a_box_nobody_calls(world: World, upstream: Upstream) -> None:
    """Whoever reaches the gateway's port could use every key."""
    world.connect("github", upstream.url)
    for headers in ({}, {"Authorization": "Bearer "}, {"Authorization": f"Bearer {SECRET}"}, {"Authorization": "Basic Og=="}):
        for path in (PATH, "/v1/gateway", "/v1/gateway/none/x"):
            reply = world.ask_outside("GET", path, **headers)
            assert (401, "unauthorized") == (reply.status, code(reply))
    assert [] == upstream.asked


def test_a_pass_lets_its_box_in(world: World, upstream: Upstream) -> None:
    """A box on another machine could not call anything."""
    world.connect("github", upstream.url)
    token = world.token(world.box("one"), connections=["github"])
    assert 200 == world.ask_outside("GET", PATH, Authorization=f"Bearer {token}").status
    [asked] = upstream.asked
    assert [f"Bearer {SECRET}"] == asked.values("authorization")
    assert token not in str(asked.headers)
    assert "token" == world.audit()[-1]["via"]
    assert token not in str(world.audit())


def test_a_changed_pass_is_refused(world: World, upstream: Upstream) -> None:
    """A box could write itself a pass."""
    world.connect("github", upstream.url)
    token = world.token(world.box("one"))
    body, _, signature = token.partition(".")
    turned = "A" if signature[5] != "A" else "B"
    for forged in (
        body,
        f"{body}.",
        f"{body}.{signature[:5]}{turned}{signature[6:]}",
        f"{body[:-3]}.{signature}",
        "hbx_.",
        "hbx_a.b",
    ):
        assert 401 == world.ask_outside("GET", PATH, Authorization=f"Bearer {forged}").status
    assert [] == upstream.asked


def test_a_pass_for_other_connections_opens_nothing(world: World, upstream: Upstream) -> None:
    """A pass made for one service would open all that its box was granted."""
    world.connect("github", upstream.url)
    token = world.token(world.box("one"), connections=["slack"])
    reply = world.ask_outside("GET", PATH, Authorization=f"Bearer {token}")
    assert (403, "not_granted") == (reply.status, code(reply))
    assert {"connections": []} == world.ask_outside("GET", "/v1/gateway", Authorization=f"Bearer {token}").json


def test_a_pass_expires_and_dies_with_its_box(tmp_path, upstream: Upstream) -> None:
    """A stolen pass would be good for ever, or longer than its box."""
    clock = TickClock()
    world = World(tmp_path, clock=clock)
    try:
        world.connect("github", upstream.url)
        one, two = (world.token(world.box(name, lease_seconds=80_000), connections=["github"]) for name in ("one", "two"))
        assert 200 == world.ask_outside("GET", PATH, Authorization=f"Bearer {one}").status
        world.end("one")
        clock.tick(seconds=1)
        assert 401 == world.ask_outside("GET", PATH, Authorization=f"Bearer {one}").status
        assert 200 == world.ask_outside("GET", PATH, Authorization=f"Bearer {two}").status
        clock.tick(seconds=limits.BOX_PASS_SECONDS_MAX)
        assert 401 == world.ask_outside("GET", PATH, Authorization=f"Bearer {two}").status
    finally:
        world.close()


def test_a_pass_of_another_tenant_is_refused(world: World, upstream: Upstream) -> None:
    """A box of one customer could call with the keys of another."""
    world.connect("github", upstream.url)
    now = world.clock.now()
    said = BoxPass(2, world.box("one"), "host", ("*",), ("*",), now, now + 60_000_000)
    token = sign(world.service.record.pass_key(), said)
    assert 401 == world.ask_outside("GET", PATH, Authorization=f"Bearer {token}").status


def test_a_box_whose_lease_ran_out_calls_nothing(tmp_path, upstream: Upstream) -> None:
    """A box that everybody believes to be gone would go on using keys."""
    clock = TickClock()
    world = World(tmp_path, clock=clock)
    try:
        world.connect("github", upstream.url)
        box = world.box("one", lease_seconds=60)
        assert 200 == world.ask(box, "GET", PATH).status
        clock.tick(seconds=61)
        assert 401 == world.ask(box, "GET", PATH).status
    finally:
        world.close()


def test_a_socket_is_one_box_whatever_it_says(world: World, upstream: Upstream) -> None:
    """A box could pass for another one by a header or another's pass."""
    world.connect("github", upstream.url, label="trusted")
    one, two = world.box("one"), world.box("two", label="trusted")
    token = world.token(two, connections=["*"])
    reply = world.ask(one, "GET", PATH, Authorization=f"Bearer {token}", X_Herdbook_Box="two")
    assert (403, "not_granted") == (reply.status, code(reply))
    assert [] == upstream.asked


def test_what_was_not_granted_looks_like_what_is_not_there(world: World, upstream: Upstream) -> None:
    """A box could find out which connections there are."""
    world.connect("github", upstream.url, label="others")
    world.connect("revoked", upstream.url)
    world.keeper.revoke("revoked")
    box = world.box("one")
    answers = {
        world.ask(box, "GET", f"/v1/gateway/{name}/x").body for name in ("github", "revoked", "none", "NONE", "%2e", "a" * 99)
    }
    assert 1 == len(answers)
    assert b"not_granted" in answers.pop()


@pytest.mark.parametrize("by", ["box", "label"])
def test_a_grant_holds_until_it_is_withdrawn(world: World, upstream: Upstream, by: str) -> None:
    """Taking a connection from a box would take effect some time later, or never."""
    world.connect("github", upstream.url, label=None)
    box, other = world.box("one"), world.box("two", label="else")
    grant = {"box": "one"} if by == "box" else {"label": "ci"}
    assert 403 == world.ask(box, "GET", PATH).status
    world.keeper.grant("github", **grant)
    assert (200, 403) == (world.ask(box, "GET", PATH).status, world.ask(other, "GET", PATH).status)
    world.keeper.withdraw("github", **grant)
    assert 403 == world.ask(box, "GET", PATH).status


def test_without_the_record_nobody_is_let_in(world: World, upstream: Upstream) -> None:
    """An outage of the record would open the gateway to boxes that are gone."""
    world.connect("github", upstream.url)
    token = world.token(world.box("one"), connections=["github"])
    from herdbook.base.errors import Unavailable

    def away(verb: str, fields: object) -> dict[str, object]:
        raise Unavailable

    world.app.boxes.call = away
    reply = world.ask_outside("GET", PATH, Authorization=f"Bearer {token}")
    assert (503, "unavailable") == (reply.status, code(reply))
    assert [] == upstream.asked
