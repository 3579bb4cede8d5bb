"""A service behind the gateway, on loopback: it answers byte by byte what a test says, and keeps what it was sent."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from herdbook.base.http_serve import LoopThread


@dataclass
class Asked:
    """One request as it came over the wire."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes = b""

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]


Answer = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


async def plain(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok")


async def pause(seconds: float) -> None:
    """A service that takes its time."""
    await asyncio.sleep(seconds)


def chunked(
    *pieces: bytes, status: str = "200 OK", headers: bytes = b"", between: Callable[[], Awaitable[None]] | None = None
) -> Answer:
    """An answer in exactly these chunks, each in a packet of its own."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 " + status.encode() + b"\r\nTransfer-Encoding: chunked\r\n" + headers + b"\r\n")
        for piece in pieces:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            await (between() if between else asyncio.sleep(0))
        writer.write(b"0\r\n\r\n")

    return answer


def whole(body: bytes, *, status: str = "200 OK", headers: bytes = b"") -> Answer:
    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 " + status.encode() + b"\r\n" + headers + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    return answer


@dataclass
class Upstream:
    """Listens on a free port until it is closed."""

    answers: dict[str, Answer] = field(default_factory=dict)  # by path, else `plain`
    asked: list[Asked] = field(default_factory=list)
    tls: ssl.SSLContext | None = None
    connections: int = 0
    writers: set[asyncio.StreamWriter] = field(default_factory=set)
    received: int = 0  # bytes of bodies so far, also of those still on their way

    def __post_init__(self) -> None:
        self.thread = LoopThread("test-upstream")
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.port = self.sock.getsockname()[1]
        self.server = self.start()

    def start(self) -> asyncio.Server:
        async def begin() -> asyncio.Server:
            return await asyncio.start_server(self.serve, sock=self.sock, ssl=self.tls)

        return self.thread.call(begin())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        async def end() -> None:
            self.server.close()
            for writer in list(self.writers):
                writer.transport.abort()
            for _ in range(10):  # turns of the loop in which what was aborted, or never became a connection, is closed
                await asyncio.sleep(0)

        self.thread.call(end())
        self.thread.stop()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.add(writer)
        try:
            while asked := await self.request(reader):
                path = asked.target.partition("?")[0]
                await self.answers.get(path, plain)(asked, writer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.writers.discard(writer)
            writer.close()

    async def request(self, reader: asyncio.StreamReader) -> Asked | None:
        line = (await reader.readline()).decode("latin-1").split()
        if not line:
            return None
        headers = []
        while (text := (await reader.readline()).decode("latin-1").strip()) != "":
            name, _, value = text.partition(":")
            headers.append((name.lower(), value.strip()))
        asked = Asked(line[0], line[1], headers)
        asked.body = await self.body(asked, reader)
        self.asked.append(asked)
        return asked

    async def body(self, asked: Asked, reader: asyncio.StreamReader) -> bytes:
        pieces = []
        if asked.values("transfer-encoding"):
            while size := int(await reader.readline(), 16):
                pieces.append(await reader.readexactly(size + 2))
                self.received += size
            await reader.readline()
            return b"".join(piece[:-2] for piece in pieces)
        left = int((asked.values("content-length") or ["0"])[0])
        while left:
            piece = await reader.read(min(left, 65_536))
            if not piece:
                raise ConnectionError("the body ended early")
            pieces.append(piece)
            left -= len(piece)
            self.received += len(piece)
        return b"".join(pieces)
