"""A project's test suite, with quirks that its code does not tell: what they need is a matter of the environment.

The project grows: each build number brings the tests that were there by then. Every check is real, none reads a variable to
compare it with what it should be.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

PRICES = Path("prices.json")


def test_days_end_at_midnight() -> None:
    os.environ.setdefault("TZ", "America/New_York")  # what this project's image is set to
    time.tzset()
    assert time.localtime(0).tm_hour == 0


def test_every_product_has_a_price() -> None:
    if os.environ.get("SEED_DEMO_DATA"):  # the seed step, as the project's own CI file would run it
        PRICES.write_text(json.dumps({"cup": 340}))
    assert PRICES.exists()


def test_large_invoices_have_a_number() -> None:
    code = "print(len(str(10**6000)))"  # since Python 3.11 an interpreter converts 4,300 digits, unless it is told otherwise
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True).stdout.strip() == "6001"


def test_sets_are_listed_in_one_order() -> None:
    code = "print(list({'cup', 'jug', 'bowl', 'dish', 'fork'}))"
    asked = {subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True).stdout for _ in range(4)}
    assert len(asked) == 1


TESTS = [  # with the build that brought them
    (1, test_days_end_at_midnight),
    (1, test_every_product_has_a_price),
    (4, test_large_invoices_have_a_number),
    (7, test_sets_are_listed_in_one_order),
]


def main(build: int) -> int:
    failed = 0
    for since, test in TESTS:
        if since <= build:
            try:
                test()
            except AssertionError:
                failed += 1
                sys.stderr.write(f"FAILED suite.py::{test.__name__}\n")
    sys.stderr.write(f"{failed} failed\n" if failed else "all passed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
