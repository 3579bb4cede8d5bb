"""A stand-in for the payment provider's sandbox, which turns away the first calls of every charge: more of them under load."""

from __future__ import annotations

from dataclasses import dataclass, field

TURNED_AWAY_AT_REST = 2
TURNED_AWAY_UNDER_LOAD = 4
EXPIRED_CARD = "4000-expired"


class TryAgain(Exception):
    """The provider is busy: the same call may succeed later."""


class CardDeclined(Exception):
    """The bank said no: calling again changes nothing."""


@dataclass
class PaymentSandbox:
    """Counts the calls of each charge, as the real one does."""

    loaded: bool = False
    calls: dict[str, int] = field(default_factory=dict)
    settled: dict[str, int] = field(default_factory=dict)

    def charge(self, reference: str, card: str, cents: int) -> str:
        self.calls[reference] = self.calls.get(reference, 0) + 1
        if card == EXPIRED_CARD:
            raise CardDeclined(reference)
        if self.calls[reference] <= (TURNED_AWAY_UNDER_LOAD if self.loaded else TURNED_AWAY_AT_REST):
            raise TryAgain(reference)
        self.settled[reference] = cents
        return f"receipt-{reference}"
