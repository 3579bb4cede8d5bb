"""What an access key looks like: `hb_<lookup id>_<secret>`. Pure but for the randomness of a new one.

The lookup id begins with its tenant's number, so the row is found under that tenant and no other. The secret has 190 random bits
and ends in a checksum: a typo, a cut-off paste or another product's key is told apart without asking the record, and a scanner
knows a key from a word. The record keeps a digest; with so much randomness one fast hash is enough, and nobody can guess.
"""

from __future__ import annotations

import re
import secrets
from hashlib import blake2b
from typing import Final, NamedTuple
from zlib import crc32

LETTERS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ID_LETTERS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
ID_RANDOM: Final = 12
SECRET_RANDOM: Final = 32
CHECKSUM: Final = 6
PREFIX: Final = "hb_"
SHAPE: Final = re.compile(rf"hb_([1-9][0-9]{{0,15}})k([0-9a-z]{{{ID_RANDOM}}})_([0-9A-Za-z]{{{SECRET_RANDOM + CHECKSUM}}})")


class Shown(NamedTuple):
    """A key as somebody shows it: whose it says it is, by which name the record knows it, and the digest to compare."""

    tenant: int
    id: str
    digest: bytes


def new(tenant: int) -> tuple[str, Shown]:
    """A fresh key of a tenant, to be shown once, and what the record keeps of it."""
    lookup = f"{tenant}k" + "".join(secrets.choice(ID_LETTERS) for _ in range(ID_RANDOM))
    secret = "".join(secrets.choice(LETTERS) for _ in range(SECRET_RANDOM))
    key = f"{PREFIX}{lookup}_{secret}{checksum(f'{lookup}_{secret}')}"
    return key, Shown(tenant, lookup, digest(key))


def read(key: str) -> Shown | None:
    """What a key says of itself, or None for what is no key of ours. It proves nothing yet: compare the digests."""
    found = SHAPE.fullmatch(key)
    if found is None or checksum(key[len(PREFIX) : -CHECKSUM]) != key[-CHECKSUM:]:
        return None
    return Shown(int(found[1]), f"{found[1]}k{found[2]}", digest(key))


def digest(key: str) -> bytes:
    return blake2b(key.encode(), digest_size=32, person=b"herdbook key").digest()


def checksum(text: str) -> str:
    """Six letters that a typo changes."""
    number, letters = crc32(text.encode()), []
    for _ in range(CHECKSUM):
        number, at = divmod(number, len(LETTERS))
        letters.append(LETTERS[at])
    return "".join(letters)
