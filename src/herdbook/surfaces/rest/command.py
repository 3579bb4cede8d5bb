"""What `herdbook serve` runs: bind, say where, serve until a signal, then finish what was accepted.

It refuses to listen where other machines can reach it unless there is a key, its own or one in the record. Standard output gets
one line, once requests are taken; everything else goes to standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import socket
import sys
from pathlib import Path

from herdbook.base.errors import Forbidden
from herdbook.base.http_edge import Edge
from herdbook.base.http_serve import bind_tcp, bind_unix, serve, url_of
from herdbook.service.access.keys import keys_exist
from herdbook.service.door import Service
from herdbook.surfaces.rest.app import Mount, RestApp
from herdbook.surfaces.rest.auth import SERVE, check_bind, check_key, door, read_key
from herdbook.surfaces.rest.log_lines import FORMATS, start_logging
from herdbook.surfaces.rest.pages import MakeWeb
from herdbook.surfaces.rest.spans import request_spans

HOST = "127.0.0.1"
PORT = 8765
LEVELS = ("error", "warning", "info", "debug")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `herdbook serve`."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--host", default=HOST, help=f"the address to listen on (default {HOST}; any but this machine's own needs a key)"
    )
    where.add_argument("--unix", metavar="PATH", help="listen on a unix socket that only you may open, instead of on an address")
    parser.add_argument("--port", type=int, default=PORT, help=f"the port to listen on (default {PORT}; 0 takes a free one)")
    parser.add_argument(
        "--key-file", type=Path, metavar="PATH", help="a file with the key that callers must send (or set HERDBOOK_KEY)"
    )
    parser.add_argument(
        "--log-level", choices=LEVELS, default="warning", help="what to say on standard error; `info` has a line for each request"
    )
    parser.add_argument("--log-format", choices=FORMATS, default="text", help="how to say it; `json` is one object a line")


def run(
    args: argparse.Namespace,
    service: Service,
    *,
    key: str | None,
    identity: str,
    mcp: Mount | None = None,
    web: MakeWeb | None = None,
    upstreams: Path | None = None,
) -> int:
    """Serve until SIGTERM or SIGINT. The service stays open: whoever opened it closes it."""
    start_logging(sys.stderr, level=args.log_level, form=args.log_format)
    again = as_typed(args)
    key = read_key(args.key_file, serve=again) if args.key_file else key
    if key is not None:
        check_key(key, serve=again)
    keyed = key is not None or keys_exist(service)
    sock = bind_unix(args.unix) if args.unix is not None else bind_guarded(args.host, args.port, keyed=keyed, serve=again)
    app = RestApp(service, mcp=mcp, web=web, upstreams=upstreams, spans=request_spans(os.environ))
    edge = Edge(app, on_refusal=app.metrics.refused)
    state = {"door": door(service, key, identity=identity, on_unix=args.unix is not None)}
    serve(edge, sock, state=state, on_ready=lambda: print(ready(url_of(sock), args), flush=True), on_stop=app.close)
    return 0


def ready(url: str, args: argparse.Namespace) -> str:
    """The one line of standard output."""
    return json.dumps({"url": url}) if getattr(args, "json", False) else f"serving on {url}"


def as_typed(args: argparse.Namespace) -> str:
    """The command that serves where this one was to serve, without its key."""
    given = {"--record": getattr(args, "record", None), "--unix": args.unix}
    given |= {} if args.unix is not None else {"--host": args.host, "--port": args.port}
    usual = {"--host": HOST, "--port": PORT}
    said = [word for name, value in given.items() if value not in (None, usual.get(name)) for word in (name, str(value))]
    return shlex.join([*SERVE.split(), *said])


def bind_guarded(host: str, port: int, *, keyed: bool, serve: str = SERVE) -> socket.socket:
    """Bind, but not to a network without a key. The address is checked as it was resolved, whatever its spelling."""
    sock = bind_tcp(host, port)
    try:
        check_bind(sock.getsockname()[0], keyed=keyed, serve=serve)
    except Forbidden:
        sock.close()
        raise
    return sock
