"""Time is handed in: nothing below a surface looks at the wall clock by itself. Times are whole microseconds since 1970, UTC."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol

MICROSECONDS_PER_DAY = 86_400_000_000


class Clock(Protocol):
    """Where the record's time comes from."""

    def now(self) -> int:
        """Microseconds since 1970, UTC."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> int:
        return time.time_ns() // 1000


@dataclass
class TickClock:
    """Time that moves only when somebody says so: for tests and simulations."""

    at: int = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z

    def now(self) -> int:
        return self.at

    def tick(self, *, seconds: float = 0, days: float = 0) -> None:
        """Move time by this much; negative moves it back."""
        self.at += round(seconds * 1_000_000 + days * MICROSECONDS_PER_DAY)


def iso(at: int) -> str:
    """`2026-01-01T00:00:00.000000Z`, the one form times have in answers."""
    whole, micros = divmod(at, 1_000_000)
    return f"{to_the_second(whole)}.{micros:06d}Z"


@lru_cache(maxsize=1_024)  # a busy second is asked for thousands of times
def to_the_second(at: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))


def from_iso(text: str) -> int:
    """Microseconds of an ISO 8601 time; one without a zone is read as UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1_000_000)
