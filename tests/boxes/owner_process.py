"""A process that owns a box and kills itself at the point it is told: `owner_process.py STATE BOOK POINT TOKEN PROVIDER`."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

from herdbook.boxes import directory, engine
from herdbook.boxes.host import Host
from herdbook.boxes.providers import PROVIDERS
from tests.boxes.filebook import FileBook

POINTS = ("row", "socket", "half-made", "made", "running", "leaving", "destroyed")
CONTAINER_POINTS = ("row", "made", "created", "attached", "running", "leaving", "destroyed")
SPRITE_POINTS = ("row", "network", "made", "running", "destroyed")
LABEL = "owned"


def die(*_: Any, **__: Any) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


def main() -> None:
    (state, place), (point, token, provider_name) = map(Path, sys.argv[1:3]), sys.argv[3:6]
    book = FileBook(place)
    listener = socket.socket(socket.AF_UNIX)

    def open_socket(box_id: str) -> tuple[str, Any]:
        if point == "row":
            die()
        os.chdir(state)
        listener.bind("s.sock")
        if point == "socket":
            die()
        return str(state / "s.sock"), listener.close

    provider = PROVIDERS[provider_name](state / "boxes")
    host = Host(book, provider, open_socket=open_socket, label=LABEL)
    if point == "half-made":
        directory.BoxDirectories.hand_over = die  # type: ignore[method-assign]
    if point == "network":
        import sprites

        sprites.Sprite.update_network_policy = die  # type: ignore[method-assign]
    box = host.open()
    if point == "made":
        die()
    if point in ("created", "attached"):
        setattr(*{"created": (engine.Engine, "attach", die), "attached": (engine.Attached, "send", die)}[point])
    code = "import sys, time; print('up', flush=True); time.sleep(600 if sys.argv[1] == 'running' else 0)"
    host.run(box, [box.python, "-I", "-c", code, point, token], on_output=die if point == "running" else lambda chunk: None)
    if point == "leaving":
        directory.remove_tree = die
    book.box_close = die  # type: ignore[method-assign]
    host.destroy(box)


if __name__ == "__main__":
    main()
