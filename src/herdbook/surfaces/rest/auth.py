"""Who is calling: each listener has a door, and a door turns headers into a caller or refuses.

With a key of its own, whoever shows that may do everything: it is how a server starts. Keys of the record do what each is for. As
long as there is neither, only this machine may call, nobody may attest or make keys, and what a web page in a browser here could
send is refused: a page can point its own name at 127.0.0.1, but it cannot lie about that name. A box needs to show nothing, since
its socket is its own: it may read and write, and never attest or touch boxes.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

from herdbook.base import access_key, box_token, files
from herdbook.base.errors import Forbidden, HerdbookError, InvalidRequest, Unauthorized
from herdbook.base.reach import ANY
from herdbook.service.access import keys
from herdbook.service.callers import DEFAULT_TENANT, SCOPES, Caller
from herdbook.service.door import Service

LOG = logging.getLogger("herdbook.rest")
KEY_CHARS_MIN: Final = 16
KEY_BYTES_MAX: Final = 4_096
SERVE: Final = "herdbook serve"

EVERYTHING: Final = frozenset(SCOPES)
KEYLESS: Final = EVERYTHING - {"attest", "admin", "operator"}
OURS: Final = (access_key.PREFIX.encode(), box_token.PREFIX.encode())

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
class RecordKeys:
    """The keys that are kept in the record: who is let in by one, and whether there are any."""

    admitted: Callable[[str], Caller]
    exist: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class ServerDoor:
    """Whoever shows a key of the record or the server's own; as long as there are none, whoever is on this machine."""

    caller: Caller  # who shows the server's own key, or needs none
    digest: bytes | None = field(repr=False)
    keys: RecordKeys
    by_name: bool = True  # False on a unix socket: only its owner opens it, no browser does, and a host name means nothing

    def admit(self, headers: Headers) -> Caller:
        scheme, _, shown = headers.get(b"authorization", b"").partition(b" ")
        shown = shown.strip() if scheme.lower() == b"bearer" else b""
        if shown.startswith(OURS):
            return self.keys.admitted(shown.decode("latin-1"))
        if self.digest is not None:
            if not shown:
                raise Unauthorized
            # Digests are compared, in a time that tells nothing about the key or its length.
            if not hmac.compare_digest(sha256(shown).digest(), self.digest):
                raise Unauthorized("this key is not the server's: check HERDBOOK_KEY")
        elif self.by_name:
            check_not_a_page(headers)
            if self.keys.exist():
                raise Unauthorized
        return self.caller

    def admit_page(self, headers: Headers, *, private: bool) -> None:
        if private:
            caller = self.admit(headers)
            if caller.key is not None and "operator" not in caller.scopes:
                raise Forbidden("this page is about all tenants: it needs the server's own key, or an operator's")
        elif self.digest is None and self.by_name and not self.keys.exist():
            check_not_a_page(headers)


@dataclass(frozen=True, slots=True)
class BoxDoor:
    """Whoever is inside that box."""

    caller: Caller

    def admit(self, headers: Headers) -> Caller:
        return self.caller

    def admit_page(self, headers: Headers, *, private: bool) -> None:
        if private:
            raise Forbidden("a box does not see this page: ask the server from outside")


def record_keys(service: Service) -> RecordKeys:
    return RecordKeys(partial(keys.admitted, service), partial(keys.keys_exist, service))


def door(service: Service, key: str | None, *, identity: str, on_unix: bool) -> Door:
    """The door of a server's own listener. Whoever needs no key may not make any, nor vouch for anything."""
    scopes = KEYLESS if key is None else EVERYTHING
    caller = Caller(DEFAULT_TENANT, identity, scopes, channel="rest", origin="agent", connections=(ANY,))
    digest = None if key is None else sha256(key.encode()).digest()
    return ServerDoor(caller, digest, record_keys(service), by_name=not on_unix)


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


def check_bind(address: str, *, keyed: bool, serve: str = SERVE) -> None:
    """Refuse to open the record to a network without a key. `serve` is the command as it was typed, but for keys."""
    if not keyed and not is_loopback(address):
        raise Forbidden(
            f"{address} can be reached from other machines, and there is no key: everybody there could write the record. "
            f"Set a key (HERDBOOK_KEY or --key-file), for example: {make_a_key(serve)}"
        )


def read_key(path: Path, *, serve: str = SERVE) -> str:
    """The key in this file, without the line end."""
    try:
        text = files.read(path, what="the key", bytes_max=KEY_BYTES_MAX).decode("ascii").strip()
    except (HerdbookError, UnicodeDecodeError) as problem:
        raise InvalidRequest(f"the key file {path} cannot be used ({problem}); to make one: {make_a_key(serve)}") from problem
    if path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        LOG.warning("the key file %s can be read by others: chmod 600 it", path)
    return text


def check_key(key: str, *, serve: str = SERVE) -> str:
    """A key that can travel in a header and cannot be guessed, and is none of those in the record."""
    if access_key.read(key) is not None:
        raise InvalidRequest(
            "this is a key of a record, as callers show it, and no key for a server of its own. Leave HERDBOOK_KEY and "
            f"--key-file out, since a record's keys open its server anyway, or make it one of its own: {make_a_key(serve)}"
        )
    if not KEY_CHARS_MIN <= len(key) <= KEY_BYTES_MAX or not key.isascii() or not key.isprintable() or " " in key:
        raise InvalidRequest(
            f"a key is {KEY_CHARS_MIN} or more printable ASCII characters without spaces; to make one: {make_a_key(serve)}"
        )
    return key
