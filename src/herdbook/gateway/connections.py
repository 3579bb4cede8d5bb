"""What a connection is: one host, how its credential is attached, what may be asked of it, and which boxes may ask.

The host is fixed here by the operator and never comes from a request. Everything is checked when it is set, so that what is kept
needs no second look.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from herdbook.base.errors import InvalidRequest
from herdbook.gateway import credentials, egress, policy
from herdbook.gateway.budget import Budget
from herdbook.gateway.egress import Reach
from herdbook.gateway.paths import canonical

NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
# Names only: an address has its own form, and whatever else a resolver takes for one (2130706433, 0x7f.1) ends in a digit.
HOST_NAME: Final = re.compile(r"(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
IPV4: Final = re.compile(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})")
PORTS: Final = {"https": 443, "http": 80}
HISTORY_MAX: Final = 100
GRANTS_MAX: Final = 1_000
RULES_MAX: Final = 200


class Grant(msgspec.Struct, frozen=True):
    """Boxes that may use a connection: one by its id, or all that carry a label."""

    box: str | None = None
    label: str | None = None

    def covers(self, *, box: str, label: str) -> bool:
        return self.box == box if self.box is not None else self.label == label

    def __str__(self) -> str:
        return f"box {self.box}" if self.box is not None else f"label {self.label}"


class Change(msgspec.Struct, frozen=True):
    """Who did what to a connection, and when. Never a secret."""

    at: str
    by: str
    what: str


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """The open part of a connection: all of it but the secret."""

    name: str
    base: str  # https://api.github.com, with a path if all calls are below it
    credential: credentials.Settings
    rules: tuple[policy.Rule, ...] = ()
    grants: tuple[Grant, ...] = ()
    reach: Literal["public", "private"] = "public"
    budget: Budget = Budget()  # of each box
    secret_version: int = 1
    revoked: bool = False
    history: tuple[Change, ...] = ()

    @property
    def reaches(self) -> Reach:
        return Reach.PRIVATE if self.reach == "private" else Reach.PUBLIC

    def granted(self, *, box: str, label: str) -> bool:
        return not self.revoked and any(each.covers(box=box, label=label) for each in self.grants)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a connection leads, taken apart."""

    scheme: str
    host: str  # an IPv6 address without its brackets
    port: int
    prefix: bytes  # the path that all calls are below, without a slash at its end

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"


def connection_name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise InvalidRequest(f"{text!r} cannot name a connection: use small letters, digits and dashes, such as github")
    return text


def target(base: str, *, reach: Reach) -> Target:
    """A connection's address, or InvalidRequest saying what is wrong with it."""
    try:
        parts = urlsplit(base)
        port = parts.port
    except ValueError as problem:
        raise InvalidRequest(f"{base!r} is not an address: {problem}") from problem
    if parts.scheme not in PORTS or not base.isascii() or not base.isprintable() or "\\" in base or " " in base:
        raise InvalidRequest(f"{base!r} is not an address: write https://host, with a path if all calls are below it")
    if parts.username is not None or "@" in parts.netloc or parts.query or parts.fragment or base.endswith(("?", "#")):
        raise InvalidRequest("an address has no user, query or fragment: a credential is given as a secret")
    if parts.scheme == "http" and reach is Reach.PUBLIC:
        raise InvalidRequest("plain http shows the credential to everybody on the way: use https, or --private for this network")
    if port == 0:
        raise InvalidRequest("0 is not a port")
    prefix = canonical((parts.path.rstrip("/") or "/").encode())
    sent = prefix.sent if prefix.sent != b"/" else b""
    return Target(parts.scheme, host(parts.netloc, parts.hostname or "", reach=reach), port or PORTS[parts.scheme], sent)


def host(netloc: str, found: str, *, reach: Reach) -> str:
    """A host name in plain letters, or an address in its usual form that may be connected to."""
    name = found.lower()
    if netloc.startswith("[") or IPV4.fullmatch(name):
        why = egress.refusal(name, reach=reach)
        if why is not None:
            raise InvalidRequest(f"the gateway does not connect to {name}: it {why}; --private allows private networks")
        return name
    if not HOST_NAME.fullmatch(name):
        raise InvalidRequest(f"{name!r} is not a host name: use letters, digits, dashes and dots, other scripts as xn--")
    return name
