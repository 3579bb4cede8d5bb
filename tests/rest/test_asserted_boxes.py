"""Boxes that a connector speaks for: believed about their name as far as it goes, and given what a box may."""

from __future__ import annotations

from pathlib import Path

import pytest

from herdbook.client import HerdbookError, HttpTransport
from tests.rest.serving import ENTRY, KEY
from tests.rest.test_command import process

WRITE = {**ENTRY, "value": 1, "why": "because", "request_id": "r-1"}
BOX = {"box": "b-1", "provider": "sprites", "isolation": "microvm", "label": "l", "owner": "h:1:1", "lease_seconds": 60}


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
        box, keyless = HttpTransport(f"{url}/boxes/b-1", KEY), HttpTransport(f"{url}/boxes/b-1")
        other = HttpTransport(f"{url}/boxes/b-2", KEY)
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
        host, box = HttpTransport(url), HttpTransport(f"{url}/boxes/b-1")
        host.call("box_open", dict(BOX))
        assert 401 == refused(box, "write", WRITE)
        host.close()
        box.close()
