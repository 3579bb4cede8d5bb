"""Seals: a keyed hash over everything a row says, so that what is read is what was written. Pure: no I/O.

HMAC-SHA256 over the parts with unmistakable borders: without them, moving a byte from one part to the next would keep the seal.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

SEAL_BYTES: Final = 32
KEY_BYTES: Final = 32

Part = str | bytes | int | float | None


def packed(parts: tuple[Part, ...]) -> bytes:
    """Parts as bytes that no other parts give: a Python literal in ASCII, which quotes and escapes, so no border can be moved."""
    return ascii(parts).encode()


def seal(key: bytes, *parts: Part) -> bytes:
    """The seal of these parts."""
    return hmac.digest(key, packed(parts), "sha256")


def holds(key: bytes, expected: bytes | None, *parts: Part) -> bool:
    """Whether `expected` is the seal of these parts; a missing one never holds."""
    return expected is not None and hmac.compare_digest(seal(key, *parts), expected)


def digest(*parts: Part) -> bytes:
    """An unkeyed hash of parts: names a claim or a request body."""
    return hashlib.sha256(packed(parts)).digest()
