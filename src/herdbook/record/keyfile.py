"""The seal key: one file of its own, 0600, outside the record. Whoever copies the record without it cannot forge what it says."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from herdbook.base.errors import SealKeyMissing, SealKeyWrong
from herdbook.record.seals import KEY_BYTES


def load(path: Path) -> bytes | None:
    """The key, or None where there is no file."""
    try:
        text = path.read_text(encoding="ascii").strip()
        key = bytes.fromhex(text)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        raise SealKeyWrong(f"{path} does not hold a seal key ({problem}): put the right key file back") from problem
    if len(key) != KEY_BYTES:
        raise SealKeyWrong(f"{path} holds {len(key)} bytes, a seal key has {KEY_BYTES}: put the right key file back")
    return key


def create(path: Path) -> bytes:
    """Make a new key; if another process was first, take that one."""
    try:
        return created(path)
    except OSError as problem:
        raise SealKeyMissing(
            f"no seal key can be made at {path} ({problem.strerror}): make room there, or set another place"
        ) from problem


def created(path: Path) -> bytes:
    key = secrets.token_bytes(KEY_BYTES)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, key.hex().encode() + b"\n")
        os.fsync(descriptor)
        os.link(draft, path)  # whole or not at all, and never over another's
        sync_folder(path.parent)
    except FileExistsError:
        first = load(path)
        if first is None:
            raise SealKeyMissing(f"{path} appeared and vanished: put the key file back") from None
        return first
    finally:
        os.close(descriptor)
        draft.unlink()
    return key


def sync_folder(path: Path) -> None:
    """A power cut must not take the key's name away while what it sealed stays."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
