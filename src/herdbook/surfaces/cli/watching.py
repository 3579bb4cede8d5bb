"""What the acts of `herdbook watch` do that run for long: the dispatcher, with the record behind it."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from herdbook.base.clock import SystemClock
from herdbook.base.errors import InvalidRequest
from herdbook.client import Client
from herdbook.surfaces.cli.invocation import Invocation

if TYPE_CHECKING:
    from herdbook.watch.config import Config


def serve(invocation: Invocation) -> int:
    """Take hooks until a signal; what was accepted is a job before the process ends."""
    from herdbook.base.http_edge import Edge, EdgeLimits
    from herdbook.base.http_serve import bind_tcp
    from herdbook.base.http_serve import serve as serve_until_signalled
    from herdbook.watch.config import load
    from herdbook.watch.dispatch import BODY_BYTES_MAX, Dispatch
    from herdbook.watch.queue import RecordQueue

    args = invocation.args
    logging.basicConfig(stream=sys.stderr, level="WARNING", format="%(asctime)s %(levelname)s %(name)s %(message)s")
    config = load(args.config)
    secrets = secrets_of(config, os.environ)
    book = Client(invocation.opened(), session="")
    app = Dispatch(config, book, RecordQueue(book), secrets=secrets, clock=SystemClock())
    sock = bind_tcp(args.host, args.port)
    host, port = sock.getsockname()[:2]
    url = f"http://{host}:{port}"
    line = json.dumps({"url": url}) if args.json else f"taking hooks on {url}"
    edge = Edge(app, limits=EdgeLimits(body_bytes=BODY_BYTES_MAX))
    serve_until_signalled(edge, sock, state={}, on_ready=lambda: print(line, flush=True), on_stop=app.close)
    return 0


def secrets_of(config: Config, environ: Mapping[str, str]) -> dict[str, bytes]:
    """Each hook's secret out of its variable. One that is named and not set is refused: it would be a hook that nobody guards."""
    missing = [f"{variable} (for {hook})" for hook, variable in config.hooks.items() if not environ.get(variable)]
    if missing:
        raise InvalidRequest(f"the secret {missing[0]} is not set: set it, or take the hook out of watch.toml")
    if not config.hooks:
        raise InvalidRequest("watch.toml sets up no hook: name at least one under [hooks]")
    return {hook: environ[variable].encode(errors="surrogateescape") for hook, variable in config.hooks.items()}
