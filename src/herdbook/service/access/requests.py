"""What the verbs about keys, tenants and passes take."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from herdbook.base import limits
from herdbook.service.requests import Request

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
