"""Providers that work here, or a failure that says how to get one: bubblewrap on any Linux, a container engine as root."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from herdbook.boxes.bubblewrap import Bubblewrap
from herdbook.boxes.containers import Containers
from herdbook.boxes.engine import Engine
from herdbook.boxes.sprites import Sprites
from tests.boxes import engines

if TYPE_CHECKING:
    from tests.boxes.sprites_server import SpritesServer  # a web server, which the tests as a plain user do without


@pytest.fixture(scope="session")
def bubblewrap_works(tmp_path_factory: pytest.TempPathFactory) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("cannot run here: bubblewrap boxes need Linux")
    finding = Bubblewrap(tmp_path_factory.mktemp("probe")).probe()
    if not finding.ok:
        pytest.fail(f"{finding.what}. Fix: {finding.fix}", pytrace=False)


@pytest.fixture
def bubblewrap(bubblewrap_works: None, tmp_path: Path) -> Bubblewrap:
    return Bubblewrap(tmp_path / "boxes")


@pytest.fixture(scope="session")
def docker_engine(engine_can_run: None) -> Iterator[Engine]:
    with engines.docker() as engine:
        yield engine


@pytest.fixture(scope="session")
def podman_engine(engine_can_run: None) -> Iterator[Engine]:
    with engines.podman() as engine:
        yield engine


@pytest.fixture(scope="session")
def engine_can_run() -> None:
    reason = engines.missing()
    if reason:
        pytest.skip(f"cannot run here: {reason}")


@pytest.fixture
def docker(docker_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Containers:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{docker_engine.socket}")
    monkeypatch.setenv("HERDBOOK_BOX_IMAGE", engines.IMAGE)
    return Containers(tmp_path / "docker")


@pytest.fixture
def podman(podman_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Containers:
    monkeypatch.setenv("CONTAINER_HOST", f"unix://{podman_engine.socket}")
    monkeypatch.setenv("HERDBOOK_BOX_IMAGE", engines.IMAGE)
    return Containers(tmp_path / "podman", name="podman")


@pytest.fixture(scope="session")
def sprites_served(bubblewrap_works: None) -> Iterator[SpritesServer]:
    from tests.boxes.sprites_server import sprites

    with sprites() as server:
        yield server


@pytest.fixture
def sprites(sprites_served: SpritesServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sprites:
    from tests.boxes.sprites_server import TOKEN

    monkeypatch.setenv("HERDBOOK_SPRITES_URL", sprites_served.url)
    monkeypatch.setenv("HERDBOOK_SPRITES_CONNECTOR_ID", "conn-1")
    monkeypatch.setenv("SPRITES_TOKEN", TOKEN)
    return Sprites(tmp_path / "sprites")
