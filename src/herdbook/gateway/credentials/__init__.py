"""How a credential becomes part of a request: one small file for each kind, all with the same two calls.

The settings of a kind are open; its secret is one text, sealed. A kind that mints hands out what is short-lived and narrow, and
what it was minted with never leaves the gateway.
"""

from __future__ import annotations

from typing import Protocol

from herdbook.gateway.credentials import box_pass, gcp, github_app, static
from herdbook.gateway.credentials.attached import Attached
from herdbook.gateway.credentials.minting import Tools
from herdbook.gateway.egress import Reach

Settings = (
    static.Bearer | static.Header | static.Basic | static.Query | static.Path | github_app.GithubApp | gcp.Gcp | box_pass.BoxPass
)


class Credential(Protocol):
    """What a connection's calls are made with."""

    async def attach(self, box: str) -> Attached:
        """What to add to one request of this box. Raises MintFailed."""
        ...

    def refused(self) -> None:
        """The service did not take it: what was minted is not used again."""
        ...


def check_secret(settings: Settings, secret: str) -> str:
    """The secret in the form its kind needs. Raises InvalidRequest, which never quotes it."""
    return settings.checked(secret)


def credential(settings: Settings, secret: str, *, base: str, reach: Reach, tools: Tools) -> Credential:
    """Ready for use. `base` is the address of the service it is for."""
    match settings:
        case github_app.GithubApp():
            return github_app.minter(settings, secret, base=base, reach=reach, tools=tools)
        case gcp.Gcp():
            return gcp.minter(settings, secret, reach=reach, tools=tools)
        case box_pass.BoxPass():
            return box_pass.Passes(tools)
        case _:
            return static.Static(settings.attached(secret))
