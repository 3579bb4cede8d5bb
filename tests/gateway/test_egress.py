"""Where the gateway may connect to, however an address is spelled: no spelling reaches what listens on this machine."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.base.errors import InvalidRequest
from herdbook.gateway.connections import Connection, Grant, target
from herdbook.gateway.credentials.static import Bearer
from herdbook.gateway.egress import AddressRefused, GuardedBackend, Reach, refusal
from herdbook.gateway.policy import rule
from herdbook.gateway.upstream import Upstream as Pools
from tests.gateway.serving import SECRET, World, code
from tests.gateway.upstream import Upstream

# What a host may be called so that somebody connects to this machine, to a private network or to a cloud's credentials.
HOSTS = """\
127.0.0.1
127.1
127.0.1
127.255.255.254
2130706433
0x7f000001
0x7f.0.0.1
0x7f.1
017700000001
0177.0.0.1
0177.1
①②⑦.0.0.1
127。0。0。1
127.0.0.1.
0.0.0.0
0
localhost
localhost.
LOCALHOST
ip6-localhost
[::1]
[::]
[0:0:0:0:0:0:0:1]
[::ffff:127.0.0.1]
[::ffff:7f00:1]
[::ffff:0:127.0.0.1]
[::127.0.0.1]
[64:ff9b::7f00:1]
[64:ff9b::127.0.0.1]
[64:ff9b:1::7f00:1]
[2002:7f00:1::]
[2002:7f00:0001::1]
[2001:0:7f00:1::]
[2001:0:4136:e378:8000:63bf:80ff:fffe]
[fe80::5efe:127.0.0.1]
[2a00:1450::200:5efe:7f00:1]
[fe80::1]
[fe80::1%25lo]
[fe80::1%lo]
[fc00::1]
[fd00:ec2::254]
[fec0::1]
[ff02::1]
[100::1]
[2001:db8::1]
10.0.0.1
172.16.0.1
172.31.255.255
192.168.1.1
100.64.0.1
100.100.100.200
169.254.169.254
169.254.170.2
169.254.0.1
2852039166
0xa9fea9fe
0251.0376.0251.0376
[::ffff:169.254.169.254]
[2002:a9fe:a9fe::]
[64:ff9b::a9fe:a9fe]
168.63.129.16
192.0.0.192
192.0.0.8
198.18.0.1
192.88.99.1
224.0.0.1
239.255.255.250
240.0.0.1
255.255.255.255
metadata.google.internal
user@127.0.0.1
example.com@127.0.0.1
127.0.0.1#@example.com
127.0.0.1?@example.com
example.com\\@127.0.0.1
127.0.0.1%00.example.com
127.0.0.1%2f.example.com
""".rstrip("\n").split("\n")

# What a box may write behind its connection in the hope of another host.
PATHS = """\
http://127.0.0.1:{port}/
//127.0.0.1:{port}/
/\\127.0.0.1:{port}/
@127.0.0.1:{port}/
:{port}/
.127.0.0.1:{port}/
?@127.0.0.1:{port}/
#@127.0.0.1:{port}/
%2f%2f127.0.0.1:{port}/
..//127.0.0.1:{port}/
file:///etc/passwd
gopher://127.0.0.1:{port}/_GET
""".rstrip("\n").split("\n")


@pytest.fixture
def canary() -> Iterator[socket.socket]:
    """Whatever connects to this machine, over IPv4 or IPv6, ends up here."""
    with socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True) as sock:
        yield sock


def untouched(canary: socket.socket) -> bool:
    canary.setblocking(False)
    try:
        canary.accept()
    except BlockingIOError:
        return True
    return False


def forced(world: World, base: str) -> None:
    """A connection as `add` would never make it."""
    world.keeper.vault.keeper.create()  # type: ignore[attr-defined]
    world.keeper.vault.folder.mkdir(parents=True, exist_ok=True)
    made = Connection(name="forced", base=base, credential=Bearer(), rules=(rule("* /**"),), grants=(Grant(label="ci"),))
    world.keeper.vault.write(made, SECRET)


def test_there_are_sixty_spellings() -> None:
    """A list that shrank would go on proving less and less."""
    assert 60 <= len(set(HOSTS)) + len(PATHS)


def test_no_spelling_of_a_host_is_taken_by_add(canary: socket.socket) -> None:
    """An operator who pastes a trick address would open this machine to boxes."""
    port = canary.getsockname()[1]
    names = {"localhost", "localhost.", "ip6-localhost", "LOCALHOST", "metadata.google.internal"}  # only a lookup can tell
    taken = []
    for host in HOSTS:
        try:
            target(f"https://{host}:{port}", reach=Reach.PUBLIC)
        except InvalidRequest:
            continue
        taken.append(host)
    assert taken == [host for host in taken if host in names]


@pytest.mark.parametrize("scheme", ["https", "http"])
def test_no_spelling_of_a_host_is_connected_to(world: World, canary: socket.socket, scheme: str) -> None:
    """A connection whose name leads here, set in whatever way, would show the key to this machine, and this machine to boxes."""
    box, port = world.box("one"), canary.getsockname()[1]
    for host in HOSTS:
        forced(world, f"{scheme}://{host}:{port}")
        reply = world.ask(box, "GET", "/v1/gateway/forced/x")
        assert reply.status in (400, 403, 502), (host, reply)
        assert untouched(canary), host


def test_no_path_reaches_another_host(world: World, upstream: Upstream, canary: socket.socket) -> None:
    """A box could choose where the key is sent by what it writes as the path."""
    world.connect("github", upstream.url)
    box, port = world.box("one"), canary.getsockname()[1]
    for path in PATHS:
        world.ask(box, "GET", f"/v1/gateway/github/{path.format(port=port)}")
        world.ask(box, "GET", f"/v1/gateway/github{path.format(port=port)}")
        assert untouched(canary), path
    assert {f"127.0.0.1:{upstream.port}"} == {host for asked in upstream.asked for host in asked.values("host")}
    assert all(asked.target.startswith("/") for asked in upstream.asked)


def test_a_name_is_looked_up_once_and_the_judged_address_is_dialled(world_with_names, canary: socket.socket) -> None:
    """A name server that answers differently the second time would lead the gateway to this machine."""
    answers = iter([["93.184.215.14"], ["127.0.0.1"], ["127.0.0.1"]])
    dialled: list[str] = []

    class Dial:
        async def connect_tcp(self, host: str, port: int, *args: object, **options: object) -> object:
            dialled.append(host)
            raise ConnectionAbortedError

    async def resolve(host: str, port: int) -> Sequence[str]:
        return next(answers)

    guarded = GuardedBackend(Reach.PUBLIC, resolve=resolve, dial=Dial())  # type: ignore[arg-type]
    with pytest.raises(ConnectionAbortedError):
        asyncio.run(guarded.connect_tcp("rebinding.example", 443))
    with pytest.raises(AddressRefused):
        asyncio.run(guarded.connect_tcp("rebinding.example", 443))
    assert ["93.184.215.14"] == dialled


@pytest.fixture
def world_with_names(tmp_path: Path) -> Iterator[World]:
    """Names resolve as the test says."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        return {"mixed.example": ["93.184.215.14", "127.0.0.1"], "inside.example": ["10.1.2.3"]}[host]

    made = World(tmp_path, pools=Pools(resolve=resolve))
    yield made
    made.close()


def test_of_a_name_with_one_bad_address_none_is_taken(world_with_names: World, canary: socket.socket) -> None:
    """A name could carry a harmless address for the check beside the one that is meant."""
    world, port = world_with_names, canary.getsockname()[1]
    for name in ("mixed.example", "inside.example"):
        forced(world, f"https://{name}:{port}")
        reply = world.ask(world.box(name), "GET", "/v1/gateway/forced/x")
        assert (403, "address_refused") == (reply.status, code(reply))
    assert untouched(canary)


def test_private_reach_never_includes_credentials_of_clouds() -> None:
    """A connection to a neighbour would be a way to the machine's own cloud credentials."""
    for address in ("127.0.0.1", "10.0.0.1", "192.168.1.1", "::1", "fd12::1", "100.64.0.1", "::ffff:10.0.0.1"):
        assert refusal(address) is not None
        assert refusal(address, reach=Reach.PRIVATE) is None
    for address in (
        "169.254.169.254",
        "168.63.129.16",
        "fd00:ec2::254",
        "100.100.100.200",
        "::ffff:169.254.169.254",
        "192.0.0.192",
    ):
        assert refusal(address, reach=Reach.PRIVATE) is not None
    assert refusal("169.254.169.254", reach=Reach.METADATA) is None


PUBLIC = ("1.1.1.1", "2606:4700:4700::1111", "64:ff9b::101:101", "::ffff:1.1.1.1", "2002:101:101::", "192.0.1.1")


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_connected_to(address: str) -> None:
    """A service out there could not be used."""
    assert refusal(address) is None


@given(st.ip_addresses(v=4))
def test_no_ipv6_spelling_is_more_than_its_ipv4(address: ipaddress.IPv4Address) -> None:
    """A refused address would be reached as part of another one."""
    bits = int(address)
    mapped = ipaddress.IPv6Address(0xFFFF << 32 | bits)
    nat64 = ipaddress.IPv6Address(int(ipaddress.IPv6Address("64:ff9b::")) | bits)
    sixtofour = ipaddress.IPv6Address(0x2002 << 112 | bits << 80)
    isatap = ipaddress.IPv6Address(int(ipaddress.IPv6Address("2a00:1450::5efe:0:0")) | bits)
    for reach in Reach:
        plain = refusal(str(address), reach=reach)
        for spelled in (mapped, nat64, sixtofour, isatap):
            assert plain is None or refusal(str(spelled), reach=reach) is not None
    if not address.is_global:
        assert refusal(str(address)) is not None


@given(st.ip_addresses(v=6))
def test_what_the_standard_library_calls_private_is_refused(address: ipaddress.IPv6Address) -> None:
    """A table of ours that is shorter than everybody's would let something through."""
    if not address.is_global:
        assert refusal(str(address)) is not None
