"""The seal key: one file of its own, 0600, outside the record. Whoever copies the record without it cannot forge what it says."""

from __future__ import annotations

from pathlib import Path

from herdbook.base import key_file
from herdbook.base.errors import SealKeyMissing, SealKeyWrong
from herdbook.record.seals import KEY_BYTES


def load(path: Path) -> bytes | None:
    """The key, or None where there is no file."""
    try:
        return key_file.read(path, key_bytes=KEY_BYTES)
    except (OSError, ValueError) as problem:
        raise SealKeyWrong(f"{path} does not hold a seal key ({problem}): put the right key file back") from problem


def create(path: Path) -> bytes:
    """Make a new key; if another process was first, take that one."""
    try:
        key_file.make(path, key_bytes=KEY_BYTES)
    except OSError as problem:
        raise SealKeyMissing(
            f"no seal key can be made at {path} ({problem.strerror}): make room there, or set another place"
        ) from problem
    key = load(path)
    if key is None:
        raise SealKeyMissing(f"{path} appeared and vanished: put the key file back")
    return key
