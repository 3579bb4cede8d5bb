"""`/v1/stream`: the change feed as server-sent events, resumed where it was left by `Last-Event-ID`.

An answer waits for a change, tells what there is and ends; whoever follows comes back at once with the place it has, as every
client of server-sent events does by itself. So a key that was revoked follows nothing any longer, a server that stops waits for
nobody, and any server goes on where another one ended.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from herdbook.base.errors import Busy
from herdbook.record import changes as feed
from herdbook.service.access.following import followed
from herdbook.service.access.requests import Changes
from herdbook.service.callers import Caller
from herdbook.surfaces.rest import wire
from herdbook.surfaces.rest.wire import Answer, Call

if TYPE_CHECKING:
    from collections.abc import Callable

    from herdbook.service.door import Service
    from herdbook.surfaces.rest.app import RestApp

WAIT_SECONDS: Final = 10.0  # less than a stop may take
ASK_SECONDS: Final = 0.1
STREAMS_MAX: Final = 256
STREAMS_OF_A_KEY_MAX: Final = 32
COME_BACK: Final = "retry: 50\n\n"
CHANGES: Final = "changes"


async def stream(app: RestApp, call: Call, admit: Callable[[], Caller]) -> Answer:
    """What has changed since the place that is named, as soon as there is something. `admit` is asked again while it waits."""
    fields: dict[str, Any] = wire.query_fields(call.scope["query_string"])
    resumed = call.headers.get(b"last-event-id", b"").decode("latin-1")
    fields["after"] = resumed or fields.get("after", "latest")
    with waiting(app.streams, admit()):
        page, looked = await app.in_thread(app.asker, lambda: begun(app.service, admit(), fields, call.request_id))
        if fields["after"] != "latest" and not page["changes"]:
            page |= await waited(app, looked, msgspec.convert(fields, Changes, strict=False), admit)
    return Answer(200, events(page), b"text/event-stream")


def begun(service: Service, caller: Caller, fields: dict[str, Any], request_id: str) -> tuple[dict[str, Any], int]:
    """What there is already, and how far that was looked for."""
    looked = feed.latest(service.record, caller.tenant)
    return service.perform(caller, CHANGES, fields, lax=True, request_id=request_id), looked


@contextmanager
def waiting(streams: Counter[str | None], caller: Caller) -> Iterator[None]:
    """One more that waits. Raises Busy where there are too many, of all keys or of this one: the others keep their room."""
    who = caller.payer or caller.key
    if streams.total() >= STREAMS_MAX:
        raise Busy(f"{STREAMS_MAX} streams wait already: come back in a moment")
    if who is not None and streams[who] >= STREAMS_OF_A_KEY_MAX:
        raise Busy(f"{STREAMS_OF_A_KEY_MAX} streams of this key wait already: follow in fewer places, or with a key for each")
    streams[who] += 1
    try:
        yield
    finally:
        streams[who] -= 1
        if not streams[who]:
            del streams[who]


async def waited(app: RestApp, looked: int, request: Changes, admit: Callable[[], Caller]) -> dict[str, Any]:
    """What has changed, once there is something; nothing where that took too long, and then the place stays."""
    loop = asyncio.get_running_loop()
    until = loop.time() + WAIT_SECONDS
    while loop.time() < until and not app.writer.closing:
        await asyncio.sleep(ASK_SECONDS)
        caller = admit()
        app.service.allowed(caller, CHANGES)
        found, looked = await app.in_thread(app.asker, partial(followed, app.service, caller, request, looked=looked))
        if found:
            return {"changes": found}
    return {}


def events(page: dict[str, Any]) -> bytes:
    """Each change as an event, with its place as the id to resume from; without one, the place alone."""
    said = [f"id: {each['id']}\nevent: {each['what']}\ndata: {json.dumps(each)}\n\n" for each in page["changes"]]
    return (COME_BACK + ("".join(said) or f"id: {page['next']}\n\n")).encode()
