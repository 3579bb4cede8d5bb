"""Which headers pass: none that belong to one hop, that carry a credential, or that tell a server to see another request.

A header that `Connection` names is stripped too. Answers lose what would bind the box to the service behind the gateway, and an
address in them that can be asked through the gateway is written so. Pure: no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from herdbook.base.errors import InvalidRequest
from herdbook.gateway.connections import Connection, Target
from herdbook.gateway.paths import AmbiguousPath, canonical

Headers = list[tuple[bytes, bytes]]
HOP_BY_HOP: Final = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"http2-settings"}
)
# Credentials, what proxies say of whom they speak for, and what asks for another method, host or path than was checked.
NOT_FORWARDED: Final = HOP_BY_HOP | {
    b"host", b"content-length", b"accept-encoding", b"expect", b"authorization", b"cookie", b"cookie2", b"x-api-key", b"api-key",
    b"x-auth-token", b"x-amz-security-token", b"x-goog-api-key", b"private-token", b"forwarded", b"via", b"x-real-ip", b"x-host",
    b"x-client-ip", b"true-client-ip", b"x-cluster-client-ip", b"x-http-method", b"x-http-method-override", b"x-method-override",
    b"front-end-https", b"max-forwards", b"origin", b"referer",
}  # fmt: skip
NOT_FORWARDED_PREFIXES: Final = (
    b"proxy-", b"x-forwarded-", b"x-original-", b"x-rewrite-", b"x-envoy-", b"cf-", b"fly-", b"sec-", b"x-goog-iap-",
    b"x-goog-authenticated-", b"x-herdbook-",
)  # fmt: skip
NOT_RETURNED: Final = HOP_BY_HOP | {
    b"set-cookie", b"set-cookie2", b"alt-svc", b"strict-transport-security", b"public-key-pins", b"clear-site-data",
    b"www-authenticate", b"authorization", b"report-to", b"nel", b"refresh", b"content-location", b"date",
}  # fmt: skip
NOT_RETURNED_PREFIXES: Final = (b"proxy-", b"x-herdbook-", b"access-control-")
LINK: Final = re.compile(rb"<([^>]*)>")


def framing(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """How the body comes, as the edge has understood it: at most one of the two."""
    lengths = {value for name, value in headers if name == b"content-length"}
    chunked = any(name == b"transfer-encoding" for name, _ in headers)
    if len(lengths) > 1 or (lengths and chunked):
        raise InvalidRequest("this request says the length of its body twice: send one Content-Length, or chunks")
    if chunked:
        return [(b"transfer-encoding", b"chunked")]
    return [(b"content-length", each) for each in lengths]


def for_upstream(headers: Sequence[tuple[bytes, bytes]], *, target: Target, attached: Sequence[tuple[bytes, bytes]]) -> Headers:
    """What goes to the service behind the gateway."""
    refused = named_by_connection(headers) | {name for name, _ in attached}
    passed = [
        (name, value)
        for name, value in headers
        if name not in refused and name not in NOT_FORWARDED and not name.startswith(NOT_FORWARDED_PREFIXES)
    ]
    ours = [(b"host", target.authority.encode()), (b"accept-encoding", b"identity")]
    return [*ours, *passed, *attached, *framing(headers)]


def for_box(headers: Sequence[tuple[bytes, bytes]], *, connection: Connection, target: Target, secret_path: bool) -> Headers:
    """What comes back to the box. Where the path is the secret, no address comes back at all."""
    refused = named_by_connection(headers)
    passed: Headers = []
    for given, value in headers:
        name = given.lower()
        if name in refused or name in NOT_RETURNED or name.startswith(NOT_RETURNED_PREFIXES):
            continue
        if name == b"location":
            through = None if secret_path else through_gateway(value, connection=connection, target=target)
            passed += [(name, through)] if through else []
        elif name == b"link":
            passed += [] if secret_path else [(name, links(value, connection=connection, target=target))]
        else:
            passed.append((name, value))
    return passed


def named_by_connection(headers: Iterable[tuple[bytes, bytes]]) -> set[bytes]:
    values = b",".join(value for name, value in headers if name.lower() == b"connection")
    return {name.strip().lower() for name in values.split(b",") if name.strip()}


def links(value: bytes, *, connection: Connection, target: Target) -> bytes:
    """The pages before and behind, as the box can ask for them."""

    def rewritten(found: re.Match[bytes]) -> bytes:
        return b"<" + (through_gateway(found[1], connection=connection, target=target) or found[1]) + b">"

    return LINK.sub(rewritten, value)


def through_gateway(address: bytes, *, connection: Connection, target: Target) -> bytes | None:
    """The gateway's path for an address of the connection's own host; None for any other, which is not followed."""
    origin = target.origin.encode()
    rest = address[len(origin) :] if address.lower().startswith(origin) else address
    path, question, query = rest.partition(b"#")[0].partition(b"?")
    if not path.startswith(target.prefix + b"/"):
        return None
    try:
        sent = canonical(path[len(target.prefix) :]).sent
    except AmbiguousPath:
        return None
    return f"/v1/gateway/{connection.name}".encode() + sent + question + query
