"""A container's logs and state, from the Docker Engine's own HTTP API over its socket, on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from herdbook.watch.findings import Line, RevisionState
from herdbook.watch.sources.moments import seconds_of
from herdbook.watch.sources.protocol import Page, Unreadable, page_of
from herdbook.watch.sources.web import Web, segment

if TYPE_CHECKING:
    from collections.abc import Mapping

HEADER_BYTES = 8  # of each frame, where the container has no terminal: stream, three zeros, length


class DockerSource:
    """`container`, and `docker` where the engine is not at its usual socket. A cursor is the last line's time."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.container = segment(options["container"])
        self.web = Web(options.get("docker", "unix:/var/run/docker.sock"))

    def tail(self, service: str, since: str) -> Page:
        query = {"stdout": "1", "stderr": "1", "timestamps": "1", "since": f"{float(since):.9f}"}
        status, data = self.web.ask("GET", f"/containers/{self.container}/logs", query=query)
        if status != 200:
            raise Unreadable(f"docker answered {status} for the logs of {service}")
        told = [text.partition(" ") for text in unframed(data).decode("utf-8", "replace").split("\n") if text]
        lines = [Line(text, seconds_of(when)) for when, _, text in told]
        fresh = [line for line in lines if line.at > float(since)]  # `since` includes its own moment
        return page_of(fresh, since)

    def revision_state(self, service: str) -> RevisionState:
        found = self.web.json("GET", f"/containers/{self.container}/json")
        state = found.get("State") or {}
        health = (state.get("Health") or {}).get("Status")
        running = bool(state.get("Running"))
        ready = None if health == "starting" and running else running and health != "unhealthy"
        image = str(found.get("Image", ""))[:19]
        detail = f"{state.get('Status', '')}, exit code {state.get('ExitCode')}, restarts {found.get('RestartCount', 0)}"
        return RevisionState(serving=image if ready else "", newest=image, newest_ready=ready, detail=detail)


def unframed(data: bytes) -> bytes:
    """The streams as one; what has no frames, from a container with a terminal, as it is."""
    if data[:1] not in (b"\0", b"\1", b"\2") or data[1:4] != b"\0\0\0":
        return data
    parts, at = [], 0
    while at + HEADER_BYTES <= len(data):
        length = int.from_bytes(data[at + 4 : at + HEADER_BYTES], "big")
        parts.append(data[at + HEADER_BYTES : at + HEADER_BYTES + length])
        at += HEADER_BYTES + length
    return b"".join(parts)
