"""Every provider keeps the one contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from herdbook.boxes.bubblewrap import Bubblewrap
from herdbook.boxes.containers import Containers
from herdbook.boxes.provider import Provider
from herdbook.boxes.sprites import Sprites
from herdbook.boxes.unsafe_process import UnsafeProcess
from herdbook.testing.boxes import BoxContract


class TestBubblewrap(BoxContract):
    @pytest.fixture
    def provider(self, bubblewrap: Bubblewrap) -> Provider:
        return bubblewrap


@pytest.mark.slow
class TestDocker(BoxContract):
    @pytest.fixture
    def provider(self, docker: Containers) -> Provider:
        return docker


@pytest.mark.long
class TestPodman(BoxContract):
    @pytest.fixture
    def provider(self, podman: Containers) -> Provider:
        return podman


@pytest.mark.slow
class TestSprites(BoxContract):
    """The real package against a small local server with the documented interface."""

    @pytest.fixture
    def provider(self, sprites: Sprites) -> Provider:
        return sprites


class TestUnsafeProcess(BoxContract):
    @pytest.fixture
    def provider(self, tmp_path: Path) -> Provider:
        return UnsafeProcess(tmp_path / "boxes")
