"""Keys of the record over REST, through two servers of one record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from herdbook.base.errors import InvalidRequest
from herdbook.service.callers import local_caller
from herdbook.service.door import Service
from herdbook.surfaces.rest import examples
from herdbook.surfaces.rest.auth import check_key
from tests.rest.serving import KEY, Reply, Server, open_service, serving

ANN = local_caller("ann")
ENTRY = {"entity": "acme/ci", "key": "a"}


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[Service, Server, Server]]:
    """Two workers: what one does the other has to know."""
    one, two = open_service(tmp_path), open_service(tmp_path)
    with serving(one) as first, serving(two) as second:
        yield one, first, second
    one.close()
    two.close()


def made(service: Service, name: str = "ci", **more: Any) -> str:
    key: str = service.perform(ANN, "key_create", {"name": name, **more})["key"]
    return key


def shown(server: Server, verb: str, fields: dict[str, Any], key: str) -> Reply:
    return server.post(verb, fields, Authorization=f"Bearer {key}")


def test_a_key_opens_every_server_and_a_revoked_one_none(servers: tuple[Service, Server, Server]) -> None:
    """A load balancer would let somebody in or out depending on which server answers."""
    service, one, two = servers
    key = made(service, role="writer", reach=["acme"])
    assert 200 == shown(one, "write", {**ENTRY, "value": 1}, key).status
    assert 1 == shown(two, "read", ENTRY, key).json["value"]
    service.perform(ANN, "key_revoke", {"name": "ci"})
    for server in (one, two):
        assert (401, "unauthorized") == (shown(server, "read", ENTRY, key).status, shown(server, "read", ENTRY, key).code)


def test_once_there_are_keys_one_has_to_be_shown(servers: tuple[Service, Server, Server]) -> None:
    """Whoever is on the machine would walk around every key."""
    service, one, two = servers
    assert 200 == one.post("list", {}).status
    key = made(service)
    for server in (one, two):
        assert 401 == server.post("list", {}).status
        assert 401 == server.get("/metrics").status
        assert 200 == server.get("/healthz").status
        assert 200 == shown(server, "list", {}, key).status


def test_pages_about_the_server_are_not_for_a_tenants_key(servers: tuple[Service, Server, Server]) -> None:
    """A customer would read how busy the others are."""
    service, one, _ = servers
    admin = service.perform(ANN, "tenant_create", {"tenant": "acme"})["key"]
    assert 403 == one.get("/metrics", Authorization=f"Bearer {admin}").status
    operator = made(service, "ops", role="operator")
    assert 200 == one.get("/metrics", Authorization=f"Bearer {operator}").status


def test_the_servers_own_key_goes_on(service: Service) -> None:
    """Making the first key would lock out whoever made it."""
    with serving(service, key=KEY) as server:
        made = server.post("key_create", {"name": "ci"}).json["key"]
        assert 200 == server.post("key_list", {}).status
        assert 403 == shown(server, "key_list", {}, made).status
        assert 200 == server.get("/metrics").status


def test_a_box_shows_its_pass(servers: tuple[Service, Server, Server]) -> None:
    """A box on another machine could not use the record, or would go on when it is gone."""
    service, one, two = servers
    service.perform(ANN, "box_open", examples.REQUESTS["box_open"])
    box = examples.BOX["box"]
    token = service.perform(ANN, "box_pass", {"box": box, "reach": ["acme"]})["token"]
    assert 200 == shown(one, "write", {**ENTRY, "value": 1}, token).status
    read = shown(two, "read", ENTRY, token).json
    assert (box, "ann", "agent") == (read["box"], read["identity"], read["origin"])
    for verb in ("attest", "box_list", "key_list", "box_close"):
        assert 403 == shown(one, verb, examples.REQUESTS[verb], token).status
    assert 403 == shown(one, "write", {"entity": "other", "key": "a", "value": 1}, token).status
    service.perform(ANN, "box_close", {"box": box})
    for server in (one, two):
        assert 401 == shown(server, "read", ENTRY, token).status


def test_a_key_of_the_record_is_no_key_of_a_server(service: Service) -> None:
    """Whoever serves with a caller's key in the environment would make that caller the operator."""
    with pytest.raises(InvalidRequest, match="key of a record"):
        check_key(made(service, role="reader"))
