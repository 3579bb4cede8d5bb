"""What makes boxes and the record meet: the composition root's part that commands and tests share.

A box's socket is opened here, so that the rooms for boxes and for the record need not know one another.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from herdbook.base import settings
from herdbook.base.errors import ExtraMissing

if TYPE_CHECKING:
    from herdbook.boxes.fanout import Tell
    from herdbook.client import Client
    from herdbook.service.door import Service
    from herdbook.surfaces.rest.box_sockets import GatewayFor


class BoxWiring:
    """The record in this process, and a socket to it for each box."""

    def __init__(self, chosen: settings.Settings) -> None:
        self.settings = chosen
        self.boxes_dir = chosen.boxes
        self.closers: list[Callable[[], None]] = []

    @cached_property
    def service(self) -> Service:
        from herdbook.service.opening import open_service

        service = open_service(self.settings)
        self.closers.append(service.close)
        return service

    @cached_property
    def gateway(self) -> GatewayFor | None:
        """What makes the gateway's part of a box's socket, where somebody has set up connections."""
        if not self.settings.gateway.is_dir():
            return None
        try:
            from herdbook.gateway.opening import open_app
        except ModuleNotFoundError as problem:  # there are connections, so boxes would miss them
            raise ExtraMissing.of("gateway", what=f"the package {problem.name}") from problem
        return lambda call: open_app(self.settings, call)

    def open_record(self) -> Client:
        """With its operator's scopes, and outside of any run."""
        from herdbook.client import Client
        from herdbook.service.callers import local_caller
        from herdbook.service.local import LocalTransport
        from herdbook.service.opening import local_identity

        return Client(LocalTransport(self.service, local_caller(local_identity(), channel="cli")), session="")

    def open_socket(self, box: str) -> tuple[str, Callable[[], None]]:
        """A directory of its own for each box, named after it, so that a kept box finds the record where it was before."""
        from herdbook.boxes.directory import private_directory
        from herdbook.service.opening import local_identity
        from herdbook.surfaces.rest.box_sockets import BoxSockets, short_temporary

        ours = private_directory(Path(short_temporary()) / f"herdbook-{os.getuid()}-{short_digest(str(self.boxes_dir))}")
        place = private_directory(ours / short_digest(box))
        sockets = BoxSockets(self.service, identity=local_identity(), directory=place, gateway=self.gateway)
        path, _ = sockets.open(box)

        def close() -> None:
            sockets.close()
            for left in (place, ours):
                with suppress(OSError):  # because other boxes of ours may still have their sockets there
                    left.rmdir()

        self.closers.append(close)
        return str(path), close

    def as_box(self, box: str, session: str | None = None) -> Tell:
        """What tells the record something in the name of this box, as whoever began that session there."""
        from herdbook.service.callers import DEFAULT_TENANT, box_caller
        from herdbook.service.drafting import teller
        from herdbook.service.opening import local_identity

        begun = None if session is None else self.service.record.session(DEFAULT_TENANT, session)
        if begun is not None and begun.box == box:
            return partial(self.service.perform, teller(DEFAULT_TENANT, box, begun.identity, begun.channel, begun.reach))
        return partial(self.service.perform, box_caller(box, identity=local_identity()))

    def close(self) -> None:
        """What was opened last goes first: the sockets before the record they answer from."""
        while self.closers:
            self.closers.pop()()


def short_digest(text: str) -> str:
    return sha256(text.encode(errors="surrogateescape")).hexdigest()[:10]
