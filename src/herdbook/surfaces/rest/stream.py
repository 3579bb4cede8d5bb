"""`/v1/stream`: the change feed as server-sent events, resumed where it was left by `Last-Event-ID`.

An answer waits for a change, tells what there is and ends; whoever follows comes back at once with the place it has, as every
client of server-sent events does by itself. So a key that was revoked follows nothing any longer, a server that stops waits for
nobody, and any server goes on where another one ended.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

import msgspec

from herdbook.base.errors import Busy
from herdbook.service.access.requests import Changes
from herdbook.service.callers import Caller
from herdbook.service.verbs import VERBS
from herdbook.surfaces.rest import wire
from herdbook.surfaces.rest.wire import Answer, Call

if TYPE_CHECKING:
    from collections.abc import Callable

    from herdbook.surfaces.rest.app import RestApp

WAIT_SECONDS: Final = 10.0  # less than a stop may take
ASK_SECONDS: Final = 0.1
STREAMS_MAX: Final = 256
COME_BACK: Final = "retry: 50\n\n"
CHANGES: Final = "changes"


async def stream(app: RestApp, call: Call, admit: Callable[[], Caller]) -> Answer:
    """What has changed since the place that is named, as soon as there is something. `admit` is asked again while it waits."""
    fields: dict[str, Any] = wire.query_fields(call.scope["query_string"])
    resumed = call.headers.get(b"last-event-id", b"").decode("latin-1")
    fields["after"] = resumed or fields.get("after", "latest")
    page = await app.in_thread(
        app.asker, lambda: app.service.perform(admit(), CHANGES, fields, lax=True, request_id=call.request_id)
    )
    if app.streams >= STREAMS_MAX:
        raise Busy(f"{STREAMS_MAX} streams wait already: come back in a moment")
    app.streams += 1
    try:
        if fields["after"] != "latest":
            page = await waited(app, page, msgspec.convert(fields, Changes, strict=False), admit)
    finally:
        app.streams -= 1
    return Answer(200, events(page), b"text/event-stream")


async def waited(app: RestApp, page: dict[str, Any], request: Changes, admit: Callable[[], Caller]) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    until = loop.time() + WAIT_SECONDS
    while not page["changes"] and loop.time() < until and not app.writer.closing:
        await asyncio.sleep(ASK_SECONDS)
        caller = admit()
        app.service.allowed(caller, CHANGES)
        page = await app.in_thread(app.asker, lambda: dict(app.service.acted(caller, VERBS[CHANGES], request)))  # noqa: B023
    return page


def events(page: dict[str, Any]) -> bytes:
    """Each change as an event, with its place as the id to resume from; without one, the place alone."""
    said = [f"id: {each['id']}\nevent: {each['what']}\ndata: {json.dumps(each)}\n\n" for each in page["changes"]]
    return (COME_BACK + ("".join(said) or f"id: {page['next']}\n\n")).encode()
