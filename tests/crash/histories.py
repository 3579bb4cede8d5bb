"""Checks what clients saw against what one copy of the record, used by one client at a time, could have shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def impossible(history: Iterable[dict[str, Any]]) -> list[str]:
    """Every pair that no single order explains. An operation without an end may have happened at any time after it began.

    Versions of a key are numbered without a gap, so that their order is known; what is left to check is that it agrees with time:
    what ended before another began has the smaller version, and nobody saw a version before its writing began.
    """
    found: list[str] = []
    by_key: dict[str, list[dict[str, Any]]] = {}
    for operation in history:
        if operation["version"] is not None:
            by_key.setdefault(operation["key"], []).append(operation)
    for operations in by_key.values():
        found += against_time(operations)
        writes = {operation["version"]: operation for operation in operations if operation["role"] == "write"}
        for read in (operation for operation in operations if operation["role"] == "read"):
            write = writes.get(read["version"])
            if write is not None and (write["begun"] > read["ended"] or write["name"] != read["saw"]):
                found.append(f"{read} saw what was not yet, or another's: {write}")
    return found


def against_time(operations: list[dict[str, Any]]) -> list[str]:
    """Each operation against the newest version that any operation had shown before it began."""
    found: list[str] = []
    ended = sorted((operation for operation in operations if operation["ended"] is not None), key=lambda each: each["ended"])
    shown, newest = 0, None
    for operation in sorted(operations, key=lambda each: each["begun"]):
        while shown < len(ended) and ended[shown]["ended"] < operation["begun"]:
            if newest is None or ended[shown]["version"] > newest["version"]:
                newest = ended[shown]
            shown += 1
        least = 0 if newest is None else newest["version"] + (operation["role"] == "write")
        if operation["version"] < least:
            found.append(f"{operation} went back behind {newest}")
    return found
