"""What the verbs about keys, tenants and passes answer."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class BoxPassMade(TypedDict):
    box: str
    token: str
    reach: list[str]
    connections: list[str]
    expires_at: str


class BoxPassChecked(TypedDict):
    valid: bool
    why: str | None  # not
    box: NotRequired[str]
    identity: NotRequired[str]
    reach: NotRequired[list[str]]
    connections: NotRequired[list[str]]
    expires_at: NotRequired[str]
