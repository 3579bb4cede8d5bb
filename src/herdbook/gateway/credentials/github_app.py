"""GitHub App installation tokens: for an hour, named repositories and permissions only. The secret is the app's private key."""

from __future__ import annotations

import re
from typing import Any, Final

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from herdbook.base import clock
from herdbook.base.errors import InvalidRequest
from herdbook.gateway.credentials.minting import Minter, MintFailed, Token, Tools, asked_json, token_of
from herdbook.gateway.egress import Reach

KEY_BITS_MIN: Final = 2_048
NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")
PERMISSION: Final = re.compile(r"[a-z_]{1,64}")
LEVELS: Final = ("read", "write", "admin")
BEHIND_SECONDS: Final = 60  # GitHub's clock may be behind ours
JWT_SECONDS: Final = 540  # at most ten minutes, from then
WHAT: Final = "GitHub"


class GithubApp(msgspec.Struct, frozen=True, tag="github-app"):
    """Which app, where it is installed, and how narrow its tokens are."""

    app: str  # its client id, or its number
    installation: int
    repositories: tuple[str, ...]
    permissions: dict[str, str]

    def checked(self, secret: str) -> str:
        if not NAME.fullmatch(self.app) or self.installation <= 0:
            raise InvalidRequest("say which app and which installation, by the ids that GitHub shows")
        if not self.repositories or not all(NAME.fullmatch(each) for each in self.repositories):
            raise InvalidRequest("name the repositories the token is for, without their owner: it is never for all of them")
        known = all(PERMISSION.fullmatch(name) and level in LEVELS for name, level in self.permissions.items())
        if not self.permissions or not known:
            raise InvalidRequest("name the permissions the token has, such as contents:read: it never has all of them")
        private_key(secret)
        return secret.strip() + "\n"


def private_key(pem: str) -> RSAPrivateKey:
    """An RSA key as RS256 needs it. Raises InvalidRequest without a word of the key."""
    try:
        key = load_pem_private_key(pem.strip().encode(), password=None)
    except (ValueError, TypeError) as problem:
        raise InvalidRequest("the secret is not a private key in PEM form without a password: check what was given") from problem
    if not isinstance(key, RSAPrivateKey) or key.key_size < KEY_BITS_MIN:
        raise InvalidRequest(f"the secret is not an RSA key of {KEY_BITS_MIN} bits or more: check what was given")
    return key


def minter(settings: GithubApp, secret: str, *, base: str, reach: Reach, tools: Tools) -> Minter:
    key = private_key(secret) if secret else None
    wanted = {"repositories": list(settings.repositories), "permissions": settings.permissions}

    async def mint() -> Token:
        if key is None:
            raise MintFailed
        now = tools.clock.now() // 1_000_000
        claims: dict[str, Any] = {"iss": settings.app, "iat": now - BEHIND_SECONDS, "exp": now + JWT_SECONDS}
        headers = {
            "authorization": f"Bearer {jwt.encode(claims, key, algorithm='RS256')}",
            "accept": "application/vnd.github+json",
            "content-type": "application/json",
            "x-github-api-version": "2022-11-28",
        }
        url = f"{base.rstrip('/')}/app/installations/{settings.installation}/access_tokens"
        body = msgspec.json.encode(wanted)
        found = await asked_json(tools, "POST", url, what=WHAT, headers=headers, body=body, reach=reach, expected=201)
        return Token(token_of(found, "token", what=WHAT), expiry(found, "expires_at", what=WHAT))

    return Minter(mint, tools)


def expiry(found: dict[str, Any], name: str, *, what: str) -> int:
    try:
        return clock.from_iso(str(found[name]))
    except (KeyError, ValueError) as problem:
        raise MintFailed(f"{what} does not say when its token expires: check the connection's credential") from problem
