"""Who keeps the key that opens data keys: a file here, a key service elsewhere. Secrets themselves never come this far.

A key service is any class with these two calls, handed to the vault in place of FileKeeper.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import Final, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from herdbook.base import key_file
from herdbook.base.errors import Broken

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12


class VaultKeyMissing(Broken):
    """The key that opens the gateway's secrets is missing: put the key file back, or set every secret anew."""

    code = "vault_key_missing"


class VaultBroken(Broken):
    """This connection is not what was written, or the key file is not the one it was sealed with: it is refused; add it anew."""

    code = "vault_broken"


class Keeper(Protocol):
    """Seals and opens data keys. `about` says what a data key is for, and has to be the same both times."""

    def wrap(self, data_key: bytes, *, about: bytes) -> bytes: ...

    def unwrap(self, wrapped: bytes, *, about: bytes) -> bytes: ...


class FileKeeper:
    """One key in one file, mode 0600, outside the vault: a copy of the vault alone opens nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.key: bytes | None = None

    def wrap(self, data_key: bytes, *, about: bytes) -> bytes:
        return seal(self.opened(), data_key, about=about)

    def unwrap(self, wrapped: bytes, *, about: bytes) -> bytes:
        return unseal(self.opened(), wrapped, about=about)

    def create(self) -> None:
        """Make the key where there is none yet."""
        try:
            key_file.make(self.path, key_bytes=KEY_BYTES)
        except OSError as problem:
            raise VaultKeyMissing(f"no key can be made at {self.path} ({problem.strerror}): make room there") from problem

    def opened(self) -> bytes:
        if self.key is None:
            self.key = self.read()
        return self.key

    def read(self) -> bytes:
        try:
            key = key_file.read(self.path, key_bytes=KEY_BYTES)
            mode = stat.S_IMODE(os.stat(self.path).st_mode) if key else 0
        except (OSError, ValueError) as problem:
            raise VaultKeyMissing(f"{self.path} does not hold a key ({problem}): put the right key file back") from problem
        if key is None:
            raise VaultKeyMissing(f"there is no key at {self.path}: put the key file back, or set every secret anew")
        if mode & 0o077:
            raise VaultKeyMissing(f"others may read {self.path}: run chmod 600 on it, and rotate every secret")
        return key


def seal(key: bytes, data: bytes, *, about: bytes) -> bytes:
    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, data, about)


def unseal(key: bytes, sealed: bytes, *, about: bytes) -> bytes:
    try:
        return AESGCM(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], about)
    except (InvalidTag, ValueError) as problem:
        raise VaultBroken from problem
