"""What the verbs about keys, tenants and passes take."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from herdbook.base import limits
from herdbook.service.requests import Page, Request

KeySeconds = Annotated[int, Meta(ge=1, le=limits.KEY_SECONDS_MAX)]
Grace = Annotated[int, Meta(ge=0, le=limits.KEY_GRACE_SECONDS_MAX)]
Amount = Annotated[int, Meta(ge=1, le=10**9)]
PassSeconds = Annotated[int, Meta(ge=1, le=limits.BOX_PASS_SECONDS_MAX)]


class MakeBoxPass(Request, frozen=True, kw_only=True):
    """A short-lived, signed pass for one box that lives: for listeners that cannot tell boxes by their socket."""

    box: str
    reach: list[str] | None = None  # entity-path patterns; without a word, those of the key that asks
    connections: list[str] | None = None  # names the gateway may use for it; without a word, those of the key that asks
    seconds: PassSeconds = limits.BOX_PASS_SECONDS_MAX


class CheckBoxPass(Request, frozen=True, kw_only=True):
    """Whether a pass holds now: signed here, in time, and of a box that lives."""

    token: str


class CreateKey(Request, frozen=True, kw_only=True):
    """A new access key, told once and never again. Nobody hands on more than they have."""

    name: str  # for people; one living key a name
    role: Literal["reader", "writer", "box", "host", "watcher", "admin", "operator"] = "writer"
    identity: str | None = None  # who reads and writes with it, as others will see it; the name without a word
    reach: list[str] | None = None  # entity-path patterns; without a word, those of the key that asks
    verbs: list[str] | None = None  # only these of the role's
    connections: list[str] | None = None  # names the gateway may use for it; `*` is any; none without a word
    attest: bool = False  # may vouch for outcomes: CI, a host, a human; never a box
    seconds: KeySeconds | None = None  # until it ends by itself
    rate_minute: Amount | None = None  # requests a minute
    quota_day: Amount | None = None  # requests that change something, a day


class ListKeys(Request, frozen=True, kw_only=True):
    """The keys of this tenant, with what they may do; never the keys themselves."""


class RevokeKey(Request, frozen=True, kw_only=True):
    """End a key, by its name or lookup id: it opens nothing from the next request on, on every server."""

    name: str


class RotateKey(Request, frozen=True, kw_only=True):
    """A new key in place of another, for the same. The old one goes on for `grace_seconds`."""

    name: str
    grace_seconds: Grace = 0


class CreateTenant(Request, frozen=True, kw_only=True):
    """A new tenant, whose rows no key of another one reaches, and its first admin key, told once."""

    tenant: str
    rate_minute: Amount | None = None  # requests a minute over all its keys
    quota_day: Amount | None = None  # requests that change something, a day, over all its keys


class ListTenants(Request, frozen=True, kw_only=True):
    """The tenants of this record: for the operator of the server alone."""


class LimitTenant(Request, frozen=True, kw_only=True):
    """What a tenant as a whole may ask for from now on; without a word, as much as the machine gives."""

    tenant: str
    rate_minute: Amount | None = None
    quota_day: Amount | None = None


class AdmitTenant(Request, frozen=True, kw_only=True):
    """Another admin key of a tenant, for one that has lost its own."""

    tenant: str


class Audit(Request, frozen=True, kw_only=True):
    """Who did what, when, and what came of it, newest first. Names only: never a value or a secret."""

    who: str | None = None  # an identity, a key's id, or a box
    act: str | None = None  # a verb
    entity: str | None = None  # this path and what is below it
    code: str | None = None  # ok, or of a refusal
    since: str | None = None  # ISO 8601
    until: str | None = None
    after: str | None = None  # the `next` of the page before
    limit: Page = limits.LIST_PAGE_DEFAULT
    check: bool = False  # also whether every row is as it was written and none is missing from a chain


class Changes(Request, frozen=True, kw_only=True):
    """What was written, how runs ended and what was said of that, in the order of commits: nothing is passed over."""

    after: str | None = None  # the `next` of an answer, or `latest`; from the beginning without a word
    entity: str | None = None  # only this path and what is below it
    limit: Page = limits.LIST_PAGE_DEFAULT
