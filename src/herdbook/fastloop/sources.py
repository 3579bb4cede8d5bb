"""What the fast loop asks of the layers around it: the record below it and the two requests from above.

Only these methods are called; none of them writes but `text_add`, which fills the engine's text index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from herdbook.base.errors import HerdbookError
from herdbook.record.types import Head, HeadRow, Version


class Record(Protocol):
    """The part of the record that ranking needs; everything is asked under a tenant."""

    def heads(self, tenant: int, paths: Sequence[str]) -> list[HeadRow]: ...
    def subtree(self, tenant: int, path: str) -> list[HeadRow]: ...
    def trust_of(self, tenant: int, version_ids: Sequence[int]) -> dict[int, Head]: ...
    def stood_before(self, tenant: int, version_ids: Sequence[int]) -> dict[int, int]: ...
    def versions(self, tenant: int, ids: Sequence[int]) -> dict[int, Version | HerdbookError]: ...
    def base_rates(self, tenant: int, paths: Sequence[str]) -> dict[str, float]: ...
    def near(self, tenant: int, path: str, limit: int) -> list[str]: ...
    def text_behind(self, tenant: int, limit: int) -> list[int]: ...
    def text_add(self, tenant: int, rows: Sequence[tuple[int, str]]) -> None: ...
    def text_match(self, tenant: int, tokens: Sequence[str], limit: int) -> list[int]: ...


class BriefRequest(Protocol):
    """The fields of the verb `brief`."""

    @property
    def entity(self) -> str: ...
    @property
    def session(self) -> str | None: ...
    @property
    def task(self) -> str | None: ...
    @property
    def tokens(self) -> int: ...
    @property
    def names(self) -> bool: ...


class SearchRequest(Protocol):
    """The fields of the verb `search`."""

    @property
    def query(self) -> str: ...
    @property
    def entity(self) -> str | None: ...
    @property
    def session(self) -> str | None: ...
    @property
    def limit(self) -> int: ...


def reach(path: str, top: str | None) -> list[str]:
    """The path and its ancestors, deepest first, up to `top`; nothing when the path lies outside `top`."""
    if top is not None and path != top and not path.startswith(top + "/"):
        return []
    shallowest = 0 if top is None else top.count("/")
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(len(parts), shallowest, -1)]
