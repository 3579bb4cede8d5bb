"""The record as a service: each call carries a pass of its box, so the record knows who asks and no box holds a key."""

from __future__ import annotations

import msgspec

from herdbook.base import clock
from herdbook.base.errors import InvalidRequest
from herdbook.gateway.credentials.attached import Attached
from herdbook.gateway.credentials.minting import EARLY_SECONDS, Token, Tools, bearer

BOXES_MAX = 1_000


class BoxPass(msgspec.Struct, frozen=True, tag="box-pass"):
    """There is no secret: the record that tells which boxes live also makes the passes."""

    def checked(self, secret: str) -> str:
        if secret:
            raise InvalidRequest("this kind has no secret: the record makes a pass for each box")
        return ""


class Passes:
    """A pass for each box, for the record only: it opens no connection of the gateway."""

    def __init__(self, tools: Tools) -> None:
        self.tools = tools
        self.made: dict[str, Token] = {}

    async def attach(self, box: str) -> Attached:
        token = self.made.get(box)
        if token is None or self.tools.clock.now() >= token.expires_at - EARLY_SECONDS * 1_000_000:
            said = await self.tools.verb("box_pass", {"box": box, "connections": []})
            token = Token(str(said["token"]), clock.from_iso(str(said["expires_at"])))
            if len(self.made) >= BOXES_MAX:
                self.made.clear()
            self.made[box] = token
            self.tools.minted(box, token.expires_at)
        return bearer(token.text)

    def refused(self) -> None:
        self.made.clear()
