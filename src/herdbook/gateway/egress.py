"""Where the gateway may connect to: a name is looked up once, every address it has must be allowed, and that address is dialled.

Refused are this machine, private and shared networks, link-local and metadata addresses, and IPv6 addresses that carry one of
these inside (mapped, 6to4, NAT64, Teredo, ISATAP). The operator may give a connection reach into private networks; reach to
metadata addresses is given to nobody but the part of the gateway that asks them for its own token.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Any, Final

from httpcore2 import AnyIOBackend, AsyncNetworkBackend, AsyncNetworkStream, ConnectError

from herdbook.base.errors import Forbidden

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class Reach(IntEnum):
    """How far a connection may reach."""

    PUBLIC = 0
    PRIVATE = 1  # also this machine and private networks
    METADATA = 2  # also where clouds hand out credentials


class AddressRefused(Forbidden):
    """That host is at an address the gateway does not connect to: check the connection's address."""

    code = "address_refused"


NETWORKS: Final = {
    "0.0.0.0/8": "is this network",
    "10.0.0.0/8": "is private",
    "100.64.0.0/10": "is shared by a carrier's customers",
    "127.0.0.0/8": "is this machine",
    "169.254.0.0/16": "is link-local",
    "172.16.0.0/12": "is private",
    "192.0.0.0/24": "is reserved for protocols",
    "192.0.2.0/24": "is for examples",
    "192.31.196.0/24": "is reserved for name servers",
    "192.52.193.0/24": "is reserved for relays",
    "192.88.99.0/24": "is a 6to4 relay",
    "192.168.0.0/16": "is private",
    "192.175.48.0/24": "is reserved for name servers",
    "198.18.0.0/15": "is for benchmarks",
    "198.51.100.0/24": "is for examples",
    "203.0.113.0/24": "is for examples",
    "224.0.0.0/4": "is multicast",
    "240.0.0.0/4": "is reserved",
    "::/128": "is unspecified",
    "::1/128": "is this machine",
    "64:ff9b:1::/48": "is a private translation",
    "100::/64": "is discarded",
    "2001::/23": "is reserved for protocols",
    "2001:db8::/32": "is for examples",
    "3fff::/20": "is for examples",
    "5f00::/16": "is for segment routing",
    "fc00::/7": "is private",
    "fe80::/10": "is link-local",
    "fec0::/10": "is site-local",
    "ff00::/8": "is multicast",
}
# Where clouds hand out credentials: most are link-local, the rest look public or private.
METADATA: Final = (
    "169.254.0.0/16", "168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32", "fd00:ec2::/32", "fd20:ce::/32", "fe80::/10",
)  # fmt: skip
PRIVATE: Final = ("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")
SPECIAL: Final = [(ipaddress.ip_network(text), why) for text, why in NETWORKS.items()]
METADATA_NETWORKS: Final = [ipaddress.ip_network(text) for text in METADATA]
PRIVATE_NETWORKS: Final = [ipaddress.ip_network(text) for text in PRIVATE]
GLOBAL_UNICAST: Final = ipaddress.ip_network("2000::/3")
NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
COMPATIBLE: Final = ipaddress.ip_network("::/96")


def refusal(text: str, *, reach: Reach = Reach.PUBLIC) -> str | None:
    """Why this address is not connected to, or None. It must be an address as the resolver writes it."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return "is not an address"
    if getattr(address, "scope_id", None):
        return "belongs to one interface"
    return next(filter(None, (refusal_of(each, reach) for each in (address, *embedded(address)))), None)


def refusal_of(address: Address, reach: Reach) -> str | None:
    if within(address, METADATA_NETWORKS):
        return None if reach is Reach.METADATA else "is where clouds hand out credentials"
    if reach is not Reach.PUBLIC and within(address, PRIVATE_NETWORKS):
        return None
    if address.version == 6 and not carried(address) and address not in GLOBAL_UNICAST:
        return why_special(address) or "is not a public address"
    return why_special(address)


def why_special(address: Address) -> str | None:
    return next((why for network, why in SPECIAL if address in network), None)


def within(address: Address, networks: Iterable[Any]) -> bool:
    return any(address in network for network in networks)


def carried(address: Address) -> bool:
    """Whether an IPv6 address only stands for the IPv4 address in it, which is judged by itself."""
    return isinstance(address, ipaddress.IPv6Address) and (address.ipv4_mapped is not None or address in NAT64)


def embedded(address: Address) -> Iterator[Address]:
    """Every IPv4 address that an IPv6 address carries: a relay or a translator would connect to that one."""
    if not isinstance(address, ipaddress.IPv6Address):
        return
    low = ipaddress.IPv4Address(address.packed[-4:])
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if address in NAT64 or (address in COMPATIBLE and int(address) > 1):
        yield low
    if address.packed[8:12] in (b"\x00\x00\x5e\xfe", b"\x02\x00\x5e\xfe"):  # ISATAP
        yield low


async def look_up(host: str, port: int) -> Sequence[str]:
    """Every address of a name, once each, in the system's order."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


class GuardedBackend(AsyncNetworkBackend):
    """Connects to the address that was checked, and to no other: the name is not looked up a second time."""

    def __init__(self, reach: Reach, *, resolve: Resolve = look_up, dial: AsyncNetworkBackend | None = None) -> None:
        self.reach, self.resolve, self.dial = reach, resolve, dial or AnyIOBackend()

    async def connect_tcp(self, host: str, port: int, *args: Any, **options: Any) -> AsyncNetworkStream:
        addresses = await self.addresses(host, port)
        for number, address in enumerate(addresses, 1):
            try:
                return await self.dial.connect_tcp(address, port, *args, **options)
            except ConnectError:
                if number == len(addresses):
                    raise
        raise ConnectError(f"{host} has no address")

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """All of them, or AddressRefused: of a name with one bad address even the good ones are not trusted."""
        try:
            found = await self.resolve(host, port)
        except (OSError, UnicodeError) as problem:
            raise ConnectError(f"{host} cannot be looked up: {problem}") from problem
        for address in found:
            why = refusal(address, reach=self.reach)
            if why is not None:
                raise AddressRefused(f"the gateway does not connect to {host}: {address} {why}")
        return found

    async def connect_unix_socket(self, path: str, *args: Any, **options: Any) -> AsyncNetworkStream:
        raise AddressRefused("the gateway connects to no unix sockets: give the connection an http or https address")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
