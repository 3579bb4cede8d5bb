"""What one box may ask of the gateway in its life: calls, and bytes both ways, in all and over each connection.

A box that is led astray can copy everything it may read, one allowed call at a time. A budget is where that ends. Each process
that serves the gateway counts what comes by it, from its own start.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Annotated, Final

import msgspec

from herdbook.base import limits
from herdbook.base.errors import HerdbookError

ACCOUNTS_MAX: Final = 50_000
Amount = Annotated[int, msgspec.Meta(ge=1, le=2**53)]


class OverBudget(HerdbookError):
    """This box has spent what it may ask of the gateway: go on in a new box, or raise `herdbook gateway budget`."""

    code, status = "over_budget", 429


class Budget(msgspec.Struct, frozen=True):
    """How much one box may; None is as much as there is."""

    calls: Amount | None = None
    bytes_up: Amount | None = None
    bytes_down: Amount | None = None


OF_A_BOX: Final = Budget(limits.GATEWAY_BOX_CALLS_MAX, limits.GATEWAY_BOX_BYTES_UP_MAX, limits.GATEWAY_BOX_BYTES_DOWN_MAX)


@dataclass(slots=True)
class Spent:
    calls: int = 0
    bytes_up: int = 0
    bytes_down: int = 0


@dataclass(frozen=True, slots=True)
class Account:
    """What a call spends from: the box's own budget, and its budget over one connection."""

    parts: tuple[tuple[str, Budget, Spent], ...]

    def call(self) -> None:
        """One more call, if there is something left of everything."""
        for whose, budget, spent in self.parts:
            for name in ("bytes_up", "bytes_down"):
                most = getattr(budget, name)
                if most is not None and getattr(spent, name) >= most:
                    raise over(whose, name, most)
        self.spend("calls", 1)

    def spend(self, name: str, amount: int) -> None:
        """Raises OverBudget before anything past it is passed on."""
        for whose, budget, spent in self.parts:
            most = getattr(budget, name)
            if most is not None and getattr(spent, name) + amount > most:
                raise over(whose, name, most)
        for _, _, spent in self.parts:
            setattr(spent, name, getattr(spent, name) + amount)


@dataclass(slots=True)
class Ledger:
    """The accounts of all boxes; those that were used longest ago are forgotten first."""

    spent: OrderedDict[tuple[str, str], Spent] = field(default_factory=OrderedDict)

    def account(self, box: str, connection: str, budget: Budget) -> Account:
        over_it = (f"this box over {connection}", budget, self.of(box, connection))
        return Account((("this box", OF_A_BOX, self.of(box, "")), over_it))

    def of(self, box: str, connection: str) -> Spent:
        found = self.spent.setdefault((box, connection), Spent())
        self.spent.move_to_end((box, connection))
        if len(self.spent) > ACCOUNTS_MAX:
            self.spent.popitem(last=False)
        return found


def over(whose: str, name: str, most: int) -> OverBudget:
    what = {"calls": "calls", "bytes_up": "bytes sent", "bytes_down": "bytes received"}[name]
    return OverBudget(f"{whose} may have {most} {what} and asks for more: go on in a new box, or raise `herdbook gateway budget`")
