"""One customer asks a real server for another one's things: every verb and field, by every address that takes them.

Each is asked for twice, by a name of theirs and by one of nobody's: status, headers and body are the same but for the name.
"""

from __future__ import annotations

import http.client
import json
import random
import re
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import urlencode

import pytest

from herdbook.service.verbs import VERBS
from herdbook.surfaces.mcp.http import McpOverHttp
from herdbook.surfaces.mcp.tools import TOOLS
from herdbook.surfaces.rest import stream
from herdbook.testing.record_book import person
from tests.access.crossing import CANARY, NOBODY, SECRET, Town, verbs, without_ids
from tests.rest.serving import PATIENCE_SECONDS, Server, serving

SEED = 20261130
ONCE, ALL = 1, 1_250  # attempts in each town, by address and by tool, asking and telling; every verb once makes some hundreds
OTHER_METHODS = ("PUT", "DELETE", "HEAD", "GET")
WROTE = re.compile("Wrote|Already known, and affirmed:|, superseding #")  # of one's own: the second of two finds it written
ONE_REQUEST = {"x-request-id", "date", "content-length", "mcp-session-id"}  # the body's length is compared with the body
Request = tuple[str, str, bytes | None]
Seen = tuple[int, dict[str, str], bytes]
Ways = Callable[["Street", str, random.Random], Iterator[Callable[[dict[str, Any], str], Seen]]]


class Street:
    """A town with a server, and a customer with one connection to it."""

    def __init__(self, town: Town, server: Server, ways: Ways) -> None:
        self.town, self.server, self.ways = town, server, ways
        self.connection = http.client.HTTPConnection(*server.address)
        self.connection.timeout = PATIENCE_SECONDS
        holder = town.mine
        writer = {"role": "writer", "attest": False, **({} if town.tenants else {"reach": ["mine"]})}
        maker = holder if town.tenants else person(town.service)
        self.credentials = [town.keys["mine"], town.tokens["mine"], maker.do("key_create", name="mine-writer", **writer)["key"]]
        self.runs: dict[str, str] = {}

    def ask(self, request: Request, credential: str) -> Seen:
        method, path, body = request
        headers = {"Authorization": f"Bearer {credential}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if path == "/mcp":
            headers["Accept"] = "application/json, text/event-stream"
            if credential in self.runs:
                headers["Mcp-Session-Id"] = self.runs[credential]
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()

    def tool(self, name: str, fields: dict[str, Any], credential: str) -> Seen:
        """A call of a tool, in a run of the tools' own protocol."""
        if credential not in self.runs:
            hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
            _, headers, _ = self.ask(rpc("initialize", hello), credential)
            self.runs[credential] = headers["mcp-session-id"]
            self.ask(("POST", "/mcp", b'{"jsonrpc": "2.0", "method": "notifications/initialized"}'), credential)
            self.tool("brief", {"entity": "mine/ci"}, credential)  # the run of this connection is one's own, whatever is asked
        return self.ask(rpc("tools/call", {"name": name, "arguments": fields}), credential)


def rpc(method: str, params: dict[str, Any]) -> Request:
    return "POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


@pytest.fixture(
    scope="module", params=[(kind, way) for kind in ("tenants", "paths") for way in ("addresses", "tools")], ids="-".join
)
def street(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Street]:
    kind, way = request.param
    town = Town(tmp_path_factory.mktemp("town"), tenants=kind == "tenants")
    with pytest.MonkeyPatch.context() as patch, serving(town.service, mcp=McpOverHttp) as server:
        patch.setattr(stream, "WAIT_SECONDS", 0.0)  # where nothing is told, nobody has to wait for it
        found = Street(town, server, ways if way == "addresses" else tools)
        yield found
        found.connection.close()
    town.close()


def posted(verb: str, fields: dict[str, Any], prefix: str = "") -> Request:
    return "POST", f"{prefix}/v1/{verb}", json.dumps(fields).encode()


def queried(verb: str, fields: dict[str, Any]) -> Request:
    return "GET", f"/v1/{verb}?{urlencode({name: value for name, value in fields.items() if isinstance(value, str | int)})}", None


def ways(street: Street, verb: str, chance: random.Random) -> Iterator[Callable[[dict[str, Any], str], Seen]]:
    """Every address and method that such a request can be sent to."""
    credential = chance.choice(street.credentials)
    yield lambda fields, owner: street.ask(posted(verb, fields), credential)
    if not VERBS[verb].tells:
        yield lambda fields, owner: street.ask(queried(verb, fields), credential)
    method, other = (
        chance.choice(OTHER_METHODS),
        chance.choice([name for name in VERBS if VERBS[name].tells == VERBS[verb].tells]),
    )
    yield lambda fields, owner: street.ask((method, queried(verb, fields)[1], None), credential)
    yield lambda fields, owner: street.ask(posted(other, fields), credential)
    yield lambda fields, owner: street.ask(posted(verb, fields, "/boxes/mine-box"), credential)
    if street.town.tenants:  # within one, its hosts see its boxes
        yield lambda fields, owner: street.ask(posted(verb, fields, f"/boxes/{owner}-box"), credential)
    if verb == "changes":
        yield lambda fields, owner: street.ask(("GET", queried("stream", fields)[1], None), credential)


def tools(street: Street, verb: str, chance: random.Random) -> Iterator[Callable[[dict[str, Any], str], Seen]]:
    """Every tool that does this. Tools begin the run they name, and within a tenant one whose name is taken cannot be begun."""
    kept_back = set() if street.town.tenants and VERBS[verb].tells else {"session"}
    credential = chance.choice(street.credentials)

    def call(tool: str, fields: dict[str, Any], owner: str) -> Seen:
        return street.tool(tool, {name: value for name, value in fields.items() if name not in kept_back}, credential)

    yield from (partial(call, tool.name) for tool in TOOLS if tool.verb == verb)


def plain(seen: Seen, *names: str) -> Any:
    """What was answered, with these names taken out; of what is made up for each request, only that it is there."""
    status, headers, body = seen
    kept = {header: value for header, value in headers.items() if header not in ONE_REQUEST}
    return status, sorted(headers), kept, told(re.sub("|".join(names), "X", body.decode()))


def told(text: str) -> str:
    if not text.startswith("{"):
        return counted_out(text)
    answer = json.loads(text)
    result = answer.get("result")
    if not isinstance(result, dict) or "content" not in result:
        return without_ids(answer)
    words = [counted_out(part.get("text", "")) for part in result["content"]]
    return without_ids(result.get("structuredContent")) + json.dumps([WROTE.sub("", "".join(words)), result.get("isError")])


def counted_out(text: str) -> str:
    """Without numbers and ids, which differ from one answer to the next of the same question."""
    return re.sub(r"\b(?=\w*\d)\w[\w.:-]*", "#", text)


@pytest.mark.slow
@pytest.mark.parametrize("attempts", [ONCE, pytest.param(ALL, marks=[pytest.mark.long, pytest.mark.timeout(900)])])
@pytest.mark.parametrize("tells", [False, True], ids=["asking", "telling"])  # in this order: telling makes things of one's own
def test_nothing_crosses(street: Street, tells: bool, attempts: int) -> None:
    """A customer's data, or that there is such a customer, would be told to another one."""
    chance, asked, statuses = random.Random(SEED + attempts), 0, set[int]()
    while asked < attempts:
        for verb in verbs(tells=tells):
            pair = street.town.pair(verb, chance)
            for way in street.ways(street, verb, chance):
                street.town.book.clock.tick(seconds=int(tells))  # what comes of telling has an order
                theirs, nobodys = (way(fields, owner) for fields, owner in zip(pair, (CANARY, NOBODY), strict=True))
                asked, statuses = asked + 2, statuses | {theirs[0]}
                # Whoever has told something has things of both names, which may be named as being near.
                names = ([CANARY, NOBODY], [CANARY, NOBODY]) if tells else ([CANARY], [NOBODY])
                assert plain(theirs, *names[0]) == plain(nobodys, *names[1]), (verb, pair)
                assert SECRET not in str(theirs), (verb, pair)
    assert len(statuses) > 2 or street.ways is tools  # refused and answered in several ways


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("street", [("tenants", "addresses"), ("paths", "addresses")], indirect=True, ids="-".join)
def test_what_is_there_takes_as_long_as_what_is_not(street: Street) -> None:
    """How long a refusal takes would tell whether there is something. One round of five may decide: other work disturbs them."""
    street.town.theirs.write("quiet", {"text": SECRET}, entity=f"{CANARY}/quiet")  # of which nobody else has told anything
    differences = []
    for _ in range(5):
        seconds: dict[str, list[float]] = {CANARY: [], NOBODY: []}
        for turn in range(600):
            for owner in (CANARY, NOBODY) if turn % 2 else (NOBODY, CANARY):
                request = posted("read", {"entity": f"{owner}/quiet", "key": "quiet"})
                began = time.perf_counter()
                status, _, _ = street.ask(request, street.credentials[0])
                seconds[owner].append(time.perf_counter() - began)
                assert status == 404
        there, not_there = (statistics.median(seconds[owner]) for owner in (CANARY, NOBODY))
        differences.append(abs(there / not_there - 1))
    assert min(differences) < 0.05, differences
