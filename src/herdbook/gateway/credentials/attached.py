"""What a credential adds to a request, and what of it must never be seen again."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Attached:
    """Headers, a query parameter or the path itself; `secrets` are the texts to look for in answers."""

    headers: tuple[tuple[bytes, bytes], ...] = field(default=(), repr=False)
    query: bytes = field(default=b"", repr=False)
    prefix: bytes = field(default=b"", repr=False)  # before the path of the request
    secrets: tuple[str, ...] = field(default=(), repr=False)
