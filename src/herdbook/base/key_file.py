"""A secret key in a file of its own: hexadecimal, mode 0600, made whole or not at all, and never over another's."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def read(path: Path, *, key_bytes: int) -> bytes | None:
    """The key, or None where there is no file. Raises OSError, or ValueError for a file that holds no such key."""
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except FileNotFoundError:
        return None
    if len(key) != key_bytes:
        raise ValueError(f"it holds {len(key)} bytes, and such a key has {key_bytes}")
    return key


def make(path: Path, *, key_bytes: int) -> bool:
    """Write a new key, durably; False where another process was first. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, secrets.token_bytes(key_bytes).hex().encode() + b"\n")
        os.fsync(descriptor)
        os.link(draft, path)
        sync_folder(path.parent)
    except FileExistsError:
        return False
    finally:
        os.close(descriptor)
        draft.unlink()
    return True


def sync_folder(path: Path) -> None:
    """A power cut must not take a file's name away while what depends on it stays."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
