"""`herdbook serve` as a process: where it says it is, what it refuses, and how it stops."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from herdbook.base.errors import Forbidden, HerdbookError, InvalidRequest, Unavailable
from herdbook.base.http_serve import bind_tcp, bind_unix
from herdbook.client import HttpTransport
from herdbook.service.callers import local_caller
from herdbook.service.door import Service
from herdbook.surfaces.rest import command
from tests.rest.serving import ENTRY, KEY, open_service

PROGRAM = """
import argparse, sys
from pathlib import Path
from herdbook.surfaces.rest import command
from tests.rest.serving import open_service
parser = argparse.ArgumentParser()
command.add_arguments(parser)
parser.add_argument("--folder", type=Path)
parser.add_argument("--json", action="store_true")
args = parser.parse_args()
service = open_service(args.folder)
try:
    sys.exit(command.run(args, service, key=None, identity="tester"))
finally:
    service.close()
"""
WRITE = {**ENTRY, "value": 1, "why": "because", "request_id": "r-1"}


@contextmanager
def process(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running server and the address on its first line."""
    command_line = [sys.executable, "-c", PROGRAM, "--folder", str(folder), *arguments]
    root = Path(__file__).parents[2]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")])}
    with subprocess.Popen(command_line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ) as running:
        try:
            assert running.stdout
            yield running, running.stdout.readline().strip().removeprefix("serving on ")
        finally:
            running.kill()


def arguments(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(given)


def test_it_says_where_it_is_and_stops_when_asked(tmp_path: Path) -> None:
    """A script could not wait for the server, or a service manager would have to kill it."""
    with process(tmp_path, "--port", "0") as (running, url):
        assert url.startswith("http://127.0.0.1:")
        transport = HttpTransport(url)
        assert 1 == transport.call("write", WRITE)["version"]
        transport.close()
        running.send_signal(signal.SIGTERM)
        rest, complaints = running.communicate(timeout=30)
        assert (0, "", "") == (running.returncode, rest, complaints)
    service = open_service(tmp_path)
    assert 1 == service.perform(local_caller("tester"), "read", ENTRY)["value"]
    service.close()


def test_a_script_may_have_its_line_as_json(tmp_path: Path) -> None:
    """A script that asked for JSON would have to take a sentence apart."""
    with process(tmp_path, "--port", "0", "--json") as (running, line):
        found = json.loads(line)
        assert ["url"] == list(found)
        transport = HttpTransport(found["url"])
        assert "schema" in transport.call("status", {})
        transport.close()
        running.send_signal(signal.SIGTERM)
        assert ("", "") == running.communicate(timeout=30)


def test_an_interrupt_stops_it_too(tmp_path: Path) -> None:
    """Ctrl-C would print a traceback."""
    with process(tmp_path, "--port", "0") as (running, _):
        running.send_signal(signal.SIGINT)
        _, complaints = running.communicate(timeout=30)
        assert (0, "") == (running.returncode, complaints)


def test_a_unix_socket(tmp_path: Path) -> None:
    """Programs on this machine would need a port."""
    path = tmp_path / "s"
    with process(tmp_path, "--unix", str(path)) as (running, url):
        assert f"unix:{path}" == url
        transport = HttpTransport(url)
        assert 1 == transport.call("write", WRITE)["version"]
        transport.close()
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=30)
    assert not path.exists()


def test_a_key_from_a_file(tmp_path: Path) -> None:
    """A server with a key could not be started, or would not ask for it."""
    key_file = tmp_path / "key"
    key_file.write_text(KEY + "\n")
    key_file.chmod(0o600)
    with process(tmp_path, "--port", "0", "--key-file", str(key_file)) as (running, url):
        request = urllib.request.Request(f"{url}/v1/status", headers={"Authorization": f"Bearer {KEY}"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert "schema" in json.load(answer)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}/v1/status", timeout=20)
        assert 401 == refused.value.code
        refused.value.close()
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=30)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "0", "*"])
def test_listening_openly_without_a_key_is_refused(service: Service, host: str) -> None:
    """Everybody in the network could read and write the record after one wrong flag."""
    with pytest.raises((Forbidden, InvalidRequest)) as refused:
        command.run(arguments("--host", host, "--port", "0"), service, key=None, identity="tester")
    assert host == "*" or "--key-file" in refused.value.message


@pytest.mark.parametrize(
    "given, expected",
    [
        (["--host", "0.0.0.0"], "herdbook serve --host 0.0.0.0 --key-file herdbook.key"),
        (["--host", "0.0.0.0", "--port", "9000"], "herdbook serve --host 0.0.0.0 --port 9000 --key-file herdbook.key"),
    ],
)
@pytest.mark.parametrize("key", [None, "secret"])
def test_the_remedy_serves_where_it_was_meant(service: Service, given: list[str], expected: str, key: str | None) -> None:
    """Whoever follows the advice would end with a server that nobody else can reach."""
    free = arguments(*given)
    with pytest.raises((Forbidden, InvalidRequest)) as refused:
        command.run(free, service, key=key, identity="tester")
    assert refused.value.message.endswith(expected)


def test_a_short_key_is_refused(service: Service) -> None:
    """A server would be open to whoever tries a few words."""
    with pytest.raises(InvalidRequest, match="to make one"):
        command.run(arguments("--host", "0.0.0.0", "--port", "0"), service, key="secret", identity="tester")


@pytest.mark.parametrize(
    "host, port", [("no.such.host.invalid", 0), ("192.0.2.1", 0), ("127.0.0.1", 99_999), ("\x00", 0), ("a" * 300, 0)]
)
def test_an_address_that_cannot_be_had_is_a_sentence(host: str, port: int) -> None:
    """A typo in an address would end in a traceback."""
    with pytest.raises(HerdbookError) as refused:
        bind_tcp(host, port).close()
    assert ":" in refused.value.message


def test_a_port_in_use_is_a_sentence() -> None:
    """Starting a second server would end in a traceback."""
    first = bind_tcp("127.0.0.1", 0)
    first.listen()
    with pytest.raises(Unavailable, match="--port"):
        bind_tcp("127.0.0.1", first.getsockname()[1])
    first.close()


def test_a_file_is_no_socket_to_replace(tmp_path: Path) -> None:
    """A wrong --unix would delete somebody's file."""
    path = tmp_path / "precious"
    path.write_text("data")
    with pytest.raises(Unavailable):
        bind_unix(str(path))
    assert "data" == path.read_text()
    with pytest.raises(Unavailable):
        bind_unix(str(tmp_path / "no" / "such" / "folder"))
    with pytest.raises(InvalidRequest, match="107"):
        bind_unix("/tmp/" + "x" * 120)
