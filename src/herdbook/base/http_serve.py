"""Where a server listens and how long it lives: sockets with sentences for errors, the main thread or one of its own.

A unix socket is never open to others, not even for a moment. A first signal stops gracefully, a second one at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import stat
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from herdbook.base.errors import InvalidRequest, Unavailable
from herdbook.base.http_edge import Edge

PORT_MAX: Final = 65_535
UNIX_PATH_BYTES_MAX: Final = 107  # sockaddr_un holds 108, with its final zero

T = TypeVar("T")


def bind_tcp(host: str, port: int) -> socket.socket:
    """A socket bound to the first address this name stands for. Raises InvalidRequest or Unavailable with a sentence."""
    if not 0 <= port <= PORT_MAX:  # the system would take the rest of a division
        raise InvalidRequest(f"{port} is not a port: choose one from 1 to {PORT_MAX}, or 0 for a free one")
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError, OverflowError) as problem:
        raise InvalidRequest(f"{host!r} is not an address of this machine: {problem}") from problem
    family, kind, protocol, _, address = found[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
    except (OSError, OverflowError) as problem:
        sock.close()
        raise Unavailable(f"cannot listen on {host} port {port}: {problem}; choose another --port") from problem
    return sock


def bind_unix(path: str) -> socket.socket:
    """A unix socket only its owner may connect to. A socket file that nobody answers on any more is replaced."""
    if not path or "\0" in path:  # without a name the system would pick one that anybody on this machine can open
        raise InvalidRequest("a socket needs a path, such as /run/herdbook.sock")
    if len(os.fsencode(path)) > UNIX_PATH_BYTES_MAX:
        raise InvalidRequest(f"the socket path {path!r} is over {UNIX_PATH_BYTES_MAX} bytes: choose a shorter one")
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        remove_dead_socket(path)
        with contextlib.suppress(OSError):  # Linux takes a socket's mode from here, so that it is never wider; others refuse
            os.fchmod(sock.fileno(), 0o600)
        sock.bind(path)
        os.chmod(path, 0o600)
    except OSError as problem:
        sock.close()
        raise Unavailable(f"cannot listen on {path}: {problem.strerror or problem}") from problem
    return sock


def remove_dead_socket(path: str) -> None:
    """Clear away what a killed server left; anything but a dead socket stays. Raises OSError."""
    if not os.path.lexists(path):
        return
    if not stat.S_ISSOCK(os.lstat(path).st_mode):
        raise OSError("there is something else at that path: choose another")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)  # a server whose queue is full is a server
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
        else:
            raise OSError(f"another server answers there: stop it, or choose another path than {path}")


def url_of(sock: socket.socket) -> str:
    """As HERDBOOK_URL takes it."""
    if sock.family == socket.AF_UNIX:
        return f"unix:{os.path.abspath(sock.getsockname())}"
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(
    edge: Edge,
    sock: socket.socket,
    *,
    state: dict[str, Any],
    on_ready: Callable[[], None],
    on_stop: Callable[[], Awaitable[None]],
) -> None:
    """Serve in the main thread until SIGTERM or SIGINT, then stop gracefully; a second signal ends the process at once."""

    async def until_signalled() -> None:
        loop, signalled = asyncio.get_running_loop(), asyncio.Event()
        listener = await edge.listen(sock, state=state)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, signalled.set)
        on_ready()
        await signalled.wait()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        await listener.close()
        await on_stop()

    asyncio.run(until_signalled())


class LoopThread:
    """An event loop on a thread of its own, for servers inside a program that does something else."""

    def __init__(self, name: str) -> None:
        self.stopped = asyncio.Event()
        started: Future[asyncio.AbstractEventLoop] = Future()
        self.thread = threading.Thread(target=asyncio.run, args=(self.live(started),), name=name, daemon=True)
        self.thread.start()
        self.loop = started.result()

    async def live(self, started: Future[asyncio.AbstractEventLoop]) -> None:
        started.set_result(asyncio.get_running_loop())
        await self.stopped.wait()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run this on the loop, and wait for its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.stopped.set)
        self.thread.join()
