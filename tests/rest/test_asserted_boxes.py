"""Boxes that a connector speaks for: believed about their name as far as it goes, and given what a box may."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from herdbook.base.claims import digest_of
from herdbook.client import HerdbookError, HttpTransport
from tests.rest.serving import ENTRY, KEY
from tests.rest.test_command import process

WRITE = {**ENTRY, "value": 1, "why": "because", "request_id": "r-1"}
CLAIM = "told-to-that-box-alone"
BOX = {
    "claim": digest_of(CLAIM),
    "box": "b-1",
    "provider": "sprites",
    "isolation": "microvm",
    "label": "l",
    "owner": "h:1:1",
    "lease_seconds": 60,
}


def refused(transport: HttpTransport, verb: str, fields: dict[str, object]) -> int:
    with pytest.raises(HerdbookError) as problem:
        transport.call(verb, fields)
    return problem.value.status


def test_a_connector_speaks_for_boxes_that_live_and_for_nobody_else(tmp_path: Path) -> None:
    """Any name would do to write under, and to be vouched for."""
    key_file = tmp_path / "key"
    key_file.write_text(KEY)
    key_file.chmod(0o600)
    with process(tmp_path, "--port", "0", "--key-file", str(key_file)) as (_, url):
        host = HttpTransport(url, KEY)
        box, keyless = HttpTransport(f"{url}/boxes/b-1~{CLAIM}", KEY), HttpTransport(f"{url}/boxes/b-1~{CLAIM}")
        other = HttpTransport(f"{url}/boxes/b-2~{CLAIM}", KEY)
        assert 401 == refused(box, "write", WRITE), "there is no such box yet"
        host.call("box_open", dict(BOX))
        assert 1 == box.call("write", WRITE)["version"]
        assert 401 == refused(keyless, "write", WRITE)
        assert 401 == refused(other, "write", WRITE)
        for verb, fields in (("box_list", {}), ("attest", {"ref": "x", "exit_code": 0}), ("box_close", {"box": "b-1"})):
            assert 403 == refused(box, verb, dict(fields)), verb
        host.call("box_close", {"box": "b-1"})
        assert 401 == refused(box, "read", dict(ENTRY))
        for each in (host, box, keyless, other):
            each.close()


def test_without_a_key_nobody_is_believed(tmp_path: Path) -> None:
    """Whoever is on the machine could write in the name of a box, and have it attested."""
    with process(tmp_path, "--port", "0") as (_, url):
        host, box = HttpTransport(url), HttpTransport(f"{url}/boxes/b-1~{CLAIM}")
        host.call("box_open", dict(BOX))
        assert 401 == refused(box, "write", WRITE)
        host.close()
        box.close()


def test_nobody_learns_which_boxes_live(tmp_path: Path) -> None:
    """Whoever has any key could count a fleet, follow it, and call in the name of a box whose id stands in some entry."""
    key_file = tmp_path / "key"
    key_file.write_text(KEY)
    key_file.chmod(0o600)
    with process(tmp_path, "--port", "0", "--key-file", str(key_file)) as (_, url), closing(HttpTransport(url, KEY)) as host:
        for number, provider in enumerate(("sprites", "bubblewrap", "sprites")):
            host.call("box_open", {**BOX, "box": f"b-{number}", "provider": provider, "claim": digest_of(f"claim-{number}")})
        host.call("box_close", {"box": "b-2"})
        reader = host.call("key_create", {"name": "reader", "role": "reader", "reach": ["*"]})["key"]
        answers = set()
        for key in (KEY, reader):
            for box in ("b-0", "b-0~", "b-0~claim-1", "b-1", "b-1~claim-0", "b-2", "b-2~claim-2", "none", "none~claim-0"):
                with closing(HttpTransport(f"{url}/boxes/{box}", key)) as asker, pytest.raises(HerdbookError) as problem:
                    asker.call("brief", {"entity": "acme"})
                answers.add((problem.value.status, problem.value.code, problem.value.message))
        assert 1 == len(answers), "a box that lives, is closed, is somebody else's or never was: one answer"
        assert 401 == next(iter(answers))[0]
