"""What the verbs take that look back over many runs."""

from __future__ import annotations

from herdbook.service.requests import Request


class Prove(Request, frozen=True, kw_only=True):
    """What the record is worth: runs that were told what is known against runs that by chance were not, with intervals."""

    entity: str | None = None  # only runs about this path or below it
