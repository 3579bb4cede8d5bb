"""How many connections each key has open over HTTP: bounded, and let go when nobody has used them for a while. Time is handed in.

The SDK keeps the connections themselves and ends the idle ones; here stands whose they are, so that one key cannot take all of
them, and so that the run of one that is gone can be ended.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from herdbook.base import limits
from herdbook.base.errors import NotFound, TooManyRequests
from herdbook.service.callers import Caller


@dataclass(slots=True)
class Connections:
    """Those that are open, the one that was idle longest first."""

    now: Callable[[], float]
    each_max: int = limits.MCP_CONNECTIONS_MAX
    idle_seconds: float = limits.MCP_IDLE_SECONDS_MAX
    held: OrderedDict[str, tuple[Caller, float]] = field(default_factory=OrderedDict)
    counts: Counter[tuple[object, ...]] = field(default_factory=Counter)

    def admit(self, caller: Caller) -> None:
        """Another one may be opened. Raises TooManyRequests."""
        if self.counts[owner(caller)] >= self.each_max:
            raise TooManyRequests(
                f"this key has {self.each_max} connections open: end some (DELETE /mcp), or wait until idle ones are let go",
                retry_after=min(60, round(self.idle_seconds)),
            )

    def opened(self, name: str, caller: Caller) -> None:
        self.held[name] = (caller, self.now())
        self.counts[owner(caller)] += 1

    def used(self, name: str, caller: Caller) -> None:
        """A request on it. Raises NotFound where it is over, or another's, so that the client begins another one."""
        whose, _ = self.held.get(name, (None, 0.0))
        if whose is None or owner(whose) != owner(caller):
            raise NotFound("this connection is over: begin another one with `initialize`")
        self.held[name] = (whose, self.now())
        self.held.move_to_end(name)

    def closed(self, name: str) -> Caller | None:
        """Whose it was, where it was open."""
        caller, _ = self.held.pop(name, (None, 0.0))
        if caller is not None:
            self.counts[owner(caller)] -= 1
            if not self.counts[owner(caller)]:
                del self.counts[owner(caller)]
        return caller

    def idle(self) -> list[str]:
        """Those nobody has used for too long."""
        late = self.now() - self.idle_seconds
        found = []
        for name, (_, at) in self.held.items():
            if at > late:
                break
            found.append(name)
        return found

    def next_seconds(self) -> float:
        """Until one of them may have been idle for too long: not before, since whatever is opened meanwhile has longer."""
        _, at = next(iter(self.held.values()), (None, self.now()))
        return max(0.0, at + self.idle_seconds - self.now())


def owner(caller: Caller) -> tuple[object, ...]:
    """Whose connections are counted together: a key's, a box's, or everybody's who comes by the server's own key."""
    return caller.tenant, caller.payer or caller.key or caller.identity, caller.box
