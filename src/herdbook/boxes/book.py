"""What the boxes need of the record: four verbs, on whatever object speaks them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Book(Protocol):
    """Called from several threads at once."""

    def box_open(
        self, *, box: str, provider: str, isolation: str, label: str, owner: str, lease_seconds: int, competes: bool, claim: str
    ) -> Mapping[str, Any]: ...

    def box_beat(self, *, box: str, lease_seconds: int, claim: str | None = None) -> Mapping[str, Any]: ...

    def box_close(self, *, box: str, detail: str | None) -> Mapping[str, Any]: ...

    def box_list(self, *, label: str | None, live: bool, limit: int) -> Mapping[str, Any]: ...
