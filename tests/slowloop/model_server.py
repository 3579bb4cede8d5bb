"""A process that answers as a model server does, for tests: `python model_server.py PORT_FILE`. Models differ by their name.

`echo` calls the tool that the last message names as JSON; `mute` calls nothing; `late` waits between the pieces of its stream.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Handler(BaseHTTPRequestHandler):
    """The two addresses of the protocol that we use."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self.answer({"object": "list", "data": [{"id": "echo", "object": "model"}, {"id": "mute", "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if body["model"] == "broken":
            self.answer({"error": {"message": f"no, Bearer {self.headers['authorization']}"}}, status=500)
        elif body["model"] == "picky":
            self.answer({"error": {"message": "max_tokens is too large"}}, status=400)
        elif body.get("stream"):
            self.stream(body)
        else:
            self.answer(completion(body, self.headers["authorization"]))

    def answer(self, value: Any, *, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        message = completion(body, None)["choices"][0]["message"]
        deltas: list[dict[str, Any]] = [
            {"role": "assistant"},
            *({"content": word} for word in (message["content"] or "").split("|")),
        ]
        deltas += [{"tool_calls": [{"index": at, **call}]} for at, call in enumerate(message["tool_calls"] or ())]
        for delta in deltas:
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
            self.piece({**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def piece(self, chunk: dict[str, Any]) -> None:
        data = f"data: {json.dumps(chunk)}\n\n".encode()
        self.wfile.write(data[:9])  # an event may come in two pieces
        self.wfile.flush()
        self.wfile.write(data[9:])
        self.wfile.flush()


def completion(body: dict[str, Any], key: str | None) -> dict[str, Any]:
    """What this model says: a call that the last message spells, or words."""
    said = body["messages"][-1]["content"]
    call = said if said.startswith("{") and body["model"] != "mute" else None
    calls = [{"id": "call_0", "type": "function", "function": json.loads(call)}] if call else None
    content = None if call else f"{body['model']}|heard|{said}" + (f"|{key}" if key else "")
    message = {"role": "assistant", "content": content, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice], "usage": usage}


@contextmanager
def model_server(folder: Path) -> Iterator[str]:
    """The address of such a process, until the block ends."""
    place = folder / "port"
    with subprocess.Popen([sys.executable, __file__, str(place)]) as process:
        try:
            until = time.monotonic() + 60
            while not place.exists():
                assert process.poll() is None, "the model server ended"
                assert time.monotonic() < until, "the model server did not come up"
                time.sleep(0.01)
            yield f"http://127.0.0.1:{place.read_text()}/v1"
        finally:
            process.kill()
            place.unlink(missing_ok=True)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    place = Path(sys.argv[1])
    place.with_suffix(".part").write_text(str(server.server_port))
    os.rename(place.with_suffix(".part"), place)
    server.serve_forever()
