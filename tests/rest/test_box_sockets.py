"""A socket for each box: what it may do, whose it is, and what is left when it goes."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from herdbook.base.errors import InvalidText, Unavailable
from herdbook.base.http_serve import UNIX_PATH_BYTES_MAX
from herdbook.client import HerdbookError as ClientError
from herdbook.client import HttpTransport
from herdbook.service.callers import local_caller
from herdbook.service.door import Service
from herdbook.service.verbs import VERBS
from herdbook.surfaces.rest import examples
from herdbook.surfaces.rest.box_sockets import BoxSockets, short_directory, short_temporary
from tests.rest.serving import ENTRY

OPERATOR = local_caller("operator")


@pytest.fixture
def sockets(service: Service) -> Iterator[BoxSockets]:
    opened = BoxSockets(service, identity="operator")
    yield opened
    opened.close()


def call(path: Path, verb: str, fields: dict[str, Any], *, key: str | None = None) -> dict[str, Any]:
    """One verb through a box's socket, with the client that a box has."""
    transport = HttpTransport(f"unix:{path}", key)
    try:
        return transport.call(verb, fields)
    finally:
        transport.close()


def write(path: Path, *, key: str = "k", value: object = 1) -> None:
    fields = {"entity": "acme/ci", "key": key, "value": value, "why": "because", "request_id": f"w-{path.name}-{key}"}
    assert call(path, "write", fields)["version"] == 1


def test_a_box_reads_and_writes_as_itself(service: Service, sockets: BoxSockets) -> None:
    """A box could not use the record, or its writes would not say which box wrote them."""
    path, _ = sockets.open("box-1")
    write(path, key=ENTRY["key"])
    entry = service.perform(OPERATOR, "read", ENTRY)
    assert ("box-1", "operator", "agent") == (entry["box"], entry["identity"], entry["origin"])


@pytest.mark.parametrize("verb", sorted(name for name, verb in VERBS.items() if verb.scope in ("attest", "host")))
def test_a_box_never_attests_nor_touches_boxes(sockets: BoxSockets, verb: str) -> None:
    """A box could vouch for itself, or close another box."""
    path, _ = sockets.open("box-1")
    with pytest.raises(ClientError) as refused:
        call(path, verb, examples.REQUESTS[verb])
    assert "forbidden" == refused.value.code


def test_a_credential_in_a_box_changes_nothing(sockets: BoxSockets) -> None:
    """A key that leaked into a box would let it attest over its own socket."""
    path, _ = sockets.open("box-1")
    with pytest.raises(ClientError) as refused:
        call(path, "attest", {"ref": "o"}, key="a-key-of-enough-length")
    assert "forbidden" == refused.value.code


def test_sockets_do_not_mix_boxes_up(service: Service, sockets: BoxSockets) -> None:
    """One box's work would be put down to another."""
    paths = {box: sockets.open(box)[0] for box in ("box-1", "box-2", "../box 3\u00e9")}
    for box, path in paths.items():
        write(path, key=f"key of {box}", value=box)
    for box in paths:
        assert box == service.perform(OPERATOR, "read", {"entity": "acme/ci", "key": f"key of {box}"})["box"]


def test_only_the_owner_may_come_in(sockets: BoxSockets) -> None:
    """Another user of the machine could write as a box."""
    path, _ = sockets.open("box-1")
    assert 0o600 == stat.S_IMODE(os.stat(path).st_mode)
    assert 0o700 == stat.S_IMODE(os.stat(path.parent).st_mode)


def test_a_path_fits_into_a_socket_address(sockets: BoxSockets, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Boxes could not be opened where the temporary directory has a long name."""
    path, _ = sockets.open("b" * 128)
    assert len(os.fsencode(path)) <= UNIX_PATH_BYTES_MAX
    long = tmp_path / ("d" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    assert "/tmp" == short_temporary()
    found = Path(short_directory())
    assert len(os.fsencode(found)) < 60
    found.rmdir()


def test_closing_ends_that_box_only(sockets: BoxSockets) -> None:
    """A destroyed box's socket would stay open, or take the others with it."""
    first, close = sockets.open("box-1")
    second, _ = sockets.open("box-2")
    close()
    close()
    assert not first.exists()
    write(second)


def test_a_box_comes_back_to_the_same_path(sockets: BoxSockets) -> None:
    """A kept box would look for the record where it no longer is."""
    path, close = sockets.open("box-1")
    with pytest.raises(Unavailable, match="answers there"):
        sockets.open("box-1")
    close()
    assert path == sockets.open("box-1")[0]


def test_a_socket_left_by_a_killed_host_is_replaced(service: Service, tmp_path: Path) -> None:
    """A host that was killed could not open its box again."""
    with_path = BoxSockets(service, identity="operator", directory=tmp_path)
    path, close = with_path.open("box-1")
    close()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    assert path.exists()
    again, _ = with_path.open("box-1")
    write(again)
    with_path.close()
    assert not path.exists()


def test_everything_made_is_removed(service: Service) -> None:
    """Each run would leave a directory behind."""
    opened = BoxSockets(service, identity="operator")
    path, _ = opened.open("box-1")
    opened.close()
    opened.close()
    assert not path.parent.exists()


def test_a_box_without_a_name_is_refused(sockets: BoxSockets) -> None:
    """Writes of a box that nobody can name could not be traced."""
    with pytest.raises(InvalidText):
        sockets.open("")


def test_a_box_does_not_see_the_servers_figures(sockets: BoxSockets) -> None:
    """A box would learn what other boxes do."""
    path, _ = sockets.open("box-1")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))
        sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert sock.recv(4096).startswith(b"HTTP/1.1 403 ")
