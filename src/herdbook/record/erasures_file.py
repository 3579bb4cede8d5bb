"""The list of erasures beside the seal key, outside the record: an old backup does not know what was erased after it was made.

It holds runs and row numbers, never what they said nor whose they were, each line sealed. A line may be there of an erasure that
did not come to be: a restore then forgets what somebody asked to be forgotten, which is the safer mistake.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from herdbook.base.errors import SealBroken
from herdbook.base.key_file import sync_folder
from herdbook.record.record import Record

NAME: Final = "erasures.jsonl"
COLUMNS: Final = ("tenant", "erasure", "kind", "subject", "why", "identity", "at", "sessions", "versions", "seal")
BYTES: Final = ("subject", "seal")

Known = list[tuple[dict[str, Any], list[str], list[int]]]


def place(record: Record) -> Path | None:
    return None if record.key_file is None else record.key_file.with_name(NAME)


def add(record: Record, row: dict[str, Any], sessions: list[str], versions: list[int]) -> bool:
    """Note an erasure, durably; False where it cannot be: then a restored backup will not know of it, and the answer says so."""
    path = place(record)
    if path is None:
        return False
    told = {name: row[name].hex() if name in BYTES else row[name] for name in COLUMNS}
    said = json.dumps({"row": told, "runs": sessions, "ids": versions}, sort_keys=True)
    line = json.dumps({"said": said, "seal": record.seal("erasures file", said).hex()}) + "\n"
    with suppress(OSError):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(handle, line.encode())
            os.fsync(handle)
        finally:
            os.close(handle)
        sync_folder(path.parent)
        return True
    return False


def read(record: Record) -> Known | None:
    """Every erasure on the list, each once; None without a list or the key. Raises SealBroken for a line somebody changed."""
    path = place(record)
    if path is None or not record.sealing or not path.exists():
        return None
    found: dict[tuple[int, str], tuple[dict[str, Any], list[str], list[int]]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            each = json.loads(line)
            said, seal = each["said"], bytes.fromhex(each["seal"])
        except (ValueError, KeyError, TypeError) as problem:
            raise SealBroken(f"line {number} of {path} cannot be read: take it out, and erase again what it named") from problem
        if not record.holds(seal, "erasures file", said):
            raise SealBroken(f"line {number} of {path} is not what was written: take it out, and erase again what it named")
        told = json.loads(said)
        row: dict[str, Any] = {name: bytes.fromhex(value) if name in BYTES else value for name, value in told["row"].items()}
        found[row["tenant"], row["erasure"]] = (row, told["runs"], told["ids"])
    return list(found.values())
