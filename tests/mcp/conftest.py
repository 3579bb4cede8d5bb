"""A real server with the tools at /mcp, and a home for those that open the file themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from herdbook.surfaces.mcp.http import McpOverHttp
from tests.cli.conftest import process
from tests.rest.serving import KEY, Server, open_service, serving

__all__ = ["process"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server whose key may do everything, on the record that `home` has."""
    service = open_service(tmp_path)
    with serving(service, key=KEY, mcp=McpOverHttp) as served:
        yield served
    service.close()


@pytest.fixture
def url(server: Server) -> str:
    return f"http://127.0.0.1:{server.address[1]}"
