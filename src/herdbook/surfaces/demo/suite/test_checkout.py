"""Four tests. `LOAD=1`, or `--load` on `python3 -m checkout.test_checkout`, runs them against a loaded provider."""

from __future__ import annotations

import os
import sys
import unittest

from .payments import Line, pay, subtotal_cents, total_cents
from .sandbox import EXPIRED_CARD, CardDeclined, PaymentSandbox

CART = [Line("tea towel", 2, 1899), Line("enamel mug", 1, 1170)]
EXPECTED_SUBTOTAL_CENTS = 4968
EXPECTED_TOTAL_CENTS = 5278


def sandbox() -> PaymentSandbox:
    return PaymentSandbox(loaded=os.environ.get("LOAD") == "1")


class CheckoutTest(unittest.TestCase):
    def test_subtotal_adds_up(self) -> None:
        self.assertEqual(EXPECTED_SUBTOTAL_CENTS, subtotal_cents(CART))

    def test_total_includes_tax(self) -> None:
        self.assertEqual(EXPECTED_TOTAL_CENTS, total_cents(CART))

    def test_charge_settles(self) -> None:
        provider = sandbox()
        self.assertEqual("receipt-order-17", pay(provider, "order-17", "4111-good", 4968))
        self.assertEqual({"order-17": 4968}, provider.settled)

    def test_declined_card_is_asked_once(self) -> None:
        provider = sandbox()
        with self.assertRaises(CardDeclined):
            pay(provider, "order-18", EXPIRED_CARD, 4968)
        self.assertEqual(1, provider.calls["order-18"])


if __name__ == "__main__":
    if "--load" in sys.argv:
        sys.argv.remove("--load")
        os.environ["LOAD"] = "1"
    unittest.main()
