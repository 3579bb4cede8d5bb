"""Who is calling: each listener has a door, and a door turns headers into a caller or refuses.

With a key, whoever shows it may do everything, attesting included. Without one, only this machine may call, nobody may attest,
and what a web page in a browser here could send is refused: a page can point its own name at 127.0.0.1, but it cannot lie about
that name. A box needs to show nothing, since its socket is its own: it may read and write, and never attest or touch boxes.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

from herdbook.base.errors import Forbidden, InvalidRequest, Unauthorized
from herdbook.base.reach import ANY
from herdbook.service.callers import DEFAULT_TENANT, SCOPES, Caller

LOG = logging.getLogger("herdbook.rest")
KEY_CHARS_MIN: Final = 16
KEY_BYTES_MAX: Final = 4_096
SERVE: Final = "herdbook serve"

EVERYTHING: Final = frozenset(SCOPES)
KEYLESS: Final = EVERYTHING - {"attest"}

Headers = Mapping[bytes, bytes]


class Door(Protocol):
    """What a listener asks of those who come by it."""

    def admit(self, headers: Headers) -> Caller:
        """Who calls a verb. Raises Unauthorized or Forbidden."""
        ...

    def admit_page(self, headers: Headers, *, private: bool) -> None:
        """Whether a page may be seen; a private one tells about this server. Raises Unauthorized or Forbidden."""
        ...


@dataclass(frozen=True, slots=True)
class KeyDoor:
    """Whoever shows the key. Digests are compared, in a time that tells nothing about the key or its length."""

    caller: Caller
    digest: bytes = field(repr=False)

    def admit(self, headers: Headers) -> Caller:
        scheme, _, shown = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not shown:
            raise Unauthorized
        if not hmac.compare_digest(sha256(shown.strip()).digest(), self.digest):
            raise Unauthorized("this key is not the server's: check HERDBOOK_KEY")
        return self.caller

    def admit_page(self, headers: Headers, *, private: bool) -> None:
        if private:
            self.admit(headers)


@dataclass(frozen=True, slots=True)
class LocalDoor:
    """Whoever is on this machine, but no web page: see the module's text."""

    caller: Caller
    by_name: bool = True  # False on a unix socket, which no browser opens and where a host name means nothing

    def admit(self, headers: Headers) -> Caller:
        if self.by_name:
            check_not_a_page(headers)
        return self.caller

    def admit_page(self, headers: Headers, *, private: bool) -> None:
        self.admit(headers)


@dataclass(frozen=True, slots=True)
class BoxDoor:
    """Whoever is inside that box."""

    caller: Caller

    def admit(self, headers: Headers) -> Caller:
        return self.caller

    def admit_page(self, headers: Headers, *, private: bool) -> None:
        if private:
            raise Forbidden("a box does not see this page: ask the server from outside")


def door(key: str | None, *, identity: str, on_unix: bool) -> Door:
    """The door of a server's own listener."""
    scopes = KEYLESS if key is None else EVERYTHING
    caller = Caller(DEFAULT_TENANT, identity, scopes, channel="rest", origin="agent", connections=(ANY,))
    return LocalDoor(caller, by_name=not on_unix) if key is None else KeyDoor(caller, sha256(key.encode()).digest())


def check_not_a_page(headers: Headers) -> None:
    """Refuse what a browser sends on behalf of a page that does not come from this machine."""
    host = host_name(headers.get(b"host", b""))
    if not is_loopback(host):
        raise Forbidden(
            f"without a key this server answers only to local names, not to {host!r}: call it 127.0.0.1, or set a key"
        )
    origin = headers.get(b"origin")
    elsewhere = origin is not None and not is_loopback(origin_name(origin))
    if elsewhere or headers.get(b"sec-fetch-site") == b"cross-site":
        raise Forbidden("a web page from elsewhere may not call this server: call it from this machine, or set a key")


def origin_name(value: bytes) -> str:
    try:
        return urlsplit(value.decode("latin-1")).hostname or ""
    except ValueError:
        return ""


def host_name(value: bytes) -> str:
    """The name in a Host header, without its port."""
    text = value.decode("latin-1")
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.rpartition(":")[0] if ":" in text else text


@lru_cache(maxsize=64)
def is_loopback(host: str) -> bool:
    """Whether this name or address can only mean this machine."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def make_a_key(serve: str) -> str:
    """What to type for a key, and to serve with it as was meant."""
    return f"head -c 32 /dev/urandom | base64 > herdbook.key; chmod 600 herdbook.key; {serve} --key-file herdbook.key"


def check_bind(address: str, *, key: str | None, serve: str = SERVE) -> None:
    """Refuse to open the record to a network without a key. `serve` is the command as it was typed, but for keys."""
    if key is None and not is_loopback(address):
        raise Forbidden(
            f"{address} can be reached from other machines, and there is no key: everybody there could write the record. "
            f"Set a key (HERDBOOK_KEY or --key-file), for example: {make_a_key(serve)}"
        )


def read_key(path: Path, *, serve: str = SERVE) -> str:
    """The key in this file, without the line end."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(KEY_BYTES_MAX + 1).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidRequest(f"the key file {path} cannot be read ({problem}); to make one: {make_a_key(serve)}") from problem
    if mode & (stat.S_IRGRP | stat.S_IROTH):
        LOG.warning("the key file %s can be read by others: chmod 600 it", path)
    return text


def check_key(key: str, *, serve: str = SERVE) -> str:
    """A key that can travel in a header and cannot be guessed."""
    if not KEY_CHARS_MIN <= len(key) <= KEY_BYTES_MAX or not key.isascii() or not key.isprintable() or " " in key:
        raise InvalidRequest(
            f"a key is {KEY_CHARS_MIN} or more printable ASCII characters without spaces; to make one: {make_a_key(serve)}"
        )
    return key
