"""Pages over a real server: what they show, what they never run, whom they let in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from herdbook.service.callers import Caller, local_caller
from herdbook.service.door import Service
from herdbook.surfaces.web.app import Web
from tests.rest.serving import KEY, Reply, Server, open_service, serving

ANN = local_caller("ann")
HOSTILE = '<script>alert("x")</script>&\'"><img src=x onerror=alert(1)>'
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
PAGES = (
    "/",
    "/web/entity",
    "/web/entry",
    "/web/runs",
    "/web/run",
    "/web/search",
    "/web/prove",
    "/web/state",
    "/web/boxes",
    "/web/watches",
)
WHOLE_RECORD = {"prove", "status"}  # verbs that walk all of it
VOID = frozenset({"meta", "link", "input"})


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    opened = open_service(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def server(service: Service) -> Iterator[Server]:
    with serving(service, web=Web) as running:
        yield running


def a_run(service: Service, *, path: str = "acme/ci", key: str = "retries", text: str = "plain", caller: Caller = ANN) -> None:
    """An entry, and a run that was told of it, tried it and ended well; every text that a caller may choose is the same."""
    do = service.perform
    do(caller, "write", {"entity": path, "key": key, "value": {"env": {"A": text}, text: text}, "why": text, "request_id": "w"})
    dead_end = {"entity": path, "key": f"{key}2", "value": text, "why": text, "kind": "experience", "worked": False}
    do(caller, "write", {**dead_end, "request_id": "d"})
    do(caller, "start_session", {"session": "run", "agent": text, "entity": path, "task": text})
    do(caller, "brief", {"entity": path, "session": "run", "task": "plain"})
    do(caller, "record_action", {"session": "run", "tool": text, "args": {text: text}, "result": text})
    do(caller, "record_context", {"session": "run", "name": text, "text": text})
    do(caller, "attempt", {"session": "run", "result": "failure", "note": text, "used": [{"entity": path, "key": key}]})
    do(
        caller,
        "commit_outcome",
        {"session": "run", "type": "success", "ref": "ref", "task_input": text, "artifacts": {"a": text}},
    )
    do(caller, "job_put", {"queue": "watch", "key": "deploy-1", "body": {"a": text}})


def addresses(path: str = "acme/ci", key: str = "retries") -> list[str]:
    query = {"path": path, "key": key, "ref": "ref", "q": "plain", "task": "plain"}
    return [f"{page}?{urlencode(query, quote_via=quote)}" for page in PAGES]


class Marks(HTMLParser):
    """What a browser would make of a page: its elements, balanced, and where they lead."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.open.pop(), tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def marks(reply: Reply) -> Marks:
    assert "text/html; charset=utf-8" == reply.headers["content-type"]
    found = Marks(reply.body.decode())
    assert [] == found.open
    return found


def test_every_page_is_there_on_an_empty_record(server: Server) -> None:
    """The first thing that somebody looks at would be an error."""
    assert "Begin with" in marks(server.get("/")).text
    assert [200] * 4 == [server.get(page).status for page in ("/web/prove", "/web/search", "/web/boxes", "/web/watches")]
    assert "Nothing is known here" not in marks(server.get("/web/entity?path=acme")).text


def test_every_page_shows_what_happened(service: Service, server: Server) -> None:
    """Pages would be there, and say nothing."""
    a_run(service)
    pages = {address.partition("?")[0]: server.get(address) for address in addresses()}
    assert dict.fromkeys(PAGES, 200) == {page: reply.status for page, reply in pages.items()}
    text = {page: marks(reply).text for page, reply in pages.items()}
    assert "acme/ci" in text["/"]
    assert "Already tried" in text["/web/entity"]
    assert "0.515" in text["/web/entry"]
    assert "2 moves, in order of arrival" in text["/web/entry"]
    assert "attempt 1: failure" in text["/web/run"]
    assert "success ref acme/ci plain" in text["/web/runs"]
    assert "retries2" in text["/web/entity"].partition("Every entry here")[2]
    assert "retries" in text["/web/search"]
    assert "deploy-1" in text["/web/watches"]
    assert "herdbook tune holdback=0.05" in text["/"]
    assert "told minus not told" in text["/web/prove"]
    assert "outcomes 1" in text["/web/state"]


def test_the_pages_people_begin_with_walk_no_whole_record(service: Service) -> None:
    """On a large record, the first page and every path would take seconds, and each reload would cost what `doctor` costs."""
    a_run(service)
    asked: dict[str, set[str]] = {}

    async def shown_and_noted(page: str) -> None:
        async def perform(caller: Caller, verb: str, fields: dict[str, Any]) -> dict[str, Any]:
            asked.setdefault(page, set()).add(verb)
            return service.perform(caller, verb, fields)

        reply = await Web(perform).page(ANN, page, {"path": "acme/ci", "key": "retries", "ref": "ref", "q": "plain"})
        assert 200 == reply.status, reply.body

    for page in PAGES:
        asyncio.run(shown_and_noted(page.removeprefix("/web").removeprefix("/")))
    assert {"prove": {"prove"}, "state": {"status"}} == {
        page: verbs & WHOLE_RECORD for page, verbs in asked.items() if verbs & WHOLE_RECORD
    }


def test_what_somebody_wrote_is_never_markup(service: Service, server: Server) -> None:
    """An agent in a box could run a script in the browser of whoever looks at what it wrote."""
    a_run(service, text=HOSTILE, key=HOSTILE.replace("/", "|"), path="acme/" + HOSTILE.replace("/", "|"))
    for address in addresses("acme/" + HOSTILE.replace("/", "|"), HOSTILE.replace("/", "|")):
        reply = server.get(address)
        assert 200 == reply.status, (address, reply.body)
        found = marks(reply)
        assert set() == {tag for tag, _ in found.seen} & {"script", "img", "iframe", "object"}, address
        for tag, attributes in found.seen:
            assert not [name for name in attributes if name.startswith("on")], address
            if tag == "a":
                assert str(attributes["href"]).startswith("/"), attributes
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src" not in policy


def test_a_link_leads_to_what_it_names(service: Service, server: Server) -> None:
    """A path or key with odd characters could be seen and not be followed."""
    path, key = "acme/a&b=c d%2F?#é+", "k&e=y /?#%+ü"
    a_run(service, path=path, key=key)
    links = {str(a["href"]) for tag, a in marks(server.get("/")).seen if tag == "a" and "/web/entity" in str(a.get("href"))}
    (to_path,) = links
    assert key in marks(server.get(to_path)).text
    to_key = [str(a["href"]) for tag, a in marks(server.get(to_path)).seen if tag == "a" and "/web/entry" in str(a.get("href"))]
    assert all(200 == server.get(link).status for link in to_key)
    assert key in marks(server.get(next(link for link in to_key if "2" not in link.rpartition("key=")[2][-2:]))).text


def test_looking_is_no_reading(service: Service, server: Server) -> None:
    """Whoever looks would be counted as a run that was served, and move trust by it."""
    a_run(service)
    before = service.perform(ANN, "status", {})["counts"]
    assert [200] * len(PAGES) == [server.get(address).status for address in addresses()]
    assert before == service.perform(ANN, "status", {})["counts"]


@pytest.mark.parametrize(
    "address, status",
    [
        ("/web/nope", 404),
        ("/web/entry?path=acme/ci&key=nope", 404),
        ("/web/run?ref=nope", 404),
        ("/web/entity", 400),
        ("/web/entry?path=a", 400),
        ("/web/entity?path=%ff%fe", 400),
        ("/web/entity?path=%00", 400),
        ("/web/entity?path=" + "a" * 5_000, 413),
        ("/web/runs?type=nope", 400),
        ("/web/runs?after=x", 400),
        ("/web/search?" + "&".join(["q=a"] * 30), 400),
        ("/?after=%22%3E%3Cscript%3E", 400),
    ],
)
def test_odd_addresses_are_told_what_is_wrong(server: Server, address: str, status: int) -> None:
    """A mistyped address would be a traceback, or a blank page."""
    reply = server.get(address)
    assert status == reply.status, reply.body
    assert marks(reply).text


def test_pages_take_no_other_method(server: Server) -> None:
    """A form on another site could do something here."""
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert 405 == server.ask(method, "/", b"a=b", headers=FORM).status


def shown(server: Server, key: str, **headers: str) -> Reply:
    return server.ask("POST", "/web/door", urlencode({"key": key}).encode(), headers={**FORM, "Authorization": "", **headers})


def looked(server: Server, address: str, cookie: str = "") -> Reply:
    return server.get(address, Authorization="", **({"Cookie": cookie} if cookie else {}))


def test_a_key_is_asked_for_once_and_opens_pages_alone(service: Service) -> None:
    """With keys, nobody could look; or a cookie would open verbs, which another site can make a browser call."""
    a_run(service)
    with serving(service, key=KEY, web=Web) as server:
        door = looked(server, "/")
        assert (401, True) == (door.status, 'type="password"' in door.body.decode())
        assert b"acme" not in door.body
        assert 401 == shown(server, "not-the-servers-key").status
        let_in = shown(server, KEY)
        assert (303, "/") == (let_in.status, let_in.headers["location"])
        kept = let_in.headers["set-cookie"]
        assert {"Path=/", "HttpOnly", "SameSite=Strict"} <= set(kept.split("; "))
        cookie = kept.partition(";")[0]
        assert "acme/ci" in marks(looked(server, "/", cookie)).text
        refused = server.ask("POST", "/v1/list", b"{}", headers={"Authorization": "", "Cookie": cookie})
        assert 401 == refused.status
        assert "Secure" in shown(server, KEY, **{"X-Forwarded-Proto": "https"}).headers["set-cookie"].split("; ")


def test_a_form_of_another_site_shows_no_key(service: Service) -> None:
    """Somebody could put their own key into this browser, and see what its owner then writes under it."""
    with serving(service, key=KEY, web=Web) as server:
        for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
            reply = shown(server, KEY, **headers)
            assert (401, None) == (reply.status, reply.headers.get("set-cookie")), headers


@pytest.mark.parametrize("key", ["", " ", "a b", 'a";b', "é" * 20, "a\r\nSet-Cookie: x=y", "x" * 5_000])
def test_an_odd_key_is_refused_in_words(service: Service, key: str) -> None:
    """What somebody pastes would end up in a header."""
    with serving(service, key=KEY, web=Web) as server:
        reply = shown(server, key)
        assert (401, None) == (reply.status, reply.headers.get("set-cookie"))
        assert marks(reply).text


def test_a_narrow_key_sees_no_more_on_a_page(service: Service) -> None:
    """Pages would be a way around what a key reaches."""
    a_run(service)
    service.perform(ANN, "write", {"entity": "other/secret", "key": "hidden", "value": "canary", "request_id": "o"})
    key = service.perform(ANN, "key_create", {"name": "narrow", "role": "reader", "reach": ["acme"]})["key"]
    with serving(service, web=Web) as server:
        cookie = shown(server, key).headers["set-cookie"].partition(";")[0]
        seen = [looked(server, address, cookie) for address in addresses() + addresses("other/secret", "hidden")]
        seen += [
            looked(server, address, cookie) for address in ("/web/search?q=hidden", "/web/search?q=hidden&path=other/secret")
        ]
        assert [] == [reply.body for reply in seen if b"canary" in reply.body]
        assert "No run ended so" in marks(looked(server, "/web/runs?path=other", cookie)).text
        assert 404 == looked(server, "/web/entry?path=other/secret&key=hidden", cookie).status
        home = marks(looked(server, "/", cookie)).text
        assert "acme/ci" in home
        assert "other/secret" not in home
        assert (403, True) == ((state := looked(server, "/web/state", cookie)).status, "scope" in marks(state).text)
        service.perform(ANN, "key_revoke", {"name": "narrow"})
        assert 401 == looked(server, "/", cookie).status


def test_a_page_from_elsewhere_cannot_point_a_name_here(server: Server) -> None:
    """DNS rebinding: a site's own name, pointed at 127.0.0.1, would read the record through a browser."""
    assert 403 == server.get("/", Host="evil.example").status
    assert 403 == server.get("/", **{"Sec-Fetch-Site": "cross-site"}).status
