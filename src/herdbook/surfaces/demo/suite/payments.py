"""Totals a cart and charges a card, calling the provider again while it is busy and the retry budget lasts."""

from __future__ import annotations

import os
from dataclasses import dataclass

from .sandbox import PaymentSandbox, TryAgain
from .tax import tax_cents


@dataclass(frozen=True)
class Line:
    name: str
    quantity: int
    unit_cents: int


def subtotal_cents(cart: list[Line]) -> int:
    return sum(line.quantity * line.unit_cents for line in cart)


def total_cents(cart: list[Line]) -> int:
    subtotal = subtotal_cents(cart)
    return subtotal + tax_cents(subtotal)


def retry_budget() -> int:
    """`RETRY_BUDGET`: how many calls one charge may make; a single one where nobody says otherwise."""
    return int(os.environ.get("RETRY_BUDGET", "1"))


def pay(sandbox: PaymentSandbox, reference: str, card: str, cents: int) -> str:
    """The receipt of a settled charge; TryAgain when the budget is spent, CardDeclined at once."""
    for _ in range(retry_budget() - 1):
        try:
            return sandbox.charge(reference, card, cents)
        except TryAgain:
            continue
    return sandbox.charge(reference, card, cents)
