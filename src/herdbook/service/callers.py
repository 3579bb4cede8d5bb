"""Who asks: made from a credential and a channel, never from a body. Scopes are denied unless given."""

from __future__ import annotations

from dataclasses import dataclass, field

from herdbook.base.reach import ANY, EVERYTHING, Reach
from herdbook.record.types import Stamp

SCOPES = ("read", "write", "attest", "host", "dispatch", "admin", "operator")
DEFAULT_TENANT = 1

# Requests a minute and changes a day: of the key, and of its tenant over all keys. None is as much as the machine gives.
Allowance = tuple[tuple[int | None, int | None], tuple[int | None, int | None]]
UNLIMITED: Allowance = ((None, None), (None, None))


@dataclass(frozen=True, slots=True)
class Caller:
    """A credential's owner, on one channel."""

    tenant: int
    identity: str
    scopes: frozenset[str]
    channel: str  # python, cli, mcp, rest or box
    box: str | None = None  # set by the listener that accepted the call
    origin: str = "operator"
    reach: Reach = EVERYTHING
    connections: tuple[str, ...] = ()  # names the gateway may use for it; `*` is any
    key: str | None = None  # the lookup id of the access key; None: the server's own key, or whoever is at the machine
    verbs: frozenset[str] | None = None  # only these of what the scopes allow
    allowance: Allowance = UNLIMITED
    payer: str | None = None  # the lookup id of the key whose allowance this spends, where it is not its own

    stamp: Stamp = field(init=False, compare=False)  # what the record keeps of it; made once, since every call needs it

    def __post_init__(self) -> None:
        stamp = Stamp(
            self.tenant, self.identity, self.channel, self.origin, self.box, "attest" in self.scopes, self.reach.written
        )
        object.__setattr__(self, "stamp", stamp)


def local_caller(identity: str, *, channel: str = "python") -> Caller:
    """Whoever can open the file is its operator and may do everything, attesting included."""
    return Caller(DEFAULT_TENANT, identity, frozenset(SCOPES), channel, connections=(ANY,))


def agent_caller(identity: str, *, channel: str = "mcp") -> Caller:
    """An agent that a person of this machine has started, through its tools: it claims, and attests nothing."""
    return Caller(DEFAULT_TENANT, identity, frozenset({"read", "write", "host"}), channel, origin="agent")


def box_caller(box: str, *, identity: str, tenant: int = DEFAULT_TENANT) -> Caller:
    """What runs inside a box: it reads, writes and claims; it never attests and never sees other boxes."""
    return Caller(tenant, identity, frozenset({"read", "write"}), "box", box, origin="agent")
