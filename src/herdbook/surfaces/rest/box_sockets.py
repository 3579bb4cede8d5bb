"""One unix socket for each box: which socket a request came by says which box is asking, so a box carries no credential.

All sockets are served by one event loop on one thread, whatever the number of boxes. Each is a file that only its owner may
open, in a directory that only its owner may enter, and the host binds that one file into the box. The directory is a short one
below XDG_RUNTIME_DIR or the temporary directory, because the system takes at most 107 bytes for the path of a socket, which a
path inside a project or a test's own directory easily exceeds.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.types import Receive, Scope, Send

from herdbook.base.http_edge import Edge, EdgeLimits, Listener
from herdbook.base.http_serve import LoopThread, bind_unix
from herdbook.base.limits import GATEWAY_BODY_BYTES_MAX
from herdbook.base.text import identifier
from herdbook.service.callers import DEFAULT_TENANT, Caller, box_caller
from herdbook.service.door import Service
from herdbook.surfaces.rest.app import RestApp
from herdbook.surfaces.rest.auth import BoxDoor

if TYPE_CHECKING:
    from herdbook.gateway.app import GatewayApp

    GatewayFor = Callable[[Callable[[str, dict[str, Any]], dict[str, Any]]], GatewayApp]  # from what asks the record for boxes

GATEWAY = b"/v1/gateway/"

# One box must not use up the descriptors of all, and one that is being destroyed has nothing left to say.
BOX_LIMITS = EdgeLimits(connections=32, stop_seconds=5)


class BoxSockets:
    """Serves the record to boxes. `close` commits what was accepted and removes what was made."""

    def __init__(
        self,
        service: Service,
        *,
        tenant: int = DEFAULT_TENANT,
        identity: str,
        directory: Path | None = None,
        limits: EdgeLimits | None = None,
        gateway: GatewayFor | None = None,
    ) -> None:
        self.tenant, self.identity = tenant, identity
        self.made = None if directory else short_directory()
        self.directory = directory or Path(self.made or "")
        self.app = RestApp(service)
        host = Caller(tenant, identity, frozenset({"host"}), channel="rest")
        self.gateway = gateway(lambda verb, fields: dict(service.perform(host, verb, fields))) if gateway else None
        app = Both(self.app, self.gateway) if self.gateway else self.app
        allowed = limits or BOX_LIMITS
        if self.gateway:
            allowed = replace(allowed, wide_below=GATEWAY, wide_body_bytes=GATEWAY_BODY_BYTES_MAX)
        self.edge = Edge(app, limits=allowed, on_refusal=self.app.metrics.refused)
        self.thread = LoopThread("herdbook-boxes")
        self.listeners: dict[Path, Listener] = {}
        self.lock = threading.Lock()
        self.closed = False

    def open(self, box: str) -> tuple[Path, Callable[[], None]]:
        """A socket for this box, and what closes it. Closing answers what was accepted, and may be done twice."""
        door = BoxDoor(box_caller(identifier(box, what="box id"), identity=self.identity, tenant=self.tenant))
        # A digest, since a box may be called anything; of its name, so that a kept box finds the record where it was.
        path = self.directory / f"{sha256(box.encode()).hexdigest()[:16]}.sock"
        state = {"door": door, **(self.gateway.socket_state(box) if self.gateway else {})}
        listener = self.thread.call(self.edge.listen(bind_unix(str(path)), state=state))
        with self.lock:
            self.listeners[path] = listener
        return path, partial(self.shut, path)

    def shut(self, path: Path) -> None:
        with self.lock:
            listener = self.listeners.pop(path, None)
        if listener is not None:
            self.thread.call(listener.close())

    def close(self) -> None:
        with self.lock:
            closed, self.closed = self.closed, True
        if closed:
            return
        for path in list(self.listeners):
            self.shut(path)
        self.thread.call(self.app.close())
        if self.gateway:
            self.thread.call(self.gateway.close())
        self.thread.stop()
        if self.made:
            shutil.rmtree(self.made, ignore_errors=True)


class Both:
    """The record and the gateway at one address: a box needs to know no more than its one socket."""

    def __init__(self, record: RestApp, gateway: GatewayApp) -> None:
        self.record, self.gateway = record, gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        for_gateway = (scope["raw_path"] + b"/").startswith(GATEWAY)
        await (self.gateway if for_gateway else self.record)(scope, receive, send)


def short_directory() -> str:
    """A fresh directory with mode 0700 and a short name."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    usable = runtime.startswith("/") and len(os.fsencode(runtime)) < 60 and os.access(runtime, os.W_OK | os.X_OK)
    parent = runtime if usable else short_temporary()
    return tempfile.mkdtemp(prefix="herdbook-", dir=parent)


def short_temporary() -> str:
    """The temporary directory, unless its own name is too long for sockets below it."""
    chosen = tempfile.gettempdir()
    return chosen if len(os.fsencode(chosen)) < 60 else str(Path("/") / "tmp")
