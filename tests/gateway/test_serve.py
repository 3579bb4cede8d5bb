"""`herdbook gateway`: what an operator types, and what the served process lets whom see."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from herdbook.__main__ import main
from herdbook.base.claims import digest_of
from tests.gateway.serving import SECRET, World, asked, code
from tests.gateway.upstream import Upstream, whole

Command = Callable[..., str]
CONNECTOR = "connector-0123456789-0123456789-0123456789"
KEY = "metrics-key-0123456789"


@pytest.fixture
def herdbook(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command line in this process: what it prints."""

    def run(home: Path, *words: str, secret: str = "", exits: int = 0) -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HERDBOOK_HOME", str(home))
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(secret.encode())))
            code = main(list(words))
        said = "".join(capsys.readouterr())
        assert exits == code, said
        return said

    return run


@contextmanager
def served(home: Path, *words: str, **environ: str) -> Iterator[tuple[Any, list[str]]]:
    """A gateway in a process of its own: where it answers; and, when it has ended, what it said."""
    command = [sys.executable, "-m", "herdbook", "gateway", "serve", "--port", "0", "--json", "--log-level", "debug", *words]
    environment = {**os.environ, "HERDBOOK_HOME": str(home), **environ}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said: list[str] = []
    try:
        assert process.stdout is not None
        first = ""
        while not first.rstrip().endswith("}"):
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            first += line
        host, _, port = json.loads(first)["url"].removeprefix("http://").rpartition(":")
        yield (host, int(port)), said
    finally:
        process.send_signal(signal.SIGTERM)
        said += process.communicate(timeout=60)
    assert 0 == process.returncode


def test_an_operator_sets_up_and_takes_away(herdbook: Command, tmp_path: Path) -> None:
    """What the pages say to type would not work, or would show the secret."""
    home = tmp_path / "home"
    words = ("add", "github", "--to", "https://api.github.com", "--allow", "GET /a/**")
    added = herdbook(home, "gateway", *words, secret=SECRET + "\n")
    assert "github  https://api.github.com  bearer, secret 1\n  GET /a/**\n  for no box: grant it\n" == added
    file = tmp_path / "secret"
    file.write_text("another-secret-0123456789")
    herdbook(home, "gateway", "add", "llm", "--to", "https://llm.example/v1", "--header", "X-API-Key", "--secret-file", str(file))
    herdbook(home, "gateway", "rules", "github", "--block", "* /a/b", "--forget", "GET /a/**", "--allow", "POST /c")
    herdbook(home, "gateway", "grant", "github", "--label", "ci")
    herdbook(home, "gateway", "grant", "github", "--box", "one")
    herdbook(home, "gateway", "withdraw", "github", "--label", "ci")
    herdbook(home, "gateway", "rotate", "github", secret="rotated-0123456789")
    said = json.loads(herdbook(home, "gateway", "ls", "--json"))["connections"]
    assert ["github", "llm"] == [each["connection"] for each in said]
    expected = {"rules": ["POST /c", "block * /a/b"], "grants": ["box one"], "secret_version": 2}
    assert expected == {name: said[0][name] for name in expected}
    assert {"type": "header", "name": "x-api-key", "before": ""} == said[1]["credential"]
    assert "revoked" in herdbook(home, "gateway", "revoke", "github")
    herdbook(home, "gateway", "rm", "llm")
    everything = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert not any(secret in everything for secret in (SECRET.encode(), b"another-secret", b"rotated-0123"))


@pytest.mark.parametrize(
    "words, exits, says",
    [
        (["add", "github"], 2, "--to"),
        (["add"], 2, "name of a connection"),
        (["add", "github", "--to", "http://api.github.com"], 1, "https"),
        (["add", "github", "--to", "https://127.0.0.1"], 1, "this machine"),
        (["add", "Git Hub", "--to", "https://a.example"], 1, "small letters"),
        (["add", "github", "--to", "https://a.example", "--allow", "everything"], 1, "METHOD"),
        (["grant", "github"], 2, "--label"),
        (["grant", "github", "--label", "ci"], 4, "gateway ls"),
        (["rotate", "github"], 4, "gateway ls"),
        (["rules", "github"], 2, "--allow"),
        (["frobnicate"], 2, "serve"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(herdbook: Command, tmp_path: Path, words: list[str], exits: int, says: str) -> None:
    """An operator would be left with a traceback, or with half a connection."""
    said = herdbook(tmp_path, "gateway", *words, secret=SECRET, exits=exits)
    assert says in said
    assert "Traceback" not in said
    assert SECRET not in said


def test_the_served_gateway_lets_in_whom_it_should(tmp_path: Path, upstream: Upstream) -> None:
    """The command would serve something else than what is tested in one process."""
    upstream.answers["/echo"] = whole(SECRET.encode(), headers=f"X-Echo: {SECRET}\r\n".encode())
    world = World(tmp_path)
    file = tmp_path / "connector"
    file.write_text(CONNECTOR)
    try:
        world.connect("github", upstream.url)
        token = world.token(world.box("one"), connections=["github"])
        with served(tmp_path, "--connector-key-file", str(file), HERDBOOK_KEY=KEY) as (address, said):
            reply = asked(address, "GET", "/v1/gateway/github/echo", None, {"Authorization": f"Bearer {token}"})
            assert (200, b"*" * len(SECRET)) == (reply.status, reply.body)
            assert 401 == asked(address, "GET", "/v1/gateway/github/echo", None, {}).status
            assert 200 == asked(address, "GET", "/healthz", None, {}).status
            assert 404 == asked(address, "GET", "/v1/brief", None, {"Authorization": f"Bearer {token}"}).status
            metrics = [asked(address, "GET", "/metrics", None, {"Authorization": f"Bearer {key}"}) for key in (token, KEY)]
            assert [401, 200] == [each.status for each in metrics]
            assert b'herdbook_gateway_calls_total{connection="github",status="2xx"} 1\n' in metrics[1].body
            assert b'herdbook_gateway_refused_total{code="unauthorized"} 2\n' in metrics[1].body
            assert b"herdbook_gateway_redacted_total 2\n" in metrics[1].body
        assert not any(word in text for text in said for word in (SECRET, token, KEY))
    finally:
        world.close()


def test_a_providers_own_gateway_is_believed_as_far_as_it_goes(world: World, upstream: Upstream) -> None:
    """Boxes of a provider with its own gateway could call nothing, or a stolen connector key would open every box's grants."""
    world.connect("github", upstream.url)
    world.box("local")
    row = {"box": "sprite-1", "provider": "sprites", "isolation": "microvm", "label": "ci", "owner": "o", "lease_seconds": 100}
    world.as_host("box_open", {**row, "claim": digest_of("mine")})
    world.as_host("box_open", {**row, "box": "sprite-2", "claim": digest_of("theirs")})
    state = world.app.open_state(connector=CONNECTOR)
    world.listener.state.update(state)

    def call(before: str, **headers: str) -> tuple[int, str | None]:
        reply = world.ask_outside("GET", f"{before}/v1/gateway/github/x", **headers)
        return reply.status, code(reply) if reply.status != 200 else None

    key = f"Bearer {CONNECTOR}"
    assert (200, None) == call("/boxes/sprite-1~mine", Authorization=key)
    assert ("sprite-1", "asserted") == (world.audit()[-1]["box"], world.audit()[-1]["via"])
    for box in (
        "local",
        "none",
        "",
        "x" * 200,
        "sprite-1%20~mine",
        "sprite-1",
        "sprite-1~",
        "sprite-2~mine",
        "local~mine",
        "~mine",
    ):
        assert (401, "unauthorized") == call(f"/boxes/{box}", Authorization=key), box
    assert (401, "unauthorized") == call("", Authorization=key)
    assert (401, "unauthorized") == call("/boxes/sprite-1~mine", Authorization=key + "x")
    assert (401, "unauthorized") == call("/boxes/sprite-1~mine")
    token = world.token("sprite-1", connections=["*"])
    assert (401, "unauthorized") == call("/boxes/sprite-1~mine", Authorization=f"Bearer {token}")
    assert 1 == len(upstream.asked)
    assert not any(name.startswith("x-herdbook") for name, _ in upstream.asked[0].headers)
