"""What a box's address ends in, where a provider's connector says only that one of its boxes calls: `BOX~CLAIM`.

A host makes it up and tells it to that box alone; the record keeps its digest. It opens nothing by itself: it counts only behind
a connector that shows a key. It keeps a box from calling in the name of another one.
"""

from __future__ import annotations

import secrets
from hashlib import sha256
from typing import Final

CLAIM_MARK: Final = "~"  # in no box's name


def new_claim() -> str:
    return secrets.token_urlsafe(16)


def digest_of(claim: str) -> str:
    return sha256(claim.encode()).hexdigest()


def parted(claimed: str) -> tuple[str, str]:
    """The box that an address names, and the digest of its claim; where there is none, of nothing."""
    box, _, claim = claimed.partition(CLAIM_MARK)
    return box, digest_of(claim)
