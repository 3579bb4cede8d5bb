"""A real server, and the official SDK with its official exporter before it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from herdbook.service.door import Service
from tests.cli.conftest import herdbook, said
from tests.rest.serving import KEY, Server, open_service, serving

__all__ = ["herdbook", "said"]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    found = open_service(tmp_path)
    yield found
    found.close()


@pytest.fixture
def server(service: Service) -> Iterator[Server]:
    with serving(service, key=KEY) as found:
        yield found


def url(server: Server) -> str:
    return f"http://127.0.0.1:{server.address[1]}"


def value(of: Any) -> dict[str, Any]:
    """A value as OTLP has it in JSON."""
    if isinstance(of, bool):
        return {"boolValue": of}
    if isinstance(of, int):
        return {"intValue": str(of)}
    if isinstance(of, list):
        return {"arrayValue": {"values": [value(each) for each in of]}}
    if isinstance(of, dict):
        return {"kvlistValue": {"values": attributes(of)}}
    return {"stringValue": of}


def attributes(of: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value(each)} for key, each in of.items()]


def span(number: int, *, trace: str = "a" * 32, failed: str | None = None, **more: Any) -> dict[str, Any]:
    """A span with these attributes; a name's dots are written as two underscores."""
    found: dict[str, Any] = {"traceId": trace, "spanId": f"{number:016x}", "name": "n", "startTimeUnixNano": str(10**18 + number)}
    found["attributes"] = attributes({name.replace("__", "."): each for name, each in more.items()})
    return found | ({"status": {"code": 2, "message": failed}} if failed else {})


def tool(number: int, name: str = "bash", **more: Any) -> dict[str, Any]:
    return span(number, gen_ai__operation__name="execute_tool", gen_ai__tool__name=name, **more)


def batch(*spans: Any, **resource: Any) -> list[Any]:
    about = attributes({name.replace("__", "."): each for name, each in resource.items()})
    return [{"resource": {"attributes": about}, "scopeSpans": [{"scope": {}, "spans": list(spans)}]}]
