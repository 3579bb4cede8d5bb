"""Connections ready for use: opened once, and again when their file changes, so a revocation holds from the next byte on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from herdbook.gateway import credentials
from herdbook.gateway.connections import Connection, Target, target
from herdbook.gateway.credentials import Credential
from herdbook.gateway.credentials.minting import Tools
from herdbook.gateway.vault import Stamp, Vault


@dataclass(frozen=True, slots=True)
class Ready:
    """A connection with all that a call over it needs."""

    connection: Connection
    target: Target
    credential: Credential = field(repr=False)


class Catalogue:
    """The vault as the proxy sees it."""

    def __init__(self, vault: Vault, tools: Callable[[str], Tools]) -> None:
        self.vault, self.tools = vault, tools  # what the credential of that connection needs of the gateway
        self.opened: dict[str, tuple[Stamp, Ready]] = {}

    def names(self) -> list[str]:
        return self.vault.names()

    def get(self, name: str) -> Ready:
        """Raises NotFound or VaultBroken."""
        stamp = self.vault.stamp(name)
        known = self.opened.get(name)
        if known is None or known[0] != stamp:
            known = self.opened[name] = (stamp, self.ready(name))
        return known[1]

    def ready(self, name: str) -> Ready:
        kept = self.vault.get(name)
        made, reach = kept.connection, kept.connection.reaches
        credential = credentials.credential(made.credential, kept.secret, base=made.base, reach=reach, tools=self.tools(name))
        return Ready(made, target(made.base, reach=reach), credential)
