"""Google Cloud by impersonation: a token of a viewer account, an hour long, that can only read.

Who the gateway is itself comes from the machine's metadata service, or from a service account's key, which is the secret then.
It is used for nothing but asking for the viewer's token.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal
from urllib.parse import urlencode

import jwt
import msgspec

from herdbook.base.errors import InvalidRequest
from herdbook.gateway.credentials.github_app import expiry, private_key
from herdbook.gateway.credentials.minting import Minter, MintFailed, Token, Tools, asked_json, token_of
from herdbook.gateway.egress import Reach

ACCOUNT: Final = re.compile(r"[a-z0-9-]{1,63}@[a-z0-9.-]{1,200}\.gserviceaccount\.com")
# A token with any other scope could change something, if the account's roles let it.
READS: Final = re.compile(r"https://www\.googleapis\.com/auth/[a-z.-]+[._-]read[_-]?(?:only)?")
LIFETIME_SECONDS_MAX: Final = 3_600
AUTH: Final = "https://www.googleapis.com/auth/"
SCOPES: Final = (f"{AUTH}logging.read", f"{AUTH}run.readonly", f"{AUTH}monitoring.read")
CLOUD: Final = f"{AUTH}cloud-platform"
GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"


class Gcp(msgspec.Struct, frozen=True, tag="gcp"):
    """Whose token, with which scopes, and who asks for it."""

    account: str
    scopes: tuple[str, ...] = SCOPES
    lifetime_seconds: int = LIFETIME_SECONDS_MAX
    source: Literal["metadata", "key"] = "metadata"
    iam: str = "https://iamcredentials.googleapis.com"
    tokens: str = "https://oauth2.googleapis.com/token"
    metadata: str = "http://metadata.google.internal"

    def checked(self, secret: str) -> str:
        if not ACCOUNT.fullmatch(self.account):
            raise InvalidRequest("say whose token it is: NAME@PROJECT.iam.gserviceaccount.com")
        writes = [scope for scope in self.scopes if not READS.fullmatch(scope)]
        if writes or not self.scopes:
            raise InvalidRequest(f"a viewer's token has scopes that only read, and {(writes or ['none'])[0]!r} is not one")
        if not 60 <= self.lifetime_seconds <= LIFETIME_SECONDS_MAX:
            raise InvalidRequest(f"a viewer's token lives 60 to {LIFETIME_SECONDS_MAX} seconds")
        if self.source == "metadata":
            return ""
        key_of(secret)
        return secret.strip()


def key_of(secret: str) -> tuple[str, str]:
    """Who the key is of, and the key. Raises InvalidRequest without a word of it."""
    try:
        found = msgspec.json.decode(secret, type=dict[str, Any])
        email, pem = str(found["client_email"]), str(found["private_key"])
    except (msgspec.MsgspecError, KeyError) as problem:
        raise InvalidRequest("the secret is not a service account's key in JSON: check what was given") from problem
    private_key(pem)
    return email, pem


def minter(settings: Gcp, secret: str, *, reach: Reach, tools: Tools) -> Minter:
    async def mint() -> Token:
        if settings.source == "key" and not secret:
            raise MintFailed
        ours = await (by_metadata(settings, tools) if settings.source == "metadata" else by_key(settings, secret, reach, tools))
        url = f"{settings.iam}/v1/projects/-/serviceAccounts/{settings.account}:generateAccessToken"
        headers = {"authorization": f"Bearer {ours}", "content-type": "application/json"}
        body = msgspec.json.encode({"scope": list(settings.scopes), "lifetime": f"{settings.lifetime_seconds}s"})
        what = "the service for impersonation"
        found = await asked_json(tools, "POST", url, what=what, headers=headers, body=body, reach=reach)
        return Token(token_of(found, "accessToken", what=what), expiry(found, "expireTime", what=what))

    return Minter(mint, tools)


async def by_metadata(settings: Gcp, tools: Tools) -> str:
    url = f"{settings.metadata}/computeMetadata/v1/instance/service-accounts/default/token"
    what = "the metadata service"
    headers = {"metadata-flavor": "Google"}
    found = await asked_json(tools, "GET", url, what=what, headers=headers, body=b"", reach=Reach.METADATA)
    return token_of(found, "access_token", what=what)


async def by_key(settings: Gcp, secret: str, reach: Reach, tools: Tools) -> str:
    email, pem = key_of(secret)
    now = tools.clock.now() // 1_000_000
    claims = {"iss": email, "scope": CLOUD, "aud": settings.tokens, "iat": now, "exp": now + LIFETIME_SECONDS_MAX}
    said = {"grant_type": GRANT, "assertion": jwt.encode(claims, private_key(pem), algorithm="RS256")}
    headers = {"content-type": "application/x-www-form-urlencoded"}
    what = "the token service"
    found = await asked_json(
        tools, "POST", settings.tokens, what=what, headers=headers, body=urlencode(said).encode(), reach=reach
    )
    return token_of(found, "access_token", what=what)
