"""The application: addresses, and the one place where whatever comes of a request becomes an answer.

Every verb of the service is at `/v1/{verb}`. A refusal has the one error shape, whoever made it; a failure that nobody foresaw
is logged under the request's id and answered as `internal`, without its traceback.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property, partial
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

from starlette.types import Receive, Scope, Send

from herdbook.base.claims import parted
from herdbook.base.errors import Busy, HerdbookError, NotFound, Unauthorized, Unavailable
from herdbook.base.http_edge import Internal
from herdbook.base.ids import new_name
from herdbook.service.access.metering import Bucket, Meter
from herdbook.service.callers import DEFAULT_TENANT, Caller
from herdbook.service.door import Plan, Service
from herdbook.service.verbs import VERBS, Verb
from herdbook.surfaces.rest import openapi, otlp, wire
from herdbook.surfaces.rest.auth import Door, ServerDoor
from herdbook.surfaces.rest.batching import WAITING_MAX, BatchingWriter
from herdbook.surfaces.rest.metrics import Metrics
from herdbook.surfaces.rest.spans import RequestSpans
from herdbook.surfaces.rest.stream import stream
from herdbook.surfaces.rest.wire import Answer, Call

if TYPE_CHECKING:
    from herdbook.surfaces.rest.pages import MakeWeb

LOG = logging.getLogger("herdbook.rest")
ACCESS = logging.getLogger("herdbook.access")
# Where questions are answered, as measured on two cores beside writers. A point read (40 us) is over before a thread could take
# it up. A briefing costs 1.3 ms of processor in the loop but halves everybody's writes; 1.4 on one thread; 2.1 on four, which
# fight over the interpreter. Those that wait for the record's turn to write have threads of their own, so no briefing does.
INLINE: Final = frozenset({"read"})
WAITS_ITS_TURN: Final = frozenset({"search", "trace", "why"})
ASKING_MAX: Final = 256
CALLER: Final = "herdbook.caller"

Handler = Callable[[Call], Awaitable[Answer]]
Perform = Callable[[Caller, str, dict[str, Any]], Awaitable[dict[str, Any]]]
T = TypeVar("T")


class Mounted(Protocol):
    """Another surface on this server. Who calls is in the scope of each request, as `herdbook.caller`."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    async def close(self) -> None: ...


Mount = Callable[[Perform], Mounted]


class RestApp:
    """The ASGI application over one service. It lives on one event loop; `close` commits what it accepted."""

    def __init__(
        self,
        service: Service,
        *,
        waiting_max: int = WAITING_MAX,
        mcp: Mount | None = None,
        spans: RequestSpans | None = None,
        upstreams: Path | None = None,
        web: MakeWeb | None = None,
    ) -> None:
        from herdbook.surfaces.rest.completions import CompletionsEndpoint, Models, ModelsEndpoint  # they are endpoints of this
        from herdbook.surfaces.rest.pages import WebEndpoint

        self.service = service
        self.models = Models(upstreams)
        self.spans = spans
        self.mounted = None if mcp is None else mcp(self.perform)
        self.metrics = Metrics()
        self.meter = Meter(service)
        self.writer = BatchingWriter(service.commit, on_batch=self.metrics.batch, waiting_max=waiting_max)
        self.asker = ThreadPoolExecutor(1, thread_name_prefix="herdbook-ask")
        self.patient = ThreadPoolExecutor(2, thread_name_prefix="herdbook-turn")
        self.asking = 0
        self.streams: Counter[str | None] = Counter()
        pages: dict[str, Handler] = {
            "healthz": self.healthz,
            "readyz": self.readyz,
            "metrics": self.show_metrics,
            "openapi.json": self.show_openapi,
            "client.py": self.show_client,
        }
        shown = None if web is None else WebEndpoint(self, web(self.perform))
        self.unknown = UnknownEndpoint(self)
        verbs, models = VerbEndpoint(self), ModelsEndpoint(self)
        self.addresses = {
            "/v1/stream": StreamEndpoint(self),
            "/v1/traces": SpansEndpoint(self),
            "/v1/models": models,
            "/v1/chat/completions": CompletionsEndpoint(self, self.models),
            **{f"/{name}": PageEndpoint(self, name, page) for name, page in pages.items()},
            **({} if self.mounted is None else {"/mcp": MountedEndpoint(self, self.mounted)}),
            **({} if shown is None else {"/": shown}),
        }
        self.below = [
            (re.compile("/v1/(?P<verb>[^/]+)"), verbs),
            (re.compile("/boxes/(?P<box>[^/]+)/v1/(?P<verb>[^/]+)"), AssertedEndpoint(self)),
            (re.compile("/v1/models/(?P<model>[^/]+)"), models),
            *([] if shown is None else [(re.compile("/web/(?P<page>[^/]+)"), shown)]),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.at(scope)(scope, receive, send)

    def at(self, scope: Scope) -> Endpoint:
        """What answers at the address of a request."""
        scope["path_params"] = {}
        endpoint = self.addresses.get(scope["path"])
        if endpoint is not None:
            return endpoint
        for pattern, found in self.below:
            if match := pattern.fullmatch(scope["path"]):
                scope["path_params"] = match.groupdict()
                return found
        return self.unknown

    async def close(self) -> None:
        if self.mounted is not None:
            await self.mounted.close()
        await self.writer.close()
        self.asker.shutdown()
        self.patient.shutdown()
        self.models.close()
        if self.spans is not None:
            await asyncio.to_thread(self.spans.close)

    async def metered(self, caller: Caller, verb: Verb | None) -> None:
        """Count a request against what its key and its tenant may ask for. Raises TooManyRequests.

        Ending a key is not counted: one that leaked could spend all there is, and nobody could end it before the next day.
        """
        if verb is not None and verb.name == "key_revoke":
            return
        await self.spent(caller, requests=1, changes=1 if verb is not None and verb.tells else 0)

    async def spent(self, caller: Caller, *, requests: int, changes: int) -> None:
        while missing := self.meter.spend(caller, requests=requests, changes=changes):
            parts = await self.writer.submit(self.meter.take(missing), size=0)
            self.meter.got(cast(dict[Bucket, int], parts))

    async def planned(self, caller: Caller, verb: Verb, fields: dict[str, Any], *, request_id: str = "") -> Plan:
        """The work of a request that was counted as one change; where it holds more of them, they count too."""
        if verb.changes is not None and (changes := verb.changes(fields)) > 1:
            await self.spent(caller, requests=0, changes=changes - 1)
        return self.service.plan(caller, verb.name, fields, request_id=request_id)

    # --- verbs ---

    async def tell(self, caller: Caller, verb: Verb, fields: dict[str, Any], *, size: int, request_id: str) -> Answer:
        plan = await self.planned(caller, verb, fields, request_id=request_id)
        return wire.json_answer(await self.told(verb, plan, size=size))

    async def told(self, verb: Verb, plan: Plan, *, size: int) -> dict[str, Any]:
        answer = await self.writer.submit(plan, size=size)
        if wait := self.service.settling(verb):
            await asyncio.sleep(wait)
        return answer

    async def perform(self, caller: Caller, verb: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Any verb, for another surface on this server: through the same writer and the same threads."""
        found = VERBS.get(verb)
        await self.metered(caller, found)
        if found is not None and found.tells:
            return await self.told(found, await self.planned(caller, found, fields), size=len(repr(fields)))
        pool = self.patient if verb in WAITS_ITS_TURN else self.asker
        return await self.in_thread(pool, lambda: self.service.perform(caller, verb, fields))

    async def ask(self, caller: Caller, verb: Verb, fields: dict[str, Any], *, lax: bool, request_id: str) -> Answer:
        if verb.name in INLINE:
            return wire.json_answer(self.service.perform(caller, verb.name, fields, lax=lax, request_id=request_id))
        pool = self.patient if verb.name in WAITS_ITS_TURN else self.asker
        return await self.in_thread(
            pool, lambda: wire.json_answer(self.service.perform(caller, verb.name, fields, lax=lax, request_id=request_id))
        )

    async def in_thread(self, pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        if self.asking >= ASKING_MAX:
            raise Busy(f"{ASKING_MAX} questions are being answered already: retry in a second")
        self.asking += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, work)
        finally:
            self.asking -= 1

    # --- pages ---

    async def healthz(self, call: Call) -> Answer:
        """The process is alive."""
        return wire.json_answer({"alive": True})

    async def readyz(self, call: Call) -> Answer:
        """The record answers, and writes are being taken."""
        if self.writer.closing or self.writer.full():
            raise Unavailable("the server is stopping, or too many writes wait for the disk: send requests elsewhere or later")
        caller = Caller(DEFAULT_TENANT, "readyz", frozenset({"host"}), channel="python")  # nobody asks: it is not for the audit
        await self.in_thread(self.asker, lambda: wire.json_answer(self.service.perform(caller, "box_list", {"limit": 1})))
        return wire.json_answer({"ready": True})

    async def show_metrics(self, call: Call) -> Answer:
        text = self.metrics.text(waiting=self.writer.accepted)
        return Answer(200, text.encode(), b"text/plain; version=0.0.4; charset=utf-8")

    async def show_openapi(self, call: Call) -> Answer:
        return Answer(200, self.openapi)

    async def show_client(self, call: Call) -> Answer:
        checksum = sha256(self.client).hexdigest().encode()
        return Answer(200, self.client, b"text/x-python; charset=utf-8", ((b"x-checksum-sha256", checksum),))

    @cached_property
    def openapi(self) -> bytes:
        return openapi.document()

    @cached_property
    def client(self) -> bytes:
        return files("herdbook").joinpath("client.py").read_bytes()


class Endpoint:
    """One address. Its handler returns an answer or raises; either way exactly one answer is sent, counted and logged."""

    def __init__(self, app: RestApp) -> None:
        self.app = app

    def name(self, scope: Scope) -> str:
        """How metrics and the access log call it: never by anything a caller can make up."""
        raise NotImplementedError

    def route(self, name: str) -> str:
        """Its address, without what a caller can make up."""
        return f"/{name}"

    async def handle(self, call: Call) -> Answer:
        raise NotImplementedError

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        call = Call(scope, receive, dict(scope["headers"]), new_name("req"))
        try:
            answer = await self.handle(call)
        except wire.ClientGone:
            return
        except HerdbookError as refusal:
            answer = wire.error_answer(refusal)
        except Exception:  # because a client is owed an answer, and never a traceback
            LOG.exception("%s failed in %s", call.request_id, self.name(scope))
            answer = wire.error_answer(Internal())
        await wire.send_answer(send, answer, request_id=call.request_id)
        self.count(call, answer, time.perf_counter() - started)

    def count(self, call: Call, answer: Answer, seconds: float) -> None:
        name = self.name(call.scope)
        self.app.metrics.answered(name, status=answer.status, code=answer.code, seconds=seconds)
        if self.app.spans is not None:
            method, route = call.scope["method"], self.route(name)
            self.app.spans.answered(
                call.headers, method=method, route=route, verb=name, status=answer.status, code=answer.code, seconds=seconds
            )
        if ACCESS.isEnabledFor(logging.INFO):
            line = {
                "request_id": call.request_id, "method": call.scope["method"], "verb": name, "status": answer.status,
                "code": answer.code, "milliseconds": round(seconds * 1000, 3), "bytes": len(answer.body),
            }  # fmt: skip
            ACCESS.info("%s", json.dumps(line))


class VerbEndpoint(Endpoint):
    """`/v1/{verb}`"""

    def name(self, scope: Scope) -> str:
        verb = scope["path_params"]["verb"]
        return verb if verb in VERBS else "unknown"

    def route(self, name: str) -> str:
        return f"/v1/{name}"

    async def handle(self, call: Call) -> Answer:
        caller = await self.caller(call)
        verb = VERBS.get(call.scope["path_params"]["verb"])
        await self.app.metered(caller, verb)
        if verb is None:
            raise NotFound("there is no such verb: /openapi.json lists them")
        method = call.scope["method"]
        if method == "POST":
            body = await call.body()
            fields = wire.json_fields(call.headers, body)
            if verb.tells:
                return await self.app.tell(caller, verb, fields, size=len(body), request_id=call.request_id)
            return await self.app.ask(caller, verb, fields, lax=False, request_id=call.request_id)
        if method == "GET" and not verb.tells:
            return await self.app.ask(
                caller, verb, wire.query_fields(call.scope["query_string"]), lax=True, request_id=call.request_id
            )
        # HEAD, too: it would log a read that nobody got to see.
        return wire.method_not_allowed("POST" if verb.tells else "GET, POST")

    async def caller(self, call: Call) -> Caller:
        return door_of(call.scope).admit(call.headers)


class SpansEndpoint(Endpoint):
    """`/v1/traces`: the verb `record_spans`, as exporters of OpenTelemetry send it."""

    def name(self, scope: Scope) -> str:
        return "record_spans"

    def route(self, name: str) -> str:
        return "/v1/traces"

    async def handle(self, call: Call) -> Answer:
        caller, verb = door_of(call.scope).admit(call.headers), VERBS["record_spans"]
        await self.app.metered(caller, verb)
        if call.scope["method"] != "POST":
            return wire.method_not_allowed("POST")
        body = await call.body()
        plan = await self.app.planned(caller, verb, otlp.fields_of(call.headers, body), request_id=call.request_id)
        return otlp.answer(call.headers, await self.app.writer.submit(plan, size=len(body)))


class AssertedEndpoint(VerbEndpoint):
    """`/boxes/{box}/v1/{verb}`: through a connector of the box's own provider, which shows a key and passes the path on.

    Which box it is, is said by the box, in an address that only it was told, so the channel is `asserted`. It has to live, and
    gets what a box may. Whoever does not know that address learns nothing, not even whether there is such a box.
    """

    def route(self, name: str) -> str:
        return f"/boxes/{{box}}/v1/{name}"

    async def caller(self, call: Call) -> Caller:
        door, (box, claim) = door_of(call.scope), parted(call.scope["path_params"]["box"])
        caller = door.admit(call.headers)
        shows_a_key = isinstance(door, ServerDoor) and (caller.key is not None or door.digest is not None)
        if not shows_a_key or caller.box is not None:
            raise Unauthorized("a box is only believed behind a connector that shows a key: serve with one")
        asker = replace(caller, scopes=caller.scopes | {"host"}, verbs=None)
        found = await self.app.ask(
            asker, VERBS["box_list"], {"box": box, "claim": claim, "live": True}, lax=False, request_id=call.request_id
        )
        if not any(row["box"] == box and row["live"] for row in json.loads(found.body)["boxes"]):
            raise Unauthorized("no box that lives has this address: take it from HERDBOOK_URL in the box, as it is")
        return replace(caller, scopes=caller.scopes & {"read", "write"}, channel="asserted", origin="agent", box=box)


class StreamEndpoint(Endpoint):
    """`/v1/stream`"""

    def name(self, scope: Scope) -> str:
        return "stream"

    async def handle(self, call: Call) -> Answer:
        admit = partial(door_of(call.scope).admit, call.headers)
        if call.scope["method"] != "GET":
            return wire.method_not_allowed("GET")
        await self.app.metered(admit(), None)
        return await stream(self.app, call, admit)


class PageEndpoint(Endpoint):
    """One of the fixed pages."""

    PRIVATE: Final = frozenset({"metrics"})

    def __init__(self, app: RestApp, name: str, handler: Handler) -> None:
        super().__init__(app)
        self.page, self.handler = name, handler

    def name(self, scope: Scope) -> str:
        return self.page

    async def handle(self, call: Call) -> Answer:
        door_of(call.scope).admit_page(call.headers, private=self.page in self.PRIVATE)
        if call.scope["method"] not in ("GET", "HEAD"):
            return wire.method_not_allowed("GET, HEAD")
        return await self.handler(call)


class MountedEndpoint(Endpoint):
    """Another surface's address. It answers by itself; who calls, and what it refuses here, is seen to before."""

    def __init__(self, app: RestApp, mounted: Mounted) -> None:
        super().__init__(app)
        self.mounted = mounted

    def name(self, scope: Scope) -> str:
        return "mcp"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        call = Call(scope, receive, dict(scope["headers"]), new_name("req"))
        try:
            caller = door_of(scope).admit(call.headers)
            if scope["method"] not in ("POST", "DELETE"):  # a stream that stays open would hold up every stop
                await wire.send_answer(send, wire.method_not_allowed("POST, DELETE"), request_id=call.request_id)
                return
            await self.app.metered(caller, None)  # each message, and then each verb it asks for
            await self.mounted({**scope, CALLER: caller}, receive, send)
        except HerdbookError as refusal:
            answer = wire.error_answer(refusal)
            await wire.send_answer(send, answer, request_id=call.request_id)
            self.count(call, answer, time.perf_counter() - started)


class UnknownEndpoint(Endpoint):
    """Any other address."""

    def name(self, scope: Scope) -> str:
        return "unknown"

    async def handle(self, call: Call) -> Answer:
        raise NotFound("there is nothing at this address: verbs are at /v1/<verb>, and /openapi.json lists them")


def door_of(scope: Scope) -> Door:
    """The door of the listener this request came by."""
    return cast(Door, scope["state"]["door"])
