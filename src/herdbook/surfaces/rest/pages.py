"""`/` and `/web/{page}`: pages for people, behind the same door as every verb.

A browser cannot send a key by itself, so one that was shown at the door comes back in a cookie: for pages alone, which change
nothing, never to a script, never from another site. Verbs do not look at cookies.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl, urlsplit

from starlette.types import Scope

from herdbook.base.errors import Forbidden, HerdbookError, InvalidRequest, NotFound, Unauthorized
from herdbook.service.callers import Caller
from herdbook.surfaces.rest import wire
from herdbook.surfaces.rest.app import Endpoint, RestApp, door_of
from herdbook.surfaces.rest.auth import Headers, ServerDoor
from herdbook.surfaces.rest.wire import Answer, Call

COOKIE: Final = "herdbook_key"
DOOR: Final = "door"
STYLE: Final = "style.css"
FORM: Final = b"application/x-www-form-urlencoded"
FIELDS_MAX: Final = 20
POLICY: Final = b"default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
# No script, nothing from elsewhere, in nobody's frame.
GUARDS: Final = (
    (b"content-security-policy", POLICY),
    (b"referrer-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)


class Page(Protocol):
    """What a browser gets."""

    @property
    def status(self) -> int: ...
    @property
    def body(self) -> bytes: ...
    @property
    def content_type(self) -> bytes: ...
    @property
    def code(self) -> str | None: ...


class Web(Protocol):
    """What makes the pages: another surface, which is handed to this one."""

    async def page(self, caller: Caller, name: str, query: Mapping[str, str]) -> Page: ...
    def refused(self, refusal: HerdbookError) -> Page: ...
    def door(self, refusal: HerdbookError) -> Page: ...
    def style(self) -> Page: ...


MakeWeb = Callable[[Callable[[Caller, str, dict[str, Any]], Awaitable[dict[str, Any]]]], Web]


class WebEndpoint(Endpoint):
    """Every page. What is refused is told on one."""

    def __init__(self, app: RestApp, web: Web) -> None:
        super().__init__(app)
        self.web = web

    def name(self, scope: Scope) -> str:
        return "web"

    def route(self, name: str) -> str:
        return "/web/{page}"

    async def handle(self, call: Call) -> Answer:
        if not isinstance(door_of(call.scope), ServerDoor):
            raise NotFound("there are no pages here: a box asks verbs, at /v1/<verb>")
        name, method = call.scope["path_params"].get("page", ""), call.scope["method"]
        if name == DOOR and method == "POST":
            return await self.shown_a_key(call)
        if method not in ("GET", "HEAD"):
            return wire.method_not_allowed("GET, HEAD")
        if name == STYLE:
            return guarded(self.web.style())
        try:
            caller = door_of(call.scope).admit(with_cookie(call.headers))
            await self.app.metered(caller, None)
            return guarded(await self.web.page(caller, name, query_of(call.scope["query_string"])))
        except Unauthorized as refusal:
            return guarded(self.web.door(refusal))
        except HerdbookError as refusal:
            return guarded(self.web.refused(refusal))

    async def shown_a_key(self, call: Call) -> Answer:
        """Let in whoever's key opens this server, and have the browser keep it until it is closed."""
        try:
            refuse_foreign(call.headers)
            key = dict(form_of(call.headers, await call.body())).get("key", "").strip()
            if not key.isascii() or not key.isprintable() or any(each in key for each in ' ";,\\'):
                raise Unauthorized("a key is printable ASCII without spaces: paste it as it was shown")
            door_of(call.scope).admit({**call.headers, b"authorization": f"Bearer {key}".encode()})
        except HerdbookError as refusal:
            return guarded(self.web.door(refusal))
        secure = "; Secure" if call.scope["scheme"] == "https" or call.headers.get(b"x-forwarded-proto") == b"https" else ""
        kept = f"{COOKIE}={key}; Path=/; HttpOnly; SameSite=Strict{secure}"
        return Answer(303, b"", b"text/plain", ((b"location", b"/"), (b"set-cookie", kept.encode()), *GUARDS))


def guarded(page: Page) -> Answer:
    return Answer(page.status, page.body, page.content_type, GUARDS, page.code)


def with_cookie(headers: Headers) -> Headers:
    """As if the key in the cookie had been sent the way that every other client sends it."""
    if headers.get(b"authorization") or b"cookie" not in headers:
        return headers
    try:
        found = SimpleCookie(headers[b"cookie"].decode("latin-1")).get(COOKIE)
    except CookieError:
        return headers
    return headers if found is None else {**headers, b"authorization": b"Bearer " + found.value.encode("latin-1", "replace")}


def refuse_foreign(headers: Headers) -> None:
    """A page of another site may not put its own key into this browser."""
    origin = headers.get(b"origin")
    try:
        same = origin is None or urlsplit(origin.decode("latin-1")).netloc.encode("latin-1") == headers.get(b"host", b"")
    except ValueError:
        same = False
    if not same or headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
        raise Forbidden("this form was sent by a page from elsewhere: open this server's own page, and show the key there")


def form_of(headers: Headers, body: bytes) -> list[tuple[str, str]]:
    if headers.get(b"content-type", b"").partition(b";")[0].strip() != FORM:
        raise InvalidRequest("a key is shown by the form of this page")
    return parsed(body)


def query_of(query: bytes) -> dict[str, str]:
    return dict(parsed(query))


def parsed(text: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX)
    except ValueError as problem:
        raise InvalidRequest("this address holds what is no text: begin at the first page") from problem
