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

# What one real run of the contract has to show wherever it is slow; the rest of it is then for the long tier. Bubblewrap has all.
ESSENTIAL = frozenset(
    (
        "test_a_new_box_is_empty_and_says_what_it_is",
        "test_a_put_file_arrives_whole",
        "test_a_link_left_in_the_box_is_not_followed_out_of_it",
        "test_output_comes_as_it_is_written_and_streams_stay_apart",
        "test_the_environment_is_only_what_was_given",
        "test_a_timeout_ends_the_whole_tree",
        "test_destroying_is_final_and_idempotent",
        "test_boxes_are_listed_by_label",
    )
)
SLOW_PROVIDERS = ("TestDocker", "TestSprites", "TestUnsafeProcess")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Providers that cost most run what is essential here, and all of the contract in the long tier."""
    owner = getattr(item, "cls", None)
    if owner is not None and owner.__name__ in SLOW_PROVIDERS and getattr(item, "originalname", "") not in ESSENTIAL:
        item.add_marker(pytest.mark.long)


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


@pytest.fixture(params=["docker", pytest.param("podman", marks=pytest.mark.long)])
def containers(request: pytest.FixtureRequest) -> Containers:
    """Each engine in turn."""
    provider: Containers = request.getfixturevalue(request.param)
    return provider


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
