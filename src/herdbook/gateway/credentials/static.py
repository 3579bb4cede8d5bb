"""Credentials that are the same for every call: a bearer token, a header, a password, a query parameter, or a secret path."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import msgspec

from herdbook.base.errors import InvalidRequest
from herdbook.gateway.credentials.attached import Attached
from herdbook.gateway.paths import canonical
from herdbook.gateway.redaction import SECRET_CHARS_MIN

SECRET_CHARS_MAX: Final = 16_384
TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")
FRAMING: Final = frozenset({"host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade", "expect"})


def one_line(secret: str) -> str:
    """A secret as a header can carry it; the line end that files and pastes add is cut off."""
    secret = secret.strip("\r\n")
    if not SECRET_CHARS_MIN <= len(secret) <= SECRET_CHARS_MAX:
        raise InvalidRequest(f"a secret has {SECRET_CHARS_MIN} to {SECRET_CHARS_MAX} characters: check what was pasted")
    if not secret.isascii() or not secret.isprintable() or secret != secret.strip():
        raise InvalidRequest("this secret holds line ends, spaces around it or characters outside ASCII: check what was pasted")
    return secret


class Bearer(msgspec.Struct, frozen=True, tag="bearer"):
    """`Authorization: Bearer SECRET`"""

    def checked(self, secret: str) -> str:
        return one_line(secret)

    def attached(self, secret: str) -> Attached:
        return Attached(headers=((b"authorization", b"Bearer " + secret.encode()),), secrets=(secret,))


class Header(msgspec.Struct, frozen=True, tag="header"):
    """`NAME: SECRET`, after what stands before it, if anything."""

    name: str
    before: str = ""  # such as `token `

    def checked(self, secret: str) -> str:
        if not TOKEN.fullmatch(self.name) or self.name in FRAMING:
            raise InvalidRequest(f"a credential cannot go into the header {self.name!r}: write another one in small letters")
        if not self.before.isascii() or not (self.before + "x").isprintable():
            raise InvalidRequest("what stands before the secret must be printable ASCII")
        return one_line(secret)

    def attached(self, secret: str) -> Attached:
        return Attached(headers=((self.name.encode(), (self.before + secret).encode()),), secrets=(secret,))


class Basic(msgspec.Struct, frozen=True, tag="basic"):
    """`Authorization: Basic`, with a user that is open and a password that is the secret."""

    user: str

    def checked(self, secret: str) -> str:
        if not self.user.isascii() or not self.user.isprintable() or ":" in self.user:
            raise InvalidRequest("a user's name must be printable ASCII without a colon")
        return one_line(secret)

    def attached(self, secret: str) -> Attached:
        pair = base64.b64encode(f"{self.user}:{secret}".encode()).decode()
        return Attached(headers=((b"authorization", f"Basic {pair}".encode()),), secrets=(secret, pair))


class Query(msgspec.Struct, frozen=True, tag="query"):
    """`?NAME=SECRET`, for services that know no better: it may end up in their logs."""

    name: str

    def checked(self, secret: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", self.name):
            raise InvalidRequest(f"{self.name!r} cannot name the parameter of a credential: use letters, digits, - . and _")
        return one_line(secret)

    def attached(self, secret: str) -> Attached:
        return Attached(query=f"{self.name}={quote(secret, safe='')}".encode(), secrets=(secret,))


class Path(msgspec.Struct, frozen=True, tag="path"):
    """The secret is a path, as in the address of a chat's webhook; what a box asks for is put behind it."""

    def checked(self, secret: str) -> str:
        secret = one_line(secret).rstrip("/")
        if not secret.startswith("/"):
            raise InvalidRequest("the secret of this kind is a path: give the part of the address from its first slash on")
        return canonical(secret.encode()).sent.decode()

    def attached(self, secret: str) -> Attached:
        parts = [part for part in secret.split("/") if len(part) >= SECRET_CHARS_MIN]
        return Attached(prefix=secret.encode(), secrets=(secret, *parts))


@dataclass(frozen=True, slots=True)
class Static:
    """The same for every call."""

    attached: Attached

    async def attach(self, box: str) -> Attached:
        return self.attached

    def refused(self) -> None:
        """There is no other to try."""
