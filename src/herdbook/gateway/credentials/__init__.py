"""How a credential becomes part of a request: one small file for each kind, all with the one call `attach`.

The settings of a kind are open; its secret is one text, sealed. Kinds that mint hand out what is short-lived and narrow, and
keep what it was minted with to themselves.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from herdbook.gateway.credentials import static
from herdbook.gateway.credentials.attached import Attached

Settings = static.Bearer | static.Header | static.Basic | static.Query | static.Path


class Credential(Protocol):
    """What a connection's calls are made with."""

    async def attach(self) -> Attached:
        """What to add to one request."""
        ...


def check_secret(settings: Settings, secret: str) -> str:
    """The secret in the form its kind needs. Raises InvalidRequest, which never quotes it."""
    return settings.checked(secret)


def credential(settings: Settings, secret: str) -> Credential:
    return static.Static(settings.attached(secret))


Ask = Callable[..., Awaitable[bytes]]
