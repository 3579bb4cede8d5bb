"""`herdbook fanout` with boxes at a provider elsewhere, which reach the record by its connector and hold no key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.boxes.sprites_server import TOKEN, Connection, SpritesServer, sprites
from tests.cli.test_fanout import AGENT, ENTITY, herdbook
from tests.rest.test_command import process

pytestmark = [pytest.mark.isolation, pytest.mark.slow]
KEY = "record-key-canary-of-enough-length"
SEEN = """
if n == "1":
    import time
    while not [e for e in book.brief("acme/checkout")["dead_ends"] if e["value"]["env"]["N"] == "9"]: time.sleep(0.02)
if "canary" in repr(dict(os.environ)):
    sys.exit(7)
"""


@contextmanager
def elsewhere(home: Path) -> Iterator[tuple[SpritesServer, dict[str, str]]]:
    """The provider, a server of the record of this home behind its connector, and what tells the command of both."""
    home.mkdir()
    (home / "files").mkdir()
    (home / "files" / "agent.py").write_text(AGENT % SEEN)
    (home / "key").write_text(KEY)
    (home / "key").chmod(0o600)
    with sprites() as server, process(home, "--port", "0", "--key-file", str(home / "key")) as (_, url):
        server.connections["conn-1"] = Connection(url, KEY, "herdbook-")
        yield server, {
            "SPRITES_TOKEN": TOKEN, "HERDBOOK_SPRITES_CONNECTOR_ID": "conn-1", "HERDBOOK_SPRITES_URL": server.url,
        }  # fmt: skip


def test_boxes_elsewhere_compete_share_dead_ends_and_hold_no_key(tmp_path: Path) -> None:
    """Whoever has machines at a provider could not fan out, or would read what the losers believed."""
    home = tmp_path / "h"
    with elsewhere(home) as (server, env):
        command = ("fanout", ENTITY, "--provider", "sprites", "--files", str(home / "files"), "--at-once", "2")
        found = herdbook(home, *command, "--vary", "N=1,9,2", "--", "python3", "agent.py", code=0, env=env)
        states = {each["approach"]: each["state"] for each in found["attempts"]}
        assert {"N=1": "failed", "N=9": "failed", "N=2": "won"} == states, found
        assert ("sprites", "microvm") == (found["provider"], found["isolation"])
        assert {} == server.machines, "every machine is gone"
        assert [] == [headers for headers in server.gateway_headers if "authorization" in headers]
        won = next(each for each in found["attempts"] if each["state"] == "won")
        history = herdbook(home, "history", ENTITY, "found")["versions"]
        assert [({"env": {"N": "2"}}, won["box"], "observed")] == [
            (each["value"], each["box"], each["standing"]) for each in history
        ], "one version, by the winner, and it stands"
        for attempt in found["attempts"]:
            trace = herdbook(home, "trace", *attempt["sessions"])
            assert ("asserted", attempt["box"], "microvm") == (trace["channel"], trace["box"], trace["isolation"])
        again = herdbook(home, *command, "--vary", "N=1,9", "--", "python3", "agent.py", code=1, env=env)
        assert ["skipped", "skipped"] == [each["state"] for each in again["attempts"]]
    for path in home.rglob("record.db*"):
        assert b"canary" not in path.read_bytes()


def test_a_way_that_is_shut_makes_no_dead_ends(tmp_path: Path) -> None:
    """Every variant of a space would be ruled out because a connector leads nowhere."""
    home = tmp_path / "h"
    with elsewhere(home) as (server, env):
        server.connections.clear()
        command = ("fanout", ENTITY, "--provider", "sprites", "--files", str(home / "files"), "--vary", "N=1,2")
        told = herdbook(home, *command, "--", "python3", "agent.py", code=3, env=env)
        assert "does not reach the record by its connector" in told["error"]["message"]
        assert {} == server.machines
        assert [] == herdbook(home, "brief", ENTITY)["dead_ends"]
