"""What `herdbook mcp` runs: the tools over standard input and output, for an agent that starts it as its own.

Nothing but the protocol goes to standard output. The process is one connection, and so one run, which ends with it.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
from pathlib import Path
from typing import Any, Final, Protocol

from herdbook.base import current_run, limits
from herdbook.base.errors import ExtraMissing, InvalidRequest
from herdbook.base.ids import new_name

PREFIX: Final = re.compile(r"[A-Za-z0-9_-]{0,24}")
EXAMPLES: Final = """\
example:
  $ claude mcp add herdbook -- herdbook mcp --entity acme/checkout    # or: herdbook connect claude-code
  $ herdbook mcp --prefix amfs_                                       # tools named amfs_search, amfs_read, ...

It speaks until its standard input ends. A server offers the same tools at /mcp: herdbook serve."""


class Door(Protocol):
    """What answers verbs: the record in this process, or a server."""

    def call(self, verb: str, fields: dict[str, Any]) -> dict[str, Any]: ...


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "The verbs as tools of the Model Context Protocol, over standard input and output. Needs: pip install 'herdbook[mcp]'"
    )
    parser.add_argument("--entity", metavar="PATH", help="the path that a call without one is about")
    parser.add_argument("--prefix", metavar="TEXT", default="", help="put this before each tool's name")
    parser.add_argument("--tokens", metavar="N", type=int, default=2000, help="how long an answer may be (2000)")


def run(args: argparse.Namespace, door: Door, *, agent: str | None, session: str | None, home: Path) -> int:
    """Serve this process's standard input and output until they end. Its run is the one a hook has begun here, if any."""
    if not PREFIX.fullmatch(args.prefix):
        raise InvalidRequest(f"the prefix {args.prefix[:40]!r} is not part of a tool's name: use letters, digits, _ and -")
    if not limits.BRIEFING_TOKENS_MIN <= args.tokens <= limits.BRIEFING_TOKENS_MAX:
        raise InvalidRequest(f"--tokens is from {limits.BRIEFING_TOKENS_MIN} to {limits.BRIEFING_TOKENS_MAX}")
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    needed()
    import anyio

    from herdbook.surfaces.mcp.server import Options

    options = Options(prefix=args.prefix, entity=args.entity, agent=agent, tokens_max=args.tokens)
    anyio.run(serve, options, door, session, home)
    return 0


def needed() -> None:
    """The SDK, or what to install."""
    import importlib.util

    if importlib.util.find_spec("mcp") is None or importlib.util.find_spec("mcp_types") is None:
        raise ExtraMissing.of("mcp", what="the Model Context Protocol's SDK")


async def serve(options: Any, door: Door, session: str | None, home: Path) -> None:
    """One connection. Its run ends with it, unless somebody else has begun it and so has yet to end it."""
    import anyio.to_thread
    from mcp.server.stdio import stdio_server

    from herdbook.surfaces.mcp.runs import Asker
    from herdbook.surfaces.mcp.server import build

    own, folder = new_name("s"), os.getcwd()

    async def call(verb: str, fields: dict[str, Any]) -> dict[str, Any]:
        return await anyio.to_thread.run_sync(door.call, verb, fields)

    def connected(context: object) -> str:
        """Asked for each call: an agent may start its tools before the hook that begins its run."""
        return session or str(current_run.current(home, folder).get("session") or own)

    server, runs = build(options, open_call=lambda context: Asker(call, None, None), connected=connected)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
    if own in runs.begun:
        door.call("end_session", {"session": own})
