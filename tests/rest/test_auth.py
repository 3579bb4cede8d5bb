"""Who may call: keys, local names, and the refusal to listen openly."""

from __future__ import annotations

import hmac
import os
from pathlib import Path

import pytest

from herdbook.base.errors import Forbidden, InvalidRequest
from herdbook.service.door import Service
from herdbook.surfaces.rest.auth import check_bind, check_key, door, is_loopback, read_key
from tests.rest.serving import ENTRY, KEY, Server, serving

WRITE = {**ENTRY, "value": 1, "why": "because"}
OUTCOME = {"session": "run-1", "type": "success", "ref": "o-1"}


def with_outcome(server: Server) -> None:
    server.post("start_session", {"agent": "fixer", "session": "run-1"})
    assert server.post("commit_outcome", OUTCOME).status == 200


def test_the_key_opens_everything(service: Service) -> None:
    """A host with the key could not attest what its boxes claim."""
    with serving(service, key=KEY) as server:
        with_outcome(server)
        assert server.post("attest", {"ref": "o-1", "exit_code": 0}).status == 200


def test_without_a_key_nobody_attests(server: Server) -> None:
    """Any process on the machine could give its own notes standing."""
    with_outcome(server)
    answer = server.post("attest", {"ref": "o-1", "exit_code": 0})
    assert (403, "forbidden") == (answer.status, answer.code)


@pytest.mark.parametrize(
    "shown",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Bearer {KEY}x",
        f"Bearer {KEY[:-1]}",
        f"Basic {KEY}",
        KEY,
        f"Bearer {KEY.upper()}",
        "Bearer \xff",
    ],
)
def test_anything_but_the_key_is_refused(service: Service, shown: str) -> None:
    """Somebody without the key could read and write the record."""
    with serving(service, key=KEY) as server:
        for path in ("/v1/write", "/v1/read", "/v1/no_such_verb"):
            answer = server.ask("POST", path, b"{}", headers={"Authorization": shown})
            assert (401, "unauthorized") == (answer.status, answer.code)
            assert KEY.encode() not in answer.body
        assert server.ask("GET", "/metrics", headers={"Authorization": shown}).status == 401


def test_the_scheme_is_read_as_http_says(service: Service) -> None:
    """A client that writes `bearer` small would be locked out."""
    with serving(service, key=KEY) as server:
        assert server.ask("GET", "/v1/status", headers={"Authorization": f"bearer  {KEY}"}).status == 200


def test_keys_are_compared_in_constant_time(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key could be guessed letter by letter from how long a refusal takes."""
    compared = []
    real = hmac.compare_digest

    def spy(shown: bytes, expected: bytes) -> bool:
        compared.append((len(shown), len(expected)))
        return real(shown, expected)

    monkeypatch.setattr(hmac, "compare_digest", spy)
    with serving(service, key=KEY) as server:
        server.ask("GET", "/v1/status", headers={"Authorization": "Bearer wrong"})
        server.ask("GET", "/v1/status")
    assert compared == [(32, 32), (32, 32)]


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/openapi.json", "/client.py"])
def test_pages_that_tell_nothing_need_no_key(service: Service, path: str) -> None:
    """A load balancer, or a box that fetches its client, would need the key."""
    with serving(service, key=KEY) as server:
        assert server.ask("GET", path, headers={"Authorization": ""}).status == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", "[::2]", "", "x" * 300],
)
def test_without_a_key_only_local_names_are_answered(server: Server, host: str) -> None:
    """A web page could point its own name at this machine and read the record through a browser."""
    for path in ("/v1/write", "/v1/status", "/metrics", "/healthz"):
        answer = server.raw(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert answer is not None
        assert (403, "forbidden") == (answer.status, answer.code)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:8765", "127.8.8.8", "[::1]", "[::1]:8765", "localhost."]
)
def test_every_local_name_is_answered(server: Server, host: str) -> None:
    """A person would have to guess which of this machine's names is meant."""
    answer = server.raw(f"GET /v1/status HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert answer is not None
    assert answer.status == 200


@pytest.mark.parametrize(
    "headers, status",
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
    ],
)
def test_without_a_key_no_page_from_elsewhere_is_answered(server: Server, headers: dict[str, str], status: int) -> None:
    """A page on the web could send requests through a browser on this machine."""
    assert status == server.ask("GET", "/v1/status", headers=headers).status


def test_a_page_with_the_key_is_answered(service: Service) -> None:
    """With a key, where a request comes from is decided by who has the key."""
    with serving(service, key=KEY) as server:
        assert server.get("/v1/status", Host="book.example", Origin="https://book.example").status == 200


def test_a_unix_socket_is_its_owners(service: Service, tmp_path: Path) -> None:
    """Another user of the machine could open the record through the socket."""
    with serving(service, unix=tmp_path / "s") as server:
        assert os.stat(tmp_path / "s").st_mode & 0o777 == 0o600
        assert server.post("write", WRITE, Host="anything").status == 200
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.1.2.3", "192.168.0.1", "fe80::1", "100.64.0.1", "::ffff:10.0.0.1"])
def test_listening_openly_needs_a_key(address: str) -> None:
    """Everybody in the network could read and write the record."""
    with pytest.raises(Forbidden, match=r"--key-file"):
        check_bind(address, keyed=False)
    check_bind(address, keyed=True)


def test_loopback_needs_no_key() -> None:
    """Trying herdbook out would begin with making a key."""
    for address in ("127.0.0.1", "::1", "127.1.2.3"):
        check_bind(address, keyed=False)
    assert not is_loopback("localhost.example")


def test_a_key_file_is_read_without_its_line_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A key made with a shell would never match, or be readable by others without a word."""
    path = tmp_path / "key"
    path.write_text(f"{KEY}\n")
    path.chmod(0o600)
    assert read_key(path) == KEY
    assert "" == caplog.text
    path.chmod(0o644)
    assert read_key(path) == KEY
    assert "chmod 600" in caplog.text


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"short", b"", b"has a space in the middle", b"x" * 5_000])
def test_a_key_that_cannot_be_one_is_refused(tmp_path: Path, content: bytes | None) -> None:
    """A server would start with a key that everybody can guess, or nobody can send."""
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidRequest, match="to make one"):
        check_key(read_key(path))


def test_a_door_never_shows_its_key(service: Service) -> None:
    """A log line about a door would give the key away."""
    assert KEY not in repr(door(service, KEY, identity="x", on_unix=False))
