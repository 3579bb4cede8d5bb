"""Where models are served, as the operator of this machine has named it: one file for each, in a folder only the operator writes.

Routes in the record name an upstream, never an address, so nobody who may change a route can make a server connect to wherever
they like, or send its credential there. An upstream serves the tenants it names, and no others. Addresses at which clouds hand
out credentials are refused, and a credential goes to another machine only by https.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from herdbook.base.errors import Forbidden, InvalidRequest, NotFound, Unavailable

NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
METADATA: Final = [
    ipaddress.ip_network(each)
    for each in ("169.254.0.0/16", "168.63.129.16/32", "100.100.100.200/32", "fd00:ec2::/32", "fe80::/10")
]
DEFAULT_TENANT: Final = 1


class Upstream(NamedTuple):
    """One place where models are served."""

    name: str
    url: str  # up to and with /v1
    key_file: str | None
    tenants: tuple[int, ...]

    def key(self) -> str | None:
        """The credential, read when it is needed, so that it can be replaced."""
        if self.key_file is None:
            return None
        try:
            return Path(self.key_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as problem:
            raise Unavailable(f"the key of the upstream {self.name!r} cannot be read: its operator has to look") from problem


def put(
    folder: Path, name: str, url: str, *, key_file: Path | None = None, tenants: Sequence[int] = (DEFAULT_TENANT,)
) -> Upstream:
    """Name a place. Raises InvalidRequest or Forbidden where it cannot be one."""
    upstream = Upstream(
        checked_name(name), url.rstrip("/"), None if key_file is None else str(key_file.absolute()), tuple(tenants)
    )
    check_address(upstream.url, with_key=key_file is not None)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = folder / f".{name}.{os.getpid()}"
    made.write_text(json.dumps(upstream._asdict()), encoding="utf-8")
    made.chmod(0o600)
    made.rename(folder / f"{name}.json")
    return upstream


def drop(folder: Path, name: str) -> None:
    (folder / f"{checked_name(name)}.json").unlink(missing_ok=True)


def listed(folder: Path) -> list[Upstream]:
    return [found for path in sorted(folder.glob("*.json")) if (found := read(path)) is not None]


def find(folder: Path | None, name: str, *, tenant: int) -> Upstream:
    """The place of this name, for this tenant; one of another tenant's is answered as missing."""
    found = read(folder / f"{name}.json") if folder is not None and NAME.fullmatch(name) else None
    if found is None or tenant not in found.tenants:
        raise NotFound(f"the upstream {name!r} is not known to this server: herdbook models upstream names it, on its machine")
    return found


def read(path: Path) -> Upstream | None:
    try:
        told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return Upstream(told["name"], told["url"], told["key_file"], tuple(told["tenants"]))


def checked_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise InvalidRequest(f"{name!r} is no name of an upstream: small letters, digits, - and _")
    return name


def check_address(url: str, *, with_key: bool) -> None:
    """An address of a model server, with nothing secret in it."""
    parts = urlsplit(url)
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.username
        or parts.password
        or parts.query
        or parts.fragment
    ):
        raise InvalidRequest(
            "an upstream is an address such as http://127.0.0.1:8000/v1, without a name, password or query in it"
        )
    if with_key and parts.scheme == "http" and not is_here(parts.hostname):
        raise Forbidden("a key goes to another machine only by https: serve the models so, or without a key")
    check_host(parts.hostname, parts.port or (443 if parts.scheme == "https" else 80))


def is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_host(host: str, port: int) -> None:
    """Refuse where clouds hand out credentials, by every address the name has now; one without any is found out when asked."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return
    for *_, address in found:
        number = ipaddress.ip_address(str(address[0]).partition("%")[0])
        plain = number.ipv4_mapped if isinstance(number, ipaddress.IPv6Address) and number.ipv4_mapped else number
        if any(plain in network for network in METADATA):
            raise Forbidden(f"{host} is where clouds hand out credentials: no model is served there")
