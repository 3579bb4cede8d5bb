"""A record in a temporary folder, and a server over it, for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from herdbook.service.door import Service
from tests.rest.serving import Server, open_service, serving


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    opened = open_service(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def server(service: Service) -> Iterator[Server]:
    """Without a key, on loopback."""
    with serving(service) as running:
        yield running
