"""Over TLS, the address that was judged is dialled, and the name that was meant is verified."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from herdbook.gateway.upstream import Upstream as Pools
from tests.gateway.serving import World, code
from tests.gateway.upstream import Upstream


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate that signs itself, for this name, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    names = [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("192.0.2.1"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, SHA256())
    )
    certificate, private = folder / "service.pem", folder / "service.key"
    certificate.write_bytes(made.public_bytes(Encoding.PEM))
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return certificate, private


@pytest.fixture
def place(tmp_path: Path) -> tuple[Path, Path]:
    return certificate(tmp_path, "service.example")


@pytest.fixture
def service(place: tuple[Path, Path]) -> Iterator[tuple[Upstream, list[str]]]:
    """Listens with that certificate, and keeps the names it was asked for."""
    asked: list[str] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*place)
    context.sni_callback = lambda sock, name, context: asked.append(name)
    made = Upstream(tls=context)
    yield made, asked
    made.close()


@pytest.fixture
def world(tmp_path: Path, service: object) -> Iterator[World]:
    """Every name leads to this machine. It is closed before the service."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    made = World(tmp_path, pools=Pools(resolve=resolve))
    yield made
    made.close()


def test_the_name_is_verified_though_the_address_is_dialled(
    world: World, service: tuple[Upstream, list[str]], place: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pinning the address would cost the check of the name, or the other way round."""
    upstream, names = service
    monkeypatch.setenv("SSL_CERT_FILE", str(place[0]))
    world.connect("right", f"https://service.example:{upstream.port}")
    world.connect("wrong", f"https://other.example:{upstream.port}")
    box = world.box("one")
    assert 200 == world.ask(box, "GET", "/v1/gateway/right/x").status
    assert ["service.example"] == names
    reply = world.ask(box, "GET", "/v1/gateway/wrong/x")
    assert (502, "upstream_failed") == (reply.status, code(reply))
    assert 1 == len(upstream.asked)


def test_a_certificate_nobody_vouches_for_is_refused(world: World, service: tuple[Upstream, list[str]]) -> None:
    """Whoever stands in between could read the key."""
    upstream, _ = service
    world.connect("service", f"https://service.example:{upstream.port}")
    reply = world.ask(world.box("one"), "GET", "/v1/gateway/service/x")
    assert (502, "upstream_failed") == (reply.status, code(reply))
    assert [] == upstream.asked
