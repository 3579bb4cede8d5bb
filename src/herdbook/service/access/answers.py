"""What the verbs about keys, tenants and passes answer."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


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


class KeyView(TypedDict):
    """What a key may do; `key` itself is only in the answer that made it."""

    id: str
    name: str
    identity: str
    role: str
    attest: bool
    verbs: list[str] | None
    reach: list[str]
    connections: list[str]
    rate_minute: int | None
    quota_day: int | None
    created_at: str
    created_by: str
    ends_at: str | None
    live: bool
    key: NotRequired[str]


class Keys(TypedDict):
    keys: list[KeyView]


class KeysRevoked(TypedDict):
    revoked: list[str]
    at: str


class TenantView(TypedDict):
    tenant: str
    number: int
    rate_minute: int | None
    quota_day: int | None
    key: NotRequired[str]  # an admin's, told once


class Tenants(TypedDict):
    tenants: list[TenantView]


class ActView(TypedDict):
    at: str
    identity: str
    key: str | None
    box: str | None
    channel: str
    verb: str
    entity: str | None
    what: dict[str, Any]
    code: str
    request: str
    seal: str


class AuditAnswer(TypedDict):
    acts: list[ActView]
    next: str | None
    problems: NotRequired[list[str]]


class Change(TypedDict):
    id: str  # its place in the feed
    what: str  # version, outcome, attestation or revision
    entity: str | None
    key: str | None
    version: int | None
    ref: str | None
    kind: str  # of the version, or what the outcome was or was said to be
    author: str
    identity: str
    session: str | None
    box: str | None
    at: str


class ChangesAnswer(TypedDict):
    changes: list[Change]
    next: str
