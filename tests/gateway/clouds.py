"""GitHub, Google and the metadata service as their documents describe them, over a service on this machine."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from herdbook.base import clock
from tests.gateway.upstream import Answer, Asked, Upstream, whole

MINTED = "ghs_minted-canary-{number:04d}"
VIEWER = "ya29.viewer-canary-{number:04d}"
OURS = "ya29.ours-canary"


def new_key() -> tuple[str, Any]:
    """A fresh private key in PEM form, and its public half."""
    key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode(), key.public_key()


def said(body: object, *, status: str = "200 OK") -> Answer:
    return whole(json.dumps(body).encode(), status=status, headers=b"Content-Type: application/json\r\n")


class GitHub:
    """POST /app/installations/{id}/access_tokens, checked as GitHub checks it."""

    def __init__(self, upstream: Upstream, public_key: Any, source: clock.Clock, *, app: str = "Iv1.app") -> None:
        self.public_key, self.clock, self.app = public_key, source, app
        self.asked: list[dict[str, Any]] = []
        self.good: set[str] = set()
        upstream.answers["/app/installations/42/access_tokens"] = self.mint
        upstream.answers["/repos/acme/web"] = self.repository

    async def mint(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        token = asked.values("authorization")[0].removeprefix("Bearer ")
        now = self.clock.now() // 1_000_000
        claims = jwt.decode(token, self.public_key, algorithms=["RS256"], options={"verify_exp": False, "verify_iat": False})
        fine = claims["iss"] == self.app and claims["iat"] <= now < claims["exp"] <= now + 600
        if not fine or asked.method != "POST" or asked.values("x-github-api-version") != ["2022-11-28"]:
            await said({"message": "A JSON web token could not be decoded"}, status="401 Unauthorized")(asked, writer)
            return
        self.asked.append(json.loads(asked.body))
        minted = MINTED.format(number=len(self.asked))
        self.good = {minted}
        expires = clock.iso((now + 3_600) * 1_000_000)[:19] + "Z"
        await said({"token": minted, "expires_at": expires, "permissions": {"contents": "read"}}, status="201 Created")(
            asked, writer
        )

    async def repository(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        token = asked.values("authorization")[0].removeprefix("Bearer ")
        status = "200 OK" if token in self.good else "401 Unauthorized"
        await said({"full_name": "acme/web", "seen": token}, status=status)(asked, writer)


class Google:
    """The metadata service, the token service, and generateAccessToken."""

    def __init__(self, upstream: Upstream, source: clock.Clock, *, public_key: Any = None) -> None:
        self.url, self.clock, self.public_key = upstream.url, source, public_key
        self.asked: list[dict[str, Any]] = []
        self.as_whom: list[str] = []
        upstream.answers["/computeMetadata/v1/instance/service-accounts/default/token"] = self.metadata
        upstream.answers["/token"] = self.tokens
        account = "viewer@acme.iam.gserviceaccount.com"
        upstream.answers[f"/v1/projects/-/serviceAccounts/{account}:generateAccessToken"] = self.impersonate
        upstream.answers["/v2/entries:list"] = self.entries

    async def metadata(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        fine = asked.values("metadata-flavor") == ["Google"]
        self.as_whom.append("metadata")
        answer = said({"access_token": OURS, "expires_in": 3_599, "token_type": "Bearer"}) if fine else said({}, status="403 No")
        await answer(asked, writer)

    async def tokens(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        from urllib.parse import parse_qs

        form = parse_qs(asked.body.decode())
        assert ["urn:ietf:params:oauth:grant-type:jwt-bearer"] == form["grant_type"]
        claims = jwt.decode(
            form["assertion"][0],
            self.public_key,
            algorithms=["RS256"],
            audience=f"{self.url}/token",
            options={"verify_exp": False},
        )
        self.as_whom.append(claims["iss"])
        await said({"access_token": OURS, "expires_in": 3_599, "token_type": "Bearer"})(asked, writer)

    async def impersonate(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.values("authorization") != [f"Bearer {OURS}"]:
            await said({"error": {"code": 403}}, status="403 Forbidden")(asked, writer)
            return
        self.asked.append(json.loads(asked.body))
        until = clock.iso(self.clock.now() + int(self.asked[-1]["lifetime"].rstrip("s")) * 1_000_000)[:19] + "Z"
        await said({"accessToken": VIEWER.format(number=len(self.asked)), "expireTime": until})(asked, writer)

    async def entries(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        await said({"entries": [], "seen": asked.values("authorization")})(asked, writer)
