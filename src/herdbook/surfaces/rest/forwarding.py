"""A conversation handed to a model server, and its answer handed back, whole or piece by piece.

It blocks, so it runs on threads of its own; no model runs in this process. What the upstream says of a failure is told without
the credential it was sent.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from herdbook.base.errors import HerdbookError, InvalidRequest, TooManyRequests, Unavailable
from herdbook.base.redaction import redacted
from herdbook.slowloop.models.upstreams import Upstream, check_host

CONNECT_SECONDS_MAX: Final = 10
SILENCE_SECONDS_MAX: Final = 300  # between two bytes of an answer
ANSWER_BYTES_MAX: Final = 8 * 1024 * 1024
SAID_CHARS_MAX: Final = 300
PIECE_BYTES: Final = 64 * 1024


class Exchange:
    """One request to an upstream, and its answer. Close it in any case."""

    def __init__(self, upstream: Upstream, body: dict[str, Any]) -> None:
        self.upstream = upstream
        self.key = upstream.key()
        self.connection = connect(upstream.url)
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        headers |= {"authorization": f"Bearer {self.key}"} if self.key else {}
        try:
            self.connection.request("POST", f"{urlsplit(upstream.url).path}/chat/completions", json.dumps(body), headers)
            if self.connection.sock is not None:
                self.connection.sock.settimeout(SILENCE_SECONDS_MAX)
            self.answer = self.connection.getresponse()
        except (OSError, http.client.HTTPException) as problem:
            self.close()
            raise self.away(problem) from problem
        if self.answer.status != 200:
            raise self.refusal()

    def whole(self) -> dict[str, Any]:
        """The answer as one object."""
        try:
            data = self.answer.read(ANSWER_BYTES_MAX + 1)
            found = json.loads(data) if len(data) <= ANSWER_BYTES_MAX else None
        except (OSError, http.client.HTTPException, ValueError) as problem:
            raise self.away(problem) from problem
        finally:
            self.close()
        if not isinstance(found, dict):
            raise self.away("it sent no JSON object, or one over the limit")
        return found

    def piece(self) -> bytes:
        """What has come since, at least a byte; nothing at the end."""
        try:
            return self.answer.read1(PIECE_BYTES)
        except (OSError, http.client.HTTPException) as problem:
            raise self.away(problem) from problem

    def refusal(self) -> HerdbookError:
        """What an answer that is no answer means for the caller."""
        try:
            said = self.said(self.answer.read(PIECE_BYTES))
        except (OSError, http.client.HTTPException):
            said = ""
        status = self.answer.status
        self.close()
        if status in (400, 404, 413, 415, 422):
            return InvalidRequest(f"the model does not take this request: {said or status}")
        if status == 429:
            return TooManyRequests("the model's server takes no more requests now: wait a moment", retry_after=1)
        return self.away(f"it answered {status}: {said}" if said else f"it answered {status}")

    def said(self, data: bytes) -> str:
        """The upstream's own words, as far as they may be told."""
        try:
            error = json.loads(data).get("error")
            words = str(error.get("message") if isinstance(error, dict) else error)
        except (ValueError, AttributeError):
            return ""
        if self.key:
            words = words.replace(self.key, "[redacted]")
        return redacted(words).text[:SAID_CHARS_MAX]

    def away(self, problem: object) -> Unavailable:
        told = str(problem) or type(problem).__name__
        return Unavailable(f"the upstream {self.upstream.name!r} did not answer: {told}; try again, or ask its operator")

    def close(self) -> None:
        self.connection.close()


def connect(url: str) -> http.client.HTTPConnection:
    """A connection to where this address is now, looked at again: a name may have moved."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=CONNECT_SECONDS_MAX)
    check_host(connection.host, connection.port)
    return connection


class Events:
    """Server-sent events, put together from pieces, each handed on with the model under its own name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rest = b""
        self.text: list[str] = []
        self.usage: dict[str, Any] = {}

    def add(self, piece: bytes) -> bytes:
        """The lines that are whole now, as they go on."""
        *lines, self.rest = (self.rest + piece).split(b"\n")
        return b"".join(self.line(line) + b"\n" for line in lines)

    def line(self, line: bytes) -> bytes:
        if not line.startswith(b"data: {"):
            return line
        try:
            chunk = json.loads(line[len(b"data: ") :])
        except ValueError:
            return line
        self.usage = chunk.get("usage") or self.usage
        self.text += list(words(chunk))
        return b"data: " + json.dumps(chunk | {"model": self.name}, ensure_ascii=False).encode()


def words(chunk: dict[str, Any]) -> Iterator[str]:
    for choice in (chunk.get("choices") or [])[:1]:
        content = (choice.get("delta") or {}).get("content")
        if isinstance(content, str):
            yield content
