"""The secret is nowhere that a box, or whoever reads what is kept, could look."""

from __future__ import annotations

import logging
from pathlib import Path
from urllib.parse import quote

import pytest

from herdbook import Client
from herdbook.boxes.host import Host
from herdbook.boxes.provider import Chunk
from herdbook.boxes.providers import choose
from herdbook.service.callers import local_caller
from herdbook.service.local import LocalTransport
from tests.gateway.serving import SECRET, World
from tests.gateway.upstream import Upstream, whole

# What runs in the box: everything it can see of itself, and a call.
AGENT = """\
import http.client, os, pathlib, socket, sys
def call(path):
    connection = http.client.HTTPConnection("box")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(os.environ["HERDBOOK_URL"].removeprefix("unix:"))
    connection.request("GET", path)
    answer = connection.getresponse()
    print(answer.status, answer.getheaders(), answer.read())
print(dict(os.environ))
for path in ("/proc/self/environ", "/proc/1/environ", "/proc/self/cmdline", "/proc/1/cmdline", "/proc/self/mountinfo"):
    try:
        print(path, pathlib.Path(path).read_bytes())
    except OSError as problem:
        print(path, problem)
for place in (os.getcwd(), "/tmp", "/run", "/etc", "/var", "/home", "/root", "/dev/shm"):
    for folder, _, files in os.walk(place):
        if folder.startswith((sys.base_prefix, "/etc/alternatives")):
            continue  # Python and programs, as they came
        for name in files:
            try:
                print(folder, name, pathlib.Path(folder, name).read_bytes()[:10000])
            except OSError as problem:
                print(folder, name, problem)
for path in ("/v1/gateway", "/v1/gateway/github/echo", "/v1/gateway/github/x%2f", "/v1/gateway/none/x", "/v1/gateway/gone/x"):
    call(path)
try:
    socket.create_connection(("127.0.0.1", PORT), 2)
    print("reached the service without the gateway")
except OSError:
    print("no way but the gateway")
"""


def spellings(secret: str) -> list[bytes]:
    return [secret.encode(), quote(secret, safe="").encode(), secret.encode().hex().encode(), secret[:20].encode()]


@pytest.mark.slow
@pytest.mark.isolation
def test_the_secret_is_in_no_box_and_in_nothing_that_is_kept(
    tmp_path: Path, world: World, upstream: Upstream, caplog: pytest.LogCaptureFixture
) -> None:
    """One leak anywhere, and keeping keys out of boxes was for nothing."""
    caplog.set_level(logging.DEBUG)
    body = f"{SECRET} {quote(SECRET, safe='')} {SECRET.encode().hex()}".encode()
    upstream.answers["/echo"] = whole(body, headers=f"X-Echo: {SECRET}\r\n".encode())
    world.connect("github", upstream.url)
    world.connect("gone", "http://127.0.0.1:1")
    book = Client(LocalTransport(world.service, local_caller("operator")), session="")

    def open_socket(box: str) -> tuple[str, object]:
        path, close = world.sockets.open(box)
        return str(path), close

    said: list[bytes] = []

    def heard(chunk: Chunk) -> None:
        said.append(chunk[1])

    provider = choose(state_dir=tmp_path / "boxes")
    with Host(book, provider, open_socket=open_socket, label="ci") as host:  # type: ignore[arg-type]
        box = host.open("box-1")
        host.put(box, "agent.py", AGENT.replace("PORT", str(upstream.port)).encode())
        exit_code = host.run(box, ["python3", "agent.py"], on_output=heard, timeout_seconds=60)
    output = b"".join(said)
    assert 0 == exit_code, output[-2_000:]
    assert b"no way but the gateway" in output
    assert b"200 [" in output
    assert [f"Bearer {SECRET}"] == upstream.asked[0].values("authorization")
    kept = {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert any("audit-" in name for name in kept)
    places = {**kept, "the box's output": output, "the log": caplog.text.encode()}
    assert [] == [name for name, data in places.items() for form in spellings(SECRET) if form in data]
