"""Sales tax in whole cents, rounded the way the environment says."""

from __future__ import annotations

import os
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

ROUNDING_MODES = {"half_up": ROUND_HALF_UP, "half_even": ROUND_HALF_EVEN}
TAX_RATE = Decimal("0.0625")


def rounding_mode() -> str:
    """`ROUNDING_MODE`: how a fraction of a cent becomes a cent; half_up where nobody says otherwise."""
    name = os.environ.get("ROUNDING_MODE", "half_up")
    if name not in ROUNDING_MODES:
        raise ValueError(f"ROUNDING_MODE is {name!r}: use one of {', '.join(sorted(ROUNDING_MODES))}")
    return ROUNDING_MODES[name]


def tax_cents(subtotal_cents: int) -> int:
    return int((subtotal_cents * TAX_RATE).quantize(Decimal(1), rounding=rounding_mode()))
