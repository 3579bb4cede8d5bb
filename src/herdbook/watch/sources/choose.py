"""From a service's settings to its source: in the box, or on the host for what only a host can read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from herdbook.watch.sources.cloud_run import CloudRunSource
from herdbook.watch.sources.docker import DockerSource
from herdbook.watch.sources.file import FileSource
from herdbook.watch.sources.journald import JournaldSource
from herdbook.watch.sources.kubernetes import KubernetesSource
from herdbook.watch.sources.loki import LokiSource
from herdbook.watch.sources.protocol import Source, Unreadable
from herdbook.watch.sources.web import Web

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ON_HOST: dict[str, Callable[[Mapping[str, str]], Source]] = {
    "file": FileSource,
    "journald": JournaldSource,
    "docker": DockerSource,
}


def on_host(kind: str, options: Mapping[str, str]) -> Source | None:
    """The source that the host reads and feeds into the box; None for one that a box reads by itself."""
    try:
        return ON_HOST[kind](options) if kind in ON_HOST else None
    except KeyError as missing:
        raise Unreadable(f"a {kind} source needs the line {missing} in watch.toml") from missing


def in_box(kind: str, options: Mapping[str, str], gateway: str, fed: str) -> Source:
    """The source as the actor reads it: through the gateway, or from what its host feeds."""
    if kind in ON_HOST:
        named = {"path": f"{fed}.jsonl", "state": f"{fed}.state.json", "trouble": f"{fed}.trouble.txt"}
        return FileSource({**named, "begins": "first line"})
    try:
        if kind == "loki":
            return LokiSource(Web(gateway + options["connection"]), options)
        if kind == "kubernetes":
            return KubernetesSource(Web(gateway + options["connection"]), options)
        return CloudRunSource(Web(gateway + options["run"]), Web(gateway + options["logging"]), options)
    except KeyError as missing:
        raise Unreadable(f"a {kind} source needs the line {missing} in watch.toml") from missing
