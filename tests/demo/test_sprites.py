"""The five acts in machines elsewhere, keyless: the provider's own gateway carries the credential."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

from herdbook.client import HttpTransport
from tests.boxes.sprites_server import TOKEN, Connection, sprites
from tests.demo import wiring
from tests.rest.test_command import process

pytestmark = [pytest.mark.isolation, pytest.mark.slow]
KEY = "record-key-canary-of-enough-length"


def test_the_five_acts_hold_no_key_and_the_host_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in a box is a key in every copy of its image; a gateway that answers anybody makes it everybody's."""
    key_file = tmp_path / "key"
    key_file.write_text(KEY)
    key_file.chmod(0o600)
    home = tmp_path / "home"
    home.mkdir()
    with sprites() as server, process(home, "--port", "0", "--key-file", str(key_file)) as (_, record_url):
        server.connections["conn-1"] = Connection(record_url, KEY, "herdbook-")
        monkeypatch.setenv("SPRITES_TOKEN", TOKEN)
        monkeypatch.setenv("HERDBOOK_SPRITES_CONNECTOR_ID", "conn-1")
        monkeypatch.setenv("HERDBOOK_SPRITES_URL", server.url)
        told = wiring.demo(home, "--provider", "sprites", "--json")
        assert (0, None) == (told.code, told.json["failed"])
        assert (5, 1) == (told.json["attempts_cold"], told.json["attempts_inherited"])
        assert {("sprites", "microvm")} == {(box["provider"], box["isolation"]) for box in told.json["boxes"]}
        assert {} == server.machines, "every machine is gone"
        assert server.gateway_headers, "the record was reached through the gateway"
        assert [] == [headers for headers in server.gateway_headers if "authorization" in headers]
        same = urllib.request.Request(
            f"{server.url}/v1/gateway/custom_api/conn-1/boxes/{told.json['boxes'][0]['id']}/v1/brief",
            json.dumps({"entity": told.json["entity"]}).encode(),
            {"Content-Type": "application/json"},
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(same, timeout=20)
        assert refused.value.code == 401
        refused.value.close()
        with closing(HttpTransport(record_url, KEY)) as record:
            trace = record.call("trace", {"ref": told.acts(2)[0]["outcome"]["ref"]})
        assert (told.json["boxes"][0]["id"], "asserted") == (trace["box"], trace["channel"])
    everything = told.out + "".join(path.read_bytes().decode("latin-1") for path in home.rglob("*") if path.is_file())
    assert "record-key-canary" not in everything
    assert "token-canary" not in everything
    assert os.environ["SPRITES_TOKEN"] == TOKEN
