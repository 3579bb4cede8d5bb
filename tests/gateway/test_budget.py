"""A budget for each box: where copying everything that may be read, one allowed call at a time, comes to its end."""

from __future__ import annotations

import http.client
import json

import pytest

from herdbook.base import limits
from herdbook.base.errors import InvalidRequest
from herdbook.gateway import budget
from tests.gateway.serving import OPERATOR, SECRET, World, code
from tests.gateway.upstream import Upstream, whole


def test_calls_end_with_the_budget_and_others_go_on(world: World, upstream: Upstream) -> None:
    """One box could list every repository there is, and its neighbours would pay for it."""
    world.connect("github", upstream.url)
    world.connect("other", upstream.url)
    world.keeper.budget("github", calls=2, bytes_up=None, bytes_down=None)
    greedy, modest = world.box("greedy"), world.box("modest")
    assert [200, 200] == [world.ask(greedy, "GET", "/v1/gateway/github/x").status for _ in range(2)]
    over = world.ask(greedy, "GET", "/v1/gateway/github/x")
    assert (429, "over_budget") == (over.status, code(over))
    assert "this box over github may have 2 calls" in json.loads(over.body)["error"]["message"]
    assert ("refused", "over_budget") == (world.audit()[-1]["event"], world.audit()[-1]["code"])
    assert 200 == world.ask(modest, "GET", "/v1/gateway/github/x").status
    assert 200 == world.ask(greedy, "GET", "/v1/gateway/other/x").status
    world.keeper.budget("github", calls=3, bytes_up=None, bytes_down=None)
    assert 200 == world.ask(greedy, "GET", "/v1/gateway/github/x").status, "a budget is raised at once"


def test_what_a_box_sends_is_bounded_before_it_is_passed_on(world: World, upstream: Upstream) -> None:
    """A box could carry everything it has learnt into somebody's issue tracker."""
    world.connect("github", upstream.url)
    world.keeper.budget("github", calls=None, bytes_up=1_000, bytes_down=None)
    box = world.box("one")
    assert 200 == world.ask(box, "POST", "/v1/gateway/github/x", b"x" * 900).status
    over = world.ask(box, "POST", "/v1/gateway/github/x", b"y" * 200)
    assert (429, "over_budget") == (over.status, code(over))
    assert b"y" not in b"".join(asked.body for asked in upstream.asked)
    assert 200 == world.ask(box, "POST", "/v1/gateway/github/x", b"x" * 100).status
    assert 429 == world.ask(box, "GET", "/v1/gateway/github/x").status, "nothing is left, so nothing is asked"


def test_what_a_box_receives_is_cut_at_the_budget(world: World, upstream: Upstream) -> None:
    """An answer without end would be copied whole, or half of one be taken for all of it."""
    upstream.answers["/long"] = whole(b"x" * 100_000)
    world.connect("github", upstream.url)
    world.keeper.budget("github", calls=None, bytes_up=None, bytes_down=1_000)
    box = world.box("one")
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        world.ask(box, "GET", "/v1/gateway/github/long")
    last = next(line for line in reversed(world.audit()) if line["event"] == "broken_off")
    assert ("over_budget", True) == (last["code"], last["bytes_out"] <= 1_000)


def test_a_box_has_a_budget_over_all_its_connections(world: World, upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten connections would be ten times as much."""
    monkeypatch.setattr(budget, "OF_A_BOX", budget.Budget(calls=2))
    for name in ("a", "b"):
        world.connect(name, upstream.url)
    box = world.box("one")
    assert [200, 200, 429] == [world.ask(box, "GET", f"/v1/gateway/{name}/x").status for name in "aba"]
    assert "budget" in json.loads(world.ask(world.box("two"), "GET", "/v1/gateway").body)["connections"][0]


def test_a_budget_that_is_none_is_refused(world: World, upstream: Upstream) -> None:
    """Zero would look like a revocation, and be one only sometimes."""
    world.connect("github", upstream.url)
    with pytest.raises(InvalidRequest):
        world.keeper.budget("github", calls=0, bytes_up=None, bytes_down=None)


def test_a_box_of_this_machine_may_send_as_much_as_one_elsewhere(world: World, upstream: Upstream) -> None:
    """A push of two mebibytes would be refused by the socket, and taken by the server."""
    world.connect("github", upstream.url)
    box = world.box("one")
    big = b"x" * (2 * limits.REQUEST_BYTES_MAX)
    assert 200 == world.ask(box, "POST", "/v1/gateway/github/push", big).status
    assert 413 == world.ask(box, "POST", "/v1/write", big).status, "what is kept stays as small as it was"


def test_each_credential_that_is_made_is_written_down(world: World, upstream: Upstream) -> None:
    """A pass that nobody knows of cannot be looked for after a box went astray."""
    world.connect("record", upstream.url, credential={"type": "box-pass"}, secret="")
    box = world.box("one")
    assert [200, 200] == [world.ask(box, "GET", "/v1/gateway/record/x").status for _ in range(2)]
    made = [line for line in world.audit() if line["event"] == "minted"]
    assert [("one", "record")] == [(line["box"], line["connection"]) for line in made], "one pass, two calls"
    acts = world.service.perform(OPERATOR, "audit", {})["acts"]
    kept = [act for act in acts if act["verb"] == "box_pass"]
    assert [("one", "ok")] == [(act["what"]["box"], act["code"]) for act in kept]
    assert SECRET not in str(kept)
