"""Ids: short random names for things people see, time-ordered integers for rows.

A row id is microseconds since 2020 in the high bits and room for 2,048 ids a microsecond in the low ones: it fits SQLite's and
PostgreSQL's signed 64 bits until 2090, keeps neighbours in time neighbours in the B-tree, and needs no counter row to fight over.
It orders rows roughly; nothing may read it as a time.
"""

from __future__ import annotations

import secrets
import threading
import time

from herdbook.base.errors import InvalidRequest

EPOCH_MICROSECONDS = 1_577_836_800_000_000  # 2020-01-01
LOW_BITS = 11
ROW_ID_MAX = 2**63 - 1  # of what both engines hold


class RowIds:
    """A source of row ids: strictly increasing within one process; the store's primary key refuses the rare clash between two."""

    def __init__(self) -> None:
        self._last = 0
        self._salt = secrets.randbits(LOW_BITS)  # so that two processes in one microsecond rarely meet
        self._lock = threading.Lock()

    def next(self) -> int:
        with self._lock:
            fresh = (time.time_ns() // 1000 - EPOCH_MICROSECONDS) << LOW_BITS | self._salt
            self._last = max(self._last + 1, fresh)
            return self._last

    def stay_above(self, number: int) -> None:
        """Give only larger ids from now on, even after the clock was set back."""
        if number > self._last:
            with self._lock:
                self._last = max(self._last, number)


def row_id(told: str, *, otherwise: str) -> int:
    """A row id as it was told: in digits, since JavaScript counts no further than 2**53. Raises InvalidRequest `otherwise`."""
    if not (told.isascii() and told.isdigit() and len(told) <= len(str(ROW_ID_MAX)) and int(told) <= ROW_ID_MAX):
        raise InvalidRequest(otherwise)
    return int(told)


def new_name(prefix: str) -> str:
    """`s_3f9c...`: 80 random bits, for ids that travel."""
    return f"{prefix}_{secrets.token_hex(10)}"
