"""The record behind the gateway: a box elsewhere writes as itself, with the client it has, and holds no key of the record."""

from __future__ import annotations

from contextlib import closing

import pytest

from herdbook import Client
from herdbook.client import HerdbookError, HttpTransport
from tests.gateway.serving import OPERATOR, World
from tests.rest.serving import serving

ALLOWED = ("POST /v1/start_session", "POST /v1/write", "POST /v1/brief", "POST /v1/attest", "POST /v1/box_list")


def test_a_box_elsewhere_uses_the_record_as_itself(world: World) -> None:
    """A remote box would need a key of the record, or its writes would not say which box wrote them."""
    with serving(world.service, key="a-key-of-enough-length") as record:
        host, port = record.address
        world.connect("record", f"http://{host}:{port}", credential={"type": "box-pass"}, secret="", allow=ALLOWED)
        token = world.token(world.box("one"), connections=["record"])
        gateway = world.sock.getsockname()[1]
        with closing(HttpTransport(f"http://127.0.0.1:{gateway}/v1/gateway/record", token)) as transport:
            client = Client(transport, agent="agent", session="run-1")
            client.write("acme/ci", "tz", {"env": {"TZ": "UTC"}}, why="the tests compare against UTC midnight")
            entry = world.service.perform(OPERATOR, "read", {"entity": "acme/ci", "key": "tz"})
            assert ("one", "host") == (entry["box"], entry["identity"])
            for verb, fields in (("attest", {"ref": "x", "type": "success"}), ("box_list", {})):
                with pytest.raises(HerdbookError) as caught:
                    client.call(verb, fields)
                assert "forbidden" == caught.value.code  # whatever rules allow, the record knows that it is a box


def test_the_pass_for_the_gateway_opens_the_record_no_further(world: World) -> None:
    """The pass that the gateway puts on a call could be used to call other services."""
    with serving(world.service, key="a-key-of-enough-length") as record:
        host, port = record.address
        world.connect("record", f"http://{host}:{port}", credential={"type": "box-pass"}, secret="", allow=ALLOWED)
        passes = world.app.catalogue.get("record").credential
        world.box("one")
        attached = world.thread.call(passes.attach("one"))
        token = attached.headers[0][1].decode().removeprefix("Bearer ")
        assert 403 == world.ask_outside("POST", "/v1/gateway/record/v1/brief", b"{}", Authorization=f"Bearer {token}").status
