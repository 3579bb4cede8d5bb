"""Seals: a keyed hash over everything a row says, so that what is read is what was written. Pure: no I/O.

HMAC-SHA256 over the parts with unmistakable borders: without them, moving a byte from one part to the next would keep the seal.
"""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache
from typing import Final

SEAL_BYTES: Final = 32
KEY_BYTES: Final = 32

Part = str | bytes | int | float | None


def packed(parts: tuple[Part, ...]) -> bytes:
    """Parts as bytes that no other parts give: a Python literal in ASCII, which quotes and escapes, so no border can be moved."""
    return ascii(parts).encode()


def seal(key: bytes, *parts: Part) -> bytes:
    """The seal of these parts."""
    sealing = keyed(key).copy()
    sealing.update(packed(parts))
    return sealing.digest()


@lru_cache(maxsize=16)
def keyed(key: bytes) -> hmac.HMAC:
    """A hash that has seen the key and no word yet: the same for every seal, and a good part of what one costs.

    The one call that does all of it lets other threads run meanwhile, and a server's writer then waits for them at every seal."""
    return hmac.new(key, digestmod="sha256")


def holds(key: bytes, expected: bytes | None, *parts: Part) -> bool:
    """Whether `expected` is the seal of these parts; a missing one never holds."""
    return expected is not None and hmac.compare_digest(seal(key, *parts), expected)


def digest(*parts: Part) -> bytes:
    """An unkeyed hash of parts: names a claim or a request body."""
    return hashlib.sha256(packed(parts)).digest()
