"""`/v1/models` and `/v1/chat/completions` of the OpenAI protocol: models of upstreams, under names that the record routes.

A caller needs what the verb `model_call` needs; which model answers follows from the route and the run. The answer passes through
as it comes, under the name that was asked for. Each call is kept in its run: `X-Herdbook-Session` names it, or the answer does.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from starlette.types import Receive, Scope, Send

from herdbook.base import text
from herdbook.base.errors import HerdbookError, InvalidRequest, NotFound, Unavailable
from herdbook.base.http_edge import Internal
from herdbook.base.ids import new_name
from herdbook.record import sessions
from herdbook.record.model_calls import fit
from herdbook.service import reaching
from herdbook.service.callers import Caller
from herdbook.service.models.acts import aliases, picked
from herdbook.service.models.requests import ModelCall
from herdbook.service.verbs import VERBS
from herdbook.slowloop.models import upstreams
from herdbook.surfaces.rest import wire
from herdbook.surfaces.rest.app import Endpoint, RestApp, door_of
from herdbook.surfaces.rest.forwarding import Events, Exchange
from herdbook.surfaces.rest.wire import Answer, Call

LOG = logging.getLogger("herdbook.rest")
VERB: Final = "model_call"
AT_ONCE_MAX: Final = 64
EVENTS: Final = b"text/event-stream"
SESSION, ENTITY, AGENT = b"x-herdbook-session", b"x-herdbook-entity", b"x-herdbook-agent"
CLIENT: Final = "model client"  # who asks, where nobody says

T = TypeVar("T")


@dataclass(slots=True)
class Asked:
    """One request, and who is to answer it."""

    caller: Caller
    body: dict[str, Any]
    alias: str
    upstream: upstreams.Upstream
    fields: dict[str, Any]  # of the call as it is kept
    started: float

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        return ((SESSION, str(self.fields["session"]).encode("ascii", "replace")),)


class Models:
    """What both addresses share: the upstreams of this machine, and threads that wait for them."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.pool = ThreadPoolExecutor(AT_ONCE_MAX, thread_name_prefix="herdbook-model")

    async def wait(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.pool, work)

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)


def admitted(app: RestApp, call: Call) -> Caller:
    """Who calls, if they may."""
    caller = door_of(call.scope).admit(call.headers)
    app.service.allowed(caller, VERB)
    return caller


class ModelsEndpoint(Endpoint):
    """`/v1/models`, and one of them."""

    def name(self, scope: Scope) -> str:
        return "models"

    def route(self, name: str) -> str:
        return "/v1/models"

    async def handle(self, call: Call) -> Answer:
        caller = admitted(self.app, call)
        await self.app.metered(caller, None)
        if call.scope["method"] != "GET":
            return wire.method_not_allowed("GET")
        routes = await self.app.in_thread(self.app.asker, lambda: aliases(self.app.service, caller))
        found = [{"id": route["alias"], "object": "model", "created": 0, "owned_by": "herdbook"} for route in routes]
        wanted = call.scope["path_params"].get("model")
        if wanted is None:
            return wire.json_answer({"object": "list", "data": found})
        one = next((each for each in found if each["id"] == wanted), None)
        if one is None:
            raise NotFound("no model answers under that name here: /v1/models lists those that do")
        return wire.json_answer(one)


class CompletionsEndpoint(Endpoint):
    """`/v1/chat/completions`"""

    def __init__(self, app: RestApp, models: Models) -> None:
        super().__init__(app)
        self.models = models

    def name(self, scope: Scope) -> str:
        return VERB

    def route(self, name: str) -> str:
        return "/v1/chat/completions"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        call = Call(scope, receive, dict(scope["headers"]), new_name("req"))
        try:
            answer, sent = await self.answered(call, send)
        except wire.ClientGone:
            return
        except HerdbookError as refusal:
            answer, sent = wire.error_answer(refusal), False
        except Exception:  # because a client is owed an answer, and never a traceback
            LOG.exception("%s failed in %s", call.request_id, VERB)
            answer, sent = wire.error_answer(Internal()), False
        if not sent:
            await wire.send_answer(send, answer, request_id=call.request_id)
        self.count(call, answer, time.perf_counter() - started)

    async def answered(self, call: Call, send: Send) -> tuple[Answer, bool]:
        """What came of it, and whether it was sent already."""
        caller = admitted(self.app, call)
        await self.app.metered(caller, VERBS[VERB])
        if call.scope["method"] != "POST":
            return wire.method_not_allowed("POST"), False
        body = wire.json_fields(call.headers, await call.body())
        asked = await self.app.in_thread(self.app.asker, lambda: self.asked(caller, call, body))
        exchange = await self.models.wait(lambda: Exchange(asked.upstream, asked.body))
        if body.get("stream"):
            return await self.streamed(call, asked, exchange, send), True
        found = await self.models.wait(exchange.whole)
        message = ((found.get("choices") or [{}])[0] or {}).get("message") or {}
        await self.keep(call, asked, answer=message.get("content"), usage=found.get("usage"))
        return Answer(200, msgspec.json.encode(found | {"model": asked.alias}), headers=asked.headers), False

    def asked(self, caller: Caller, call: Call, body: dict[str, Any]) -> Asked:
        """Everything that can be refused is refused before a model is asked."""
        alias, messages = body.get("model"), body.get("messages")
        fits = isinstance(messages, list) and all(isinstance(each, dict) for each in messages)
        if not isinstance(alias, str) or not isinstance(messages, list) or not fits:
            raise InvalidRequest("a completion needs a `model` and a list of `messages`")
        told = {header: call.headers.get(header, b"").decode("latin-1") or None for header in (SESSION, ENTITY, AGENT)}
        entity = None if told[ENTITY] is None else text.entity_path(told[ENTITY])
        session = told[SESSION] or new_name("s")
        record = self.app.service.seen_by(caller.reach).record
        if record.session(caller.tenant, session) is not None:
            sessions.require_session(record, None, caller.stamp, session)
        unit = told[SESSION] or conversation(caller, messages)
        n, target = picked(self.app.service, caller, alias=alias, entity=entity, unit=unit)
        fields = {"alias": alias, "n": n, "session": session, "unit": unit, "entity": entity, "agent": told[AGENT] or CLIENT}
        fields |= {"messages": messages, "tools": body.get("tools")}
        request = msgspec.convert(fields, ModelCall)
        reaching.check(caller.reach, VERB, request, tells=True)
        upstream = upstreams.find(self.models.folder, target["upstream"], tenant=caller.tenant)
        return Asked(caller, body | {"model": target["name"]}, alias, upstream, fields, time.perf_counter())

    async def streamed(self, call: Call, asked: Asked, exchange: Exchange, send: Send) -> Answer:
        """Every piece as it comes. What breaks off is said in the stream, which then lacks its end."""
        events, gone = Events(asked.alias), asyncio.ensure_future(left(call.receive))
        headers = [(b"content-type", EVENTS), (b"x-request-id", call.request_id.encode()), *wire.ALWAYS, *asked.headers]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        answer = Answer(200, b"", EVENTS)
        try:
            while not gone.done() and not self.app.writer.closing and (piece := await self.models.wait(exchange.piece)):
                await send({"type": "http.response.body", "body": events.add(piece), "more_body": True})
        except Unavailable as problem:
            answer = Answer(problem.status, b"", EVENTS, code=problem.code)
            told = b"data: " + wire.encode_error(problem) + b"\n\n"
            await send({"type": "http.response.body", "body": told, "more_body": True})
        finally:
            gone.cancel()
            exchange.close()
        await self.keep(call, asked, answer="".join(events.text), usage=events.usage)
        await send({"type": "http.response.body", "body": events.rest})
        return answer

    async def keep(self, call: Call, asked: Asked, *, answer: Any, usage: Any) -> None:
        """The call in its run. One that cannot be kept was answered all the same; that is logged, never hidden."""
        counted = usage if isinstance(usage, dict) else {}
        fields = asked.fields | {
            "answer": fit(answer) if isinstance(answer, str) and answer else None,
            "prompt_tokens": counted.get("prompt_tokens"),
            "answer_tokens": counted.get("completion_tokens"),
            "milliseconds": round((time.perf_counter() - asked.started) * 1_000),
        }
        try:
            plan = self.app.service.plan(asked.caller, VERB, fields, request_id=call.request_id)
            await self.app.writer.submit(plan, size=len(repr(fields["messages"])))
        except HerdbookError as problem:
            LOG.warning("%s: a call of the model %s was answered and not kept: %s", call.request_id, asked.alias, problem.code)


def conversation(caller: Caller, messages: list[dict[str, Any]]) -> str:
    """What stays with one model where nobody names a run: a caller's conversation, by how it began."""
    first = next((place for place, each in enumerate(messages) if each.get("role") == "user"), 0)
    return blake2b(f"{caller.identity}\0{messages[: first + 1]!r}".encode("utf-8", "replace"), digest_size=16).hexdigest()


async def left(receive: Receive) -> None:
    """Until the client hangs up."""
    while (await receive())["type"] != "http.disconnect":
        pass
