"""Which of two models answers a run, where one of them is being tried. Pure: the same run gets the same one, on every server.

An entity path that is named gets the new model; else a share of the runs does, by a hash of the alias and the run. Widening the
share moves nobody back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

from herdbook.base.reach import is_below

BUCKETS: Final = 10_000  # a hundredth of a percent


def chosen(route: Mapping[str, Any], *, alias: str, entity: str | None, unit: str) -> dict[str, Any]:
    """The model that answers. `unit` is what stays with one model: a run, or, without one, a conversation."""
    tried = route["before"] is None or is_named(entity, route["entities"]) or bucket(alias, unit) < share(route)
    found: dict[str, Any] = route["model"] if tried else route["before"]
    return found


def share(route: Mapping[str, Any]) -> int:
    """Of all runs so many buckets."""
    percent: float = route["percent"]
    return round(percent / 100 * BUCKETS)


def is_named(entity: str | None, entities: Sequence[str]) -> bool:
    return entity is not None and any(is_below(entity, path) for path in entities)


def bucket(alias: str, unit: str) -> int:
    digest = blake2b(f"{alias}\0{unit}".encode(), digest_size=8).digest()
    number = int.from_bytes(digest, "big")
    return number % BUCKETS
