"""What the verbs of learning take: tuning, and exposures in bulk."""

from __future__ import annotations

from herdbook.base import limits
from herdbook.service.requests import Page, Request

EMBEDDED_DEFAULT = 32  # in half a second


class Tune(Request, frozen=True, kw_only=True):
    """Set how ranking, credit and experiments work at an entity path and below it; without a path, everywhere."""

    values: dict[str, float | str | None]  # by name; null goes back to what the path above says
    entity: str | None = None
    why: str | None = None
    request_id: str | None = None


class Tuning(Request, frozen=True, kw_only=True):
    """Everything that may be tuned, with what holds at an entity path and where it was set."""

    entity: str | None = None
    history: bool = False  # also everything that was ever set at this very path


class Exposures(Request, frozen=True, kw_only=True):
    """Runs that ended in an outcome, with all they were shown or had withheld: what rankers and effects are learnt from."""

    entity: str | None = None  # only runs that asked about this path or below it
    after: str | None = None  # the `next` of the page before
    limit: Page = limits.LIST_PAGE_DEFAULT


class Embed(Request, frozen=True, kw_only=True):
    """Embed entries that have no vector yet, some at a time: `waiting` says how many are left."""

    limit: Page = EMBEDDED_DEFAULT
