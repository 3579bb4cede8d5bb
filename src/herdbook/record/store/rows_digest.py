"""What a table holds, as its number of rows and one digest of them in any order, so that two engines' copies can be compared.

It is for accidents, not for forgers: what was written is guarded by its seal, wherever it is copied to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

Tables = dict[str, tuple[int, str]]  # by name: how many rows, and their digest
MODULUS = 1 << 128


def digest_of(rows: Iterable[tuple[Any, ...]]) -> tuple[int, str]:
    """How many rows there are, and the sum of their digests: the same in any order, another for any other rows."""
    digests = [int.from_bytes(hashlib.sha256(repr(row).encode()).digest()[:16], "big") for row in rows]
    return len(digests), f"{sum(digests) % MODULUS:032x}"


def difference(expected: Tables, found: Tables) -> str:
    """The first table in which two copies differ, as a sentence's middle; empty when they are the same."""
    for name in sorted(expected.keys() | found.keys()):
        there, here = expected.get(name), found.get(name)
        if there != here:
            return (
                f"table {name} has {here[0] if here else 'no'} rows, and not the same {there[0] if there else 'none'} as it had"
            )
    return ""
