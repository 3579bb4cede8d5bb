"""Which HTTP stack carries the surface: one JSON POST, validated by msgspec, through each stack that is installed.

Not a claim but the figures behind a decision. `python -m bench.http_stack` serves the same handler through each in turn and
prints its rate under eight connections, as a share of the barest one's. A stack that is not installed is named and left out.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from bench import notes
from bench.http_load import drive, post
from bench.servers import await_answer, free_port, stop

CLIENTS = 8
REQUESTS_EACH = 500


class Write(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The shape of a write, as the surface validates it."""

    entity: str
    key: str
    value: Any
    why: str | None = None
    confidence: float | None = None
    session: str | None = None


decode = msgspec.json.Decoder(Write).decode
encode = msgspec.json.Encoder().encode


def answer(body: bytes) -> bytes:
    """What every stack does with a request: validate it, and say what was written."""
    write = decode(body)
    return encode({"entity": write.entity, "key": write.key, "version": 1, "created": True})


def raw() -> Any:
    """An ASGI application with nothing between it and the server."""

    async def app(
        scope: dict[str, Any], receive: Callable[[], Awaitable[dict[str, Any]]], send: Callable[[dict[str, Any]], Awaitable[None]]
    ) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        said = answer(body)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(said))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": said})

    return app


def starlette() -> Any:
    """Starlette's router and its Request and Response."""
    responses, routing = importlib.import_module("starlette.responses"), importlib.import_module("starlette.routing")

    async def write(request: Any) -> Any:
        return responses.Response(answer(await request.body()), media_type="application/json")

    app = importlib.import_module("starlette.applications").Starlette
    return app(routes=[routing.Route("/v1/write", write, methods=["POST"])])


def litestar() -> Any:
    """Litestar, which validates with msgspec itself: its own way."""
    library = importlib.import_module("litestar")

    async def write(data: Write) -> dict[str, object]:
        return {"entity": data.entity, "key": data.key, "version": 1, "created": True}

    write.__annotations__ = {"data": Write, "return": dict[str, object]}
    return library.Litestar(route_handlers=[library.post("/v1/write", status_code=200)(write)], openapi_config=None)


def blacksheep() -> Any:
    """BlackSheep's router, with the body taken raw."""
    library = importlib.import_module("blacksheep")
    app = library.Application()

    async def write(request: Any) -> Any:
        return library.Response(200, content=library.Content(b"application/json", answer(await request.read())))

    write.__annotations__ = {"request": library.Request, "return": library.Response}
    app.router.add_post("/v1/write", write)
    return app


def falcon() -> Any:
    """Falcon's ASGI application with one resource."""
    app = importlib.import_module("falcon.asgi").App()

    class Resource:
        async def on_post(self, request: Any, response: Any) -> None:
            response.data = answer(await request.stream.read())
            response.content_type = "application/json"

    app.add_route("/v1/write", Resource())
    return app


FRAMEWORKS: dict[str, Callable[[], Any]] = {
    "raw": raw,
    "starlette": starlette,
    "litestar": litestar,
    "blacksheep": blacksheep,
    "falcon": falcon,
}
STACKS = (  # framework, server, event loop
    ("raw", "uvicorn", "asyncio"),
    ("raw", "uvicorn", "uvloop"),
    ("raw", "granian", "asyncio"),
    ("starlette", "uvicorn", "asyncio"),
    ("starlette", "uvicorn", "uvloop"),
    ("litestar", "uvicorn", "asyncio"),
    ("blacksheep", "uvicorn", "asyncio"),
    ("falcon", "uvicorn", "asyncio"),
)


def serve(stack: tuple[str, str, str], port: int) -> None:
    """Serve until told to stop, one process, no access log."""
    framework, server, loop = stack
    if server == "uvicorn":
        run = importlib.import_module("uvicorn").run
        run(
            FRAMEWORKS[framework](),
            host="127.0.0.1",
            port=port,
            loop=loop,
            http="httptools",
            log_level="warning",
            access_log=False,
        )
    else:
        granian = importlib.import_module("granian").Granian
        granian(framework, address="127.0.0.1", port=port, interface="asgi", loop=loop, log_enabled=False).serve(
            target_loader=load
        )


def load(framework: str) -> Any:
    """The application of that name, for a server that loads it in a process of its own."""
    return FRAMEWORKS[framework]()


@contextmanager
def serving(stack: tuple[str, str, str]) -> Iterator[int]:
    """That stack in a process of its own; yields its port."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "bench.http_stack", "--serve", *stack, "--port", str(port)])
    try:
        await_answer(process, port, next(requests()))
        yield port
    finally:
        process.terminate()
        stop(process)


def missing(stack: tuple[str, str, str]) -> str | None:
    """The module this stack lacks here."""
    needed = [module for module in stack if module not in ("raw", "asyncio")] + ["httptools"]
    return next((module for module in needed if importlib.util.find_spec(module) is None), None)


def requests() -> Iterator[bytes]:
    """One connection's requests."""
    for number in range(REQUESTS_EACH):
        path, key = notes.place(number)
        body = {"entity": path, "key": key, "value": notes.NOTES[number], "why": notes.why(number)}
        yield post("/v1/write", json.dumps(body).encode())


def measure(passes: int) -> dict[str, list[float]]:
    """Requests a second of every stack that is here, once a pass, each pass over all of them in turn."""
    script = list(requests())
    rates: dict[str, list[float]] = {}
    for _ in range(passes):
        for stack in STACKS:
            name, lacking = " + ".join(stack), missing(stack)
            if lacking is not None:
                rates[name] = []
                continue
            with serving(stack) as port:
                drive(port, [iter(script[:100])])
                served = drive(port, [iter(script) for _ in range(CLIENTS)])
            assert not served.refused(), served.refused()[0]
            rates.setdefault(name, []).append(served.per_second)
    return rates


def main(arguments: list[str]) -> int:
    """Measure and print, or be one of the servers."""
    parser = argparse.ArgumentParser(prog="python -m bench.http_stack", description=__doc__)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--serve", nargs=3, metavar=("FRAMEWORK", "SERVER", "LOOP"), help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.serve:
        serve(tuple(chosen.serve), chosen.port)
        return 0
    rates = measure(chosen.passes)
    barest = next(iter(rates.values()))
    for name, samples in rates.items():
        if not samples:
            print(f"{name:32} not installed")
            continue
        share = statistics.median(a / b for a, b in zip(samples, barest, strict=True))
        spread = f"{min(samples):8.0f} {statistics.median(samples):8.0f} {max(samples):8.0f}"
        print(f"{name:32} {spread} a second, {share:5.2f} of the barest")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
