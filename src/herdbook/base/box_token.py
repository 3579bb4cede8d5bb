"""The pass of one box, for a listener that cannot tell boxes by their socket: signed, short-lived, bound to the box. Pure.

It says tenant, box, identity, reach, connections and the key it was made with, for at most a quarter of an hour. Whoever holds
the signing key can check one without asking the record, and must then ask whether box and key still live. A pass never lets
anybody attest or touch boxes.
"""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import asdict, dataclass
from typing import Any, Final

from herdbook.base import limits
from herdbook.base.errors import InvalidRequest, Unauthorized
from herdbook.base.reach import Reach

PREFIX: Final = "hbx_"
PURPOSE: Final = b"herdbook box pass 1"
CHARS_MAX: Final = 16 * 1024
SKEW: Final = 30 * 1_000_000  # a pass from a machine whose clock is a little ahead is good
NOT_OURS: Final = "this box pass is not valid here: ask the box's host for a fresh one"


@dataclass(frozen=True, slots=True)
class BoxPass:
    """What a pass says. Times are microseconds since 1970."""

    tenant: int
    box: str
    identity: str
    patterns: tuple[str, ...]
    connections: tuple[str, ...]
    issued_at: int
    expires_at: int
    key: str | None = None  # the lookup id of the access key that made it; the pass ends with that

    @property
    def reach(self) -> Reach:
        return Reach(self.patterns)


def signing_key(secret: bytes) -> bytes:
    """The key for passes out of a secret that has other uses: whoever is given this one learns nothing of it."""
    return hmac.digest(secret, PURPOSE, "sha256")


def sign(key: bytes, said: BoxPass) -> str:
    """The pass as text. Raises InvalidRequest for one that would live too long."""
    if not 0 < said.expires_at - said.issued_at <= limits.BOX_PASS_SECONDS_MAX * 1_000_000:
        raise InvalidRequest(f"a box pass lives 1 to {limits.BOX_PASS_SECONDS_MAX} seconds: ask for a fresh one then")
    body = json.dumps(asdict(said), ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
    return f"{PREFIX}{encoded(body)}.{encoded(hmac.digest(key, body, 'sha256'))}"


def opened(key: bytes, token: str, *, now: int, tenant: int | None = None) -> BoxPass:
    """What a pass says, if it was signed with this key, is still good and of the tenant that is named. Raises Unauthorized."""
    body, signature = parts(token)
    if not hmac.compare_digest(hmac.digest(key, body, "sha256"), signature):
        raise Unauthorized(NOT_OURS)
    said = read(body)
    if tenant not in (None, said.tenant):
        raise Unauthorized(NOT_OURS)  # whether it has expired is nobody else's to know
    lifetime = said.expires_at - said.issued_at
    if not 0 < lifetime <= limits.BOX_PASS_SECONDS_MAX * 1_000_000 or not said.issued_at - SKEW <= now < said.expires_at:
        raise Unauthorized("this box pass has expired: ask the box's host for a fresh one")
    return said


def parts(token: str) -> tuple[bytes, bytes]:
    if not token.startswith(PREFIX) or len(token) > CHARS_MAX or token.count(".") != 1:
        raise Unauthorized(NOT_OURS)
    body, _, signature = token.removeprefix(PREFIX).partition(".")
    try:
        return decoded(body), decoded(signature)
    except ValueError as problem:
        raise Unauthorized(NOT_OURS) from problem


def read(body: bytes) -> BoxPass:
    """Signed, so by us; another version of herdbook may have said other things."""
    try:
        said: dict[str, Any] = json.loads(body)
        return BoxPass(**{**said, "patterns": tuple(said["patterns"]), "connections": tuple(said["connections"])})
    except (ValueError, TypeError, KeyError) as problem:
        raise Unauthorized(NOT_OURS) from problem


def encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    data = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    if encoded(data) != text:  # one pass has one spelling
        raise ValueError("not the one spelling of these bytes")
    return data
