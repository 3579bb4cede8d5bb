"""Credentials that are made when they are needed: narrow, short-lived, one for many calls, and never seen by a box."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from herdbook.base.clock import TickClock
from herdbook.base.errors import InvalidRequest
from tests.gateway.clouds import GitHub, Google, new_key
from tests.gateway.serving import World, code
from tests.gateway.upstream import Upstream, whole

APP = {"type": "github-app", "app": "Iv1.app", "installation": 42, "repositories": ["web"], "permissions": {"contents": "read"}}
VIEWER = {"type": "gcp", "account": "viewer@acme.iam.gserviceaccount.com"}
KEY, PUBLIC = new_key()


@pytest.fixture
def clock() -> TickClock:
    return TickClock()


@pytest.fixture
def world(tmp_path: Path, clock: TickClock) -> Iterator[World]:
    made = World(tmp_path, clock=clock)
    yield made
    made.close()


def ours(upstream: Upstream) -> dict[str, Any]:
    return {"iam": upstream.url, "tokens": f"{upstream.url}/token", "metadata": upstream.url}


def test_an_installation_token_is_narrow_and_made_once(world: World, upstream: Upstream, clock: TickClock) -> None:
    """Every call would cost two, or boxes would work with all that the app may do."""
    github = GitHub(upstream, PUBLIC, clock)
    world.connect("github", upstream.url, credential=APP, secret=KEY)
    box = world.box("one", lease_seconds=80_000)
    replies = [world.ask(box, "GET", "/v1/gateway/github/repos/acme/web") for _ in range(3)]
    assert [200] * 3 == [reply.status for reply in replies]
    assert [{"repositories": ["web"], "permissions": {"contents": "read"}}] == github.asked
    assert all(b"canary" not in reply.body and b"seen" in reply.body for reply in replies)
    clock.tick(seconds=3_600 - 121)
    assert 200 == world.ask(box, "GET", "/v1/gateway/github/repos/acme/web").status
    assert 1 == len(github.asked)
    clock.tick(seconds=2)
    assert 200 == world.ask(box, "GET", "/v1/gateway/github/repos/acme/web").status
    assert 2 == len(github.asked)


def test_a_token_that_is_refused_is_made_anew(world: World, upstream: Upstream, clock: TickClock) -> None:
    """After a token was revoked at the service, every call would fail for an hour."""
    github = GitHub(upstream, PUBLIC, clock)
    world.connect("github", upstream.url, credential=APP, secret=KEY)
    box = world.box("one")
    path = "/v1/gateway/github/repos/acme/web"
    assert 200 == world.ask(box, "GET", path).status
    github.good.clear()
    assert [401, 401] == [world.ask(box, "GET", path).status for _ in range(2)]
    assert 1 == len(github.asked)  # a fresh one was refused: asking for more would only be noise
    clock.tick(seconds=31)
    assert [401, 200] == [world.ask(box, "GET", path).status for _ in range(2)]


def test_many_calls_at_once_make_one_token(world: World, upstream: Upstream, clock: TickClock) -> None:
    """A fleet that starts together would use up the service's limit on tokens."""
    from concurrent.futures import ThreadPoolExecutor

    github = GitHub(upstream, PUBLIC, clock)
    world.connect("github", upstream.url, credential=APP, secret=KEY)
    box = world.box("one")
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: world.ask(box, "GET", "/v1/gateway/github/repos/acme/web"), range(8)))
    assert [200] * 8 == [reply.status for reply in replies]
    assert 1 == len(github.asked)


@pytest.mark.parametrize(
    "answer",
    [
        whole(b"no", status="500 Broken"),
        whole(b"{}", status="201 Created"),
        whole(b'{"token": "a\\nb: c012345"}', status="201 Created"),
        whole(b'{"token": "ghs_0123456789"}', status="201 Created"),
        whole(b"x" * 70_000, status="201 Created"),
        whole(b"", status="302 Found", headers=b"Location: /elsewhere\r\n"),
    ],
)
def test_a_service_that_makes_no_token_is_said(world: World, upstream: Upstream, answer: Any) -> None:
    """A box could not tell an outage from its own mistake, or would be shown what was sent."""
    upstream.answers["/app/installations/42/access_tokens"] = answer
    world.connect("github", upstream.url, credential=APP, secret=KEY)
    reply = world.ask(world.box("one"), "GET", "/v1/gateway/github/repos/acme/web")
    assert (502, "mint_failed") == (reply.status, code(reply))
    assert ["/app/installations/42/access_tokens"] == [asked.target for asked in upstream.asked]
    assert "mint_failed" == world.audit()[-1]["code"]


def test_a_viewers_token_by_the_machines_identity(world: World, upstream: Upstream, clock: TickClock) -> None:
    """A box could not read logs without a key, or would hold a token that can do more than read."""
    google = Google(upstream, clock)
    world.connect("logging", upstream.url, credential={**VIEWER, **ours(upstream)}, secret="")
    reply = world.ask(world.box("one"), "POST", "/v1/gateway/logging/v2/entries:list", b'{"resourceNames":[]}')
    assert (200, ["metadata"]) == (reply.status, google.as_whom)
    [asked] = google.asked
    assert "3600s" == asked["lifetime"]
    assert all("read" in scope for scope in asked["scope"])
    assert b"canary" not in reply.body


def test_a_viewers_token_by_a_service_accounts_key(world: World, upstream: Upstream, clock: TickClock) -> None:
    """Outside of the cloud there would be no way to a viewer's token."""
    google = Google(upstream, clock, public_key=PUBLIC)
    secret = json.dumps({"type": "service_account", "client_email": "gateway@acme.iam.gserviceaccount.com", "private_key": KEY})
    world.connect("logging", upstream.url, credential={**VIEWER, **ours(upstream), "source": "key"}, secret=secret)
    reply = world.ask(world.box("one"), "POST", "/v1/gateway/logging/v2/entries:list", b"{}")
    assert (200, ["gateway@acme.iam.gserviceaccount.com"]) == (reply.status, google.as_whom)
    assert b"canary" not in reply.body


def test_the_record_is_a_service_like_any_other(world: World, upstream: Upstream, clock: TickClock) -> None:
    """A box on another machine would need a key of the record."""
    world.connect("record", upstream.url, credential={"type": "box-pass"}, secret="", allow=("POST /v1/brief", "POST /v1/write"))
    for box in ("one", "two"):
        assert 200 == world.ask(world.box(box), "POST", "/v1/gateway/record/v1/brief", b"{}").status
    assert 403 == world.ask("one", "POST", "/v1/gateway/record/v1/attest", b"{}").status
    tokens = [asked.values("authorization")[0].removeprefix("Bearer ") for asked in upstream.asked]
    said = [world.as_host("box_check", {"token": token}) for token in tokens]
    assert [(True, "one", []), (True, "two", [])] == [(each["valid"], each["box"], each["connections"]) for each in said]


@pytest.mark.parametrize(
    "credential, secret",
    [
        ({**APP, "repositories": []}, KEY),
        ({**APP, "permissions": {}}, KEY),
        ({**APP, "permissions": {"contents": "everything"}}, KEY),
        ({**APP, "repositories": ["acme/web"]}, KEY),
        ({**APP, "installation": 0}, KEY),
        (APP, "not a key at all"),
        ({**VIEWER, "scopes": ["https://www.googleapis.com/auth/cloud-platform"]}, ""),
        ({**VIEWER, "scopes": ["https://www.googleapis.com/auth/logging.write"]}, ""),
        ({**VIEWER, "scopes": []}, ""),
        ({**VIEWER, "lifetime_seconds": 3_601}, ""),
        ({**VIEWER, "account": "somebody@gmail.com"}, ""),
        ({**VIEWER, "source": "key"}, "{}"),
        ({"type": "box-pass"}, "a-secret-of-some-length"),
    ],
)
def test_a_credential_that_is_wider_than_its_purpose_is_refused(world: World, credential: dict[str, Any], secret: str) -> None:
    """A token for one repository, or for reading, could do everything its account may."""
    with pytest.raises(InvalidRequest) as caught:
        world.keeper.add("wide", base="https://api.github.com", credential=credential, secret=secret)
    assert not secret or secret not in caught.value.message
