"""HTTP for sources and for GitHub: one request, bounded in time and size, through TCP or the box's unix socket; JSON out.

No redirect is followed, and no credential is added: in a box the gateway does both, or refuses to.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from herdbook.watch.sources.moments import well_formed
from herdbook.watch.sources.protocol import Unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping

ANSWER_BYTES_MAX = 16 * 1024 * 1024
TIMEOUT_SECONDS = 20.0
ANSWER_SECONDS_MAX = 30.0  # of the whole: a byte now and then keeps any other timeout from ever coming
SEGMENT_SAFE = "!$&'()*+,;=:@-._~"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("box", timeout=TIMEOUT_SECONDS)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(TIMEOUT_SECONDS)
        self.sock.connect(self.path)


class Web:
    """One address: `http(s)://host[:port][/prefix]`, or `unix:/path[:/prefix]`."""

    def __init__(self, base: str) -> None:
        found = re.fullmatch(r"unix:([^:]+)(?::(/.*))?|(https?)://([^/]+)(/.*)?", base)
        if found is None:
            raise Unreadable(f"{base!r} is no address")
        self.socket, self.scheme, self.host = found[1], found[3], found[4]
        self.prefix = (found[2] or found[5] or "").rstrip("/")

    def connection(self) -> http.client.HTTPConnection:
        if self.socket:
            return UnixConnection(self.socket)
        kind = http.client.HTTPSConnection if self.scheme == "https" else http.client.HTTPConnection
        return kind(self.host, timeout=TIMEOUT_SECONDS)

    def ask(self, method: str, path: str, body: Any = None, *, query: Mapping[str, str] | None = None) -> tuple[int, bytes]:
        """Status and body. Raises Unreadable when there is no answer."""
        connection = self.connection()
        sent = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json", "User-Agent": "herdbook-watch"}
        if sent is not None:
            headers["Content-Type"] = "application/json"
        where = f"{self.prefix}{path}{'?' + urlencode(query) if query else ''}"
        late = threading.Timer(ANSWER_SECONDS_MAX, hang_up, (connection,))
        late.daemon = True
        late.start()
        try:
            connection.request(method, where, sent, headers)
            answer = connection.getresponse()
            data = answer.read(ANSWER_BYTES_MAX + 1)
        except (OSError, http.client.HTTPException) as problem:
            raise Unreadable(f"no answer to {method} {path}: {problem}") from problem
        finally:
            late.cancel()
            connection.close()
        if len(data) > ANSWER_BYTES_MAX:
            raise Unreadable(f"the answer to {method} {path} is over {ANSWER_BYTES_MAX} bytes")
        return answer.status, data

    def json(self, method: str, path: str, body: Any = None, *, query: Mapping[str, str] | None = None) -> Any:
        """The JSON of a 2xx. Raises Unreadable with the status otherwise."""
        status, data = self.ask(method, path, body, query=query)
        if not 200 <= status < 300:
            raise Unreadable(f"{method} {path} answered {status}")
        try:
            return well_formed(json.loads(data))
        except (ValueError, RecursionError) as problem:
            raise Unreadable(f"{method} {path} did not answer with JSON") from problem


def hang_up(connection: http.client.HTTPConnection) -> None:
    with suppress(OSError, AttributeError):  # because it may be over already
        connection.sock.shutdown(socket.SHUT_RDWR)


def segment(text: str) -> str:
    """A name as one part of a path, whatever is in it."""
    return quote(text, safe=SEGMENT_SAFE)
