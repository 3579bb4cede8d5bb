"""A page for an address: it asks through the verbs, as whoever looks, and puts what comes into a template that escapes all of it.

No script runs on a page, nothing is loaded from elsewhere, and nothing on one changes the record. What a refusal says is on a
page as well, with the status that the same refusal has everywhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cached_property, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from herdbook.base.errors import HerdbookError, NotFound, Unauthorized
from herdbook.service.callers import Caller
from herdbook.surfaces.web.pages import PAGES, Query, pretty

if TYPE_CHECKING:
    from jinja2 import Environment

Perform = Callable[[Caller, str, dict[str, Any]], Awaitable[dict[str, Any]]]
HTML, CSS = b"text/html; charset=utf-8", b"text/css; charset=utf-8"
STYLE: Final = "style.css"


class Page(NamedTuple):
    """What a browser gets."""

    status: int
    body: bytes
    content_type: bytes
    code: str | None = None  # of the refusal, where it is one


class Web:
    """Every page over one server's verbs. It begins with its first page: most servers are never looked at."""

    def __init__(self, perform: Perform) -> None:
        self.perform = perform

    async def page(self, caller: Caller, name: str, query: Query) -> Page:
        """The page at `/` or `/web/{name}`. Raises nothing that the verbs refuse: it says so."""
        try:
            if name not in PAGES:
                raise NotFound("there is no such page: begin at the first one")
            template, made = PAGES[name]
            return self.rendered(template, await made(partial(self.asked, caller), query))
        except HerdbookError as refusal:
            return self.refused(refusal)

    async def asked(self, caller: Caller, verb: str, **fields: Any) -> dict[str, Any]:
        return await self.perform(caller, verb, fields)

    def refused(self, refusal: HerdbookError) -> Page:
        return self.rendered("refused.html", {"title": "Not this", "refusal": refusal}, status=refusal.status, code=refusal.code)

    def door(self, refusal: HerdbookError) -> Page:
        """Where a key is asked for; what was wrong with the one that was shown is said."""
        said = refusal.message if refusal.message != Unauthorized().message else ""
        return self.rendered("door.html", {"title": "A key, please", "said": said}, status=401, code=refusal.code)

    def style(self) -> Page:
        return Page(200, self.style_sheet, CSS)

    def rendered(self, template: str, shown: dict[str, Any], *, status: int = 200, code: str | None = None) -> Page:
        text = self.templates.get_template(template).render(shown)
        return Page(status, text.encode("utf-8", "replace"), HTML, code)

    @cached_property
    def style_sheet(self) -> bytes:
        return files(__package__).joinpath("templates", STYLE).read_bytes()

    @cached_property
    def templates(self) -> Environment:
        from jinja2 import Environment, PackageLoader, StrictUndefined

        made = Environment(
            loader=PackageLoader("herdbook.surfaces.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        made.filters["pretty"] = pretty
        return made
