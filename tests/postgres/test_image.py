"""The image and the compose file, built and run on a real Docker engine: what whoever deploys it will type, before they do."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from herdbook.boxes.engine import Engine
from herdbook.testing.boxes import eventually
from tests.boxes import engines
from tests.postgres import images
from tests.tidy import tree

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
IMAGE = "herdbook-test-server:latest"
OVERRIDE = """
services:
  db:
    image: {postgres}
    networks: {{default: {{ipv4_address: 10.213.77.2}}}}
  migrate: {{extra_hosts: ["db:10.213.77.2"], build: {{network: none}}}}
  server: {{extra_hosts: ["db:10.213.77.2"], build: {{network: none}}}}
networks:
  default: {{ipam: {{config: [{{subnet: 10.213.77.0/24}}]}}}}
"""  # names are answered by an engine that may change the host's firewall, which this one must not


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    reason = engines.missing()
    if reason:
        pytest.skip(f"cannot run here: {reason}")
    with engines.docker() as running:
        images.make(running, tmp_path_factory.mktemp("images"), images.environment_of(running))
        yield running


@pytest.fixture(scope="module")
def docker(engine: Engine) -> dict[str, str]:
    """What Docker's own commands need to find it."""
    return images.environment_of(engine)


def said(command: list[str], env: dict[str, str]) -> str:
    done = subprocess.run(command, env=env, cwd=tree.ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def test_the_image_is_built_and_answers(docker: dict[str, str]) -> None:
    """Nobody would have tried it before whoever needs it."""
    build = ["docker", "build", "-q", "--network=none", "--build-arg", f"BASE={images.BASE}", "-f", "deploy/Dockerfile"]
    said([*build, "-t", IMAGE, "."], docker)
    inside = ["docker", "run", "--rm", "--network=none", IMAGE]
    assert said([*inside, "herdbook", "--version"], docker).startswith("herdbook ")
    assert "10001" == said([*inside, "id", "-u"], docker).strip()
    written = "import herdbook; b = herdbook.open(); b.write('a', 'k', 1, why='w'); print(b.read('a', 'k')['value'])"
    assert "1" == said([*inside, "python", "-c", written], docker).strip()


def secret_files(folder: Path) -> None:
    """As docs/how-to/run-on-postgresql.md has them made."""
    admin, server = secrets.token_hex(16), r"a\:b" + secrets.token_hex(8)  # a colon is written with a stroke before it
    texts = {
        "db_admin": admin,
        "db_admin_login": f"db:5432:herdbook:postgres:{admin}",
        "db_login": f"db:5432:herdbook:herdbook_server:{server}",
        "seal_key": secrets.token_hex(32),
        "server_key": secrets.token_hex(32),
    }
    folder.mkdir()
    for name, text in texts.items():
        file = folder / name
        file.write_text(f"{text}\n")
        file.chmod(0o600)
        os.chown(file, 999 if name == "db_admin" else 10001, -1)


def test_the_compose_file_brings_up_a_server(docker: dict[str, str], tmp_path: Path) -> None:
    """A company's first `up` would end in a login that nobody made, or a key that nobody may read."""
    folder = tmp_path / "deploy"
    folder.mkdir()
    text = (tree.ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")
    (folder / "compose.yaml").write_text(text.replace("context: ..", f"context: {tree.ROOT}"))
    (folder / "override.yaml").write_text(OVERRIDE.format(postgres=images.POSTGRES))
    secret_files(folder / "secrets")
    env = docker | {"BASE": images.BASE, "PORT": "0", "COMPOSE_PROJECT_NAME": "herdbooktest"}
    compose = [*images.compose_command(), "-f", str(folder / "compose.yaml")]
    said([*compose, "config", "-q"], env)
    compose += ["-f", str(folder / "override.yaml")]
    try:
        said([*compose, "up", "-d", "--build"], env)
        address = said([*compose, "port", "server", "8765"], env).strip()
        eventually(lambda: answers(f"http://{address}/readyz"), what="the server answers")
        key = (folder / "secrets" / "server_key").read_text().strip()
        entry = {"entity": "acme", "key": "k", "value": 1, "why": "w", "request_id": "r"}
        assert 1 == ask(address, "write", entry, key)["version"]
        said([*compose, "restart", "server"], env)
        address = said([*compose, "port", "server", "8765"], env).strip()
        eventually(lambda: answers(f"http://{address}/readyz"), what="the server answers again")
        assert 1 == ask(address, "read", {"entity": "acme", "key": "k"}, key)["value"]
        told = json.loads(said([*compose, "exec", "-T", "server", "herdbook", "doctor", "--no-box", "--json"], env))
        assert [] == [each["what"] for each in told["findings"] if not each["ok"] and "tenant" in each["what"]]
        logs = said([*compose, "logs", "--no-color"], env)
        assert not any(each.read_text().strip().rpartition(":")[2] in logs for each in (folder / "secrets").iterdir())
    finally:
        subprocess.run([*compose, "logs", "--no-color", "--tail=40"], env=env, cwd=tree.ROOT, check=False)
        subprocess.run([*compose, "down", "-v", "-t", "5"], env=env, cwd=tree.ROOT, check=False)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def ask(address: str, verb: str, fields: dict[str, object], key: str) -> dict[str, object]:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    request = urllib.request.Request(f"http://{address}/v1/{verb}", json.dumps(fields).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        found: dict[str, object] = json.loads(answer.read())
    return found
