"""A process that owns a box and kills itself at the point it is told: `owner_process.py STATE BOOK POINT TOKEN`."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

from herdbook.boxes import directory
from herdbook.boxes.host import Host
from herdbook.boxes.providers import PROVIDERS
from tests.boxes.filebook import FileBook

POINTS = ("row", "socket", "half-made", "made", "running", "leaving", "destroyed")
LABEL = "owned"


def die(*_: Any, **__: Any) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


def main() -> None:
    state, place, point, token = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
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

    provider = PROVIDERS["bubblewrap"](state / "boxes")
    host = Host(book, provider, open_socket=open_socket, label=LABEL)
    if point == "half-made":
        directory.BoxDirectories.hand_over = die  # type: ignore[method-assign]
    box = host.open()
    if point == "made":
        die()
    code = "import sys, time; print('up', flush=True); time.sleep(600 if sys.argv[1] == 'running' else 0)"
    host.run(box, [box.python, "-I", "-c", code, point, token], on_output=die if point == "running" else lambda chunk: None)
    if point == "leaving":
        directory.remove_tree = die
    book.box_close = die  # type: ignore[method-assign]
    host.destroy(box)


if __name__ == "__main__":
    main()
