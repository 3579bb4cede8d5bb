"""Who may call: a signature or a bearer over the bytes as they arrived, compared in constant time, before anything is parsed."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from typing import Final

from herdbook.base.errors import Unauthorized

Headers = Mapping[str, str]  # names in lower case
SIGNATURES_MAX: Final = 16  # PagerDuty sends one for each secret that is being rotated


def signed(secret: bytes, body: bytes, headers: Headers) -> bool:
    """GitHub's form, `sha256=<hex of HMAC-SHA256 over the raw body>`; ours takes the same under a name of its own."""
    given = headers.get("x-hub-signature-256") or headers.get("x-herdbook-signature-256") or ""
    return same(f"sha256={digest(secret, body)}", given)


def signed_by_any(secret: bytes, body: bytes, headers: Headers) -> bool:
    """PagerDuty's form: a list of `v1=<hex>`, one of which must be right."""
    expected = f"v1={digest(secret, body)}"
    given = [each.strip() for each in headers.get("x-pagerduty-signature", "").split(",")][:SIGNATURES_MAX]
    return sum(same(expected, each) for each in given) > 0  # each one is compared, so that time tells nothing


def bearer(secret: bytes, body: bytes, headers: Headers) -> bool:
    """For senders that cannot sign."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return same(secret.decode(errors="surrogateescape"), given.strip()) and scheme.lower() == "bearer"


CHECKS: Final[Mapping[str, Callable[[bytes, bytes, Headers], bool]]] = {
    "deploy": signed,
    "statuspage": signed,
    "google": bearer,
    "alertmanager": bearer,
    "grafana": bearer,
    "pagerduty": signed_by_any,
    "generic": bearer,
}

SIGNED: Final = frozenset(hook for hook, check in CHECKS.items() if check is not bearer)  # whoever plays one back has no secret


def verify(hook: str, secret: bytes, body: bytes, headers: Headers) -> None:
    """Raises Unauthorized, the same for a missing and for a wrong signature. An empty secret opens nothing."""
    if not secret or not CHECKS[hook](secret, body, headers):
        raise Unauthorized("this hook's signature or token is missing or wrong: nothing was stored")


def digest(secret: bytes, body: bytes) -> str:
    return hmac.new(secret, body, hashlib.sha256).hexdigest()


def same(expected: str, given: str) -> bool:
    return hmac.compare_digest(expected.encode(errors="surrogateescape"), given.encode(errors="surrogateescape"))
