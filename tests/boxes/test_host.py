"""The life of a box as its host leads it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from herdbook.base.errors import CannotIsolate, Conflict, InvalidRequest, NotFound
from herdbook.boxes import owner
from herdbook.boxes.host import Host
from herdbook.boxes.provider import Box, BoxSpec
from herdbook.boxes.reaper import reap
from herdbook.boxes.unsafe_process import UnsafeProcess
from herdbook.testing.boxes import eventually
from tests.boxes.filebook import FileBook


class Sockets:
    """Counts what is opened and closed."""

    def __init__(self, place: Path) -> None:
        self.place, self.log = place, list[str]()

    def __call__(self, box_id: str) -> tuple[str, Callable[[], None]]:
        self.log.append(f"open {box_id}")
        return str(self.place / f"{box_id}.sock"), lambda: self.log.append(f"close {box_id}")


@pytest.fixture
def provider(tmp_path: Path) -> UnsafeProcess:
    return UnsafeProcess(tmp_path / "boxes")


@pytest.fixture
def book(tmp_path: Path) -> FileBook:
    return FileBook(tmp_path / "book")


@pytest.fixture
def sockets(tmp_path: Path) -> Sockets:
    return Sockets(tmp_path)


@pytest.fixture
def host(book: FileBook, provider: UnsafeProcess, sockets: Sockets) -> Iterator[Host]:
    with Host(book, provider, open_socket=sockets, label="h") as host:
        yield host


def test_a_box_lives_from_its_row_to_its_closing(host: Host, book: FileBook, provider: UnsafeProcess, sockets: Sockets) -> None:
    """A step left out is a box nobody finds, or a row that lies."""
    box = host.open("one")
    row = book.row("one")
    assert (row["state"], row["provider"], row["isolation"], row["label"]) == ("open", "unsafe-process", "process", "h")
    assert row["owner"] == owner.this_process()
    host.put(box, "hi.py", b"import sys; print('hi'); print('err', file=sys.stderr); sys.exit(3)")
    said: list[tuple[str, bytes]] = []
    assert host.run(box, [box.python, "hi.py"], on_output=said.append) == 3
    assert sorted(said) == [("stderr", b"err\n"), ("stdout", b"hi\n")]
    host.destroy(box, detail="done")
    host.destroy(box)
    assert (book.row("one")["state"], book.row("one")["detail"]) == ("closed", "done")
    assert list(provider.list()) == []
    assert sockets.log == ["open one", "close one"]


def test_a_program_is_told_where_the_record_is(host: Host, tmp_path: Path) -> None:
    """An agent that has to guess its socket would work without what is known."""
    box = host.open("two")
    said: list[bytes] = []
    host.run(box, ["/bin/sh", "-c", "echo $HERDBOOK_URL"], on_output=lambda chunk: said.append(chunk[1]))
    assert b"".join(said).decode() == f"unix:{tmp_path}/two.sock\n"


def test_the_row_comes_before_the_box(
    host: Host, book: FileBook, provider: UnsafeProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A box made before its row is lost if the host dies in between."""
    create = provider.create

    def look(spec: BoxSpec) -> Box:
        assert book.row(spec.id)["state"] == "open"
        return create(spec)

    monkeypatch.setattr(provider, "create", look)
    host.open("three")


def test_a_box_that_cannot_be_made_leaves_a_closed_row(host: Host, book: FileBook, sockets: Sockets) -> None:
    """An open row without a box would be reaped for ever, and the socket would stay."""
    with pytest.raises(CannotIsolate):
        host.open("four", minimum="microvm")
    assert book.row("four")["state"] == "closed"
    assert "microvm" in book.row("four")["detail"]
    assert sockets.log == ["open four", "close four"]


def test_a_bad_name_is_refused_before_anything_is_written(host: Host, book: FileBook) -> None:
    """A row under a name no provider takes could never be closed by a reaper."""
    with pytest.raises(InvalidRequest):
        host.open("../x")
    assert list(book.place.iterdir()) == []


def test_leases_are_kept_while_a_program_runs(book: FileBook, provider: UnsafeProcess, sockets: Sockets) -> None:
    """A lease that lapses during a long run would hand a working box to the reaper."""
    with Host(book, provider, open_socket=sockets, label="h", lease_seconds=1) as host:
        box = host.open("five")
        first = book.row("five")["lease_until"]
        execution = host.start(box, [box.python, "-u", "-c", "print('up'); import time; time.sleep(600)"])
        for _ in execution:
            eventually(lambda: book.row("five")["lease_until"] > first + 0.5, what="the lease moves on")
            execution.kill()


def test_what_others_left_is_reaped_at_the_start_and_again(book: FileBook, provider: UnsafeProcess, sockets: Sockets) -> None:
    """Without a reaper that runs by itself, a killed host's boxes live until somebody thinks of them."""

    def left_behind(name: str) -> None:
        dead = f"{owner.this_process()}0"
        book.box_open(box=name, provider=provider.name, isolation="process", label="h", owner=dead, lease_seconds=600)
        provider.create(BoxSpec(id=name, label="h"))

    left_behind("before")
    with Host(book, provider, open_socket=sockets, label="h", reap_seconds=0.05) as host:
        host.open("mine")
        eventually(lambda: book.row("before")["state"] == "closed", what="it is reaped at the start")
        left_behind("later")
        eventually(lambda: book.row("later")["state"] == "closed", what="and again")
        assert ["mine"] == [box.id for box in provider.list("h")]


def test_an_outage_of_the_record_does_not_end_a_box(book: FileBook, provider: UnsafeProcess, sockets: Sockets) -> None:
    """A record that restarts would take every running box with it."""
    tries = threading.Semaphore(0)

    def away(**_: object) -> dict[str, object]:
        tries.release()
        raise ConnectionError("the record is away")

    with Host(book, provider, open_socket=sockets, label="h", lease_seconds=1) as host:
        host.open("six")
        back, book.box_beat = book.box_beat, away  # type: ignore[method-assign]
        assert tries.acquire(timeout=20)
        assert tries.acquire(timeout=20), "it goes on trying"
        book.box_beat = back  # type: ignore[method-assign]
        assert len(provider.list()) == 1


def test_a_box_that_was_closed_elsewhere_is_ended_here(book: FileBook, provider: UnsafeProcess, sockets: Sockets) -> None:
    """The record says that the box is gone: one that runs on would make that a lie."""
    with Host(book, provider, open_socket=sockets, label="h", lease_seconds=1) as host:
        host.open("seven")
        book.box_close(box="seven", detail="reaped")
        eventually(lambda: not provider.list() and sockets.log == ["open seven", "close seven"], what="the host lets it go")


def test_a_box_can_be_left_and_taken_over(book: FileBook, provider: UnsafeProcess, sockets: Sockets) -> None:
    """A box kept on purpose would be reaped with the process that made it, or be lost to the next."""
    with Host(book, provider, open_socket=sockets, label="h") as first:
        box = first.open("eight", outlives=True)
        first.put(box, "work", b"done")
        first.leave(box)
    assert reap(book, provider, "h") == []
    with Host(book, provider, open_socket=sockets, label="h") as second:
        again = second.adopt("eight")
        assert again == box
        assert second.run(again, ["/bin/sh", "-c", "grep -q done work"]) == 0
        assert sockets.log == ["open eight", "close eight", "open eight"]
        with pytest.raises(NotFound):
            second.adopt("nine")
        book.box_close(box="eight", detail=None)
        with pytest.raises(Conflict):
            second.adopt("eight")


def test_closing_a_host_ends_all_its_boxes(book: FileBook, provider: UnsafeProcess, sockets: Sockets) -> None:
    """A box left over at a normal end would wait for a reaper that may not come for a while."""
    with Host(book, provider, open_socket=sockets, label="h") as host:
        for name in ("a", "b", "c"):
            host.open(name)
        assert len(provider.list()) == 3
    assert list(provider.list()) == []
    assert [row["state"] for row in book.box_list(label="h", live=False, limit=9)["boxes"]] == ["closed"] * 3


def test_a_box_reaches_the_record_through_its_own_socket(bubblewrap_works: None, book: FileBook, tmp_path: Path) -> None:
    """Two boxes on one socket could not be told apart, and would write in each other's name."""
    from herdbook.boxes.bubblewrap import Bubblewrap

    listeners: dict[str, socket.socket] = {}

    def open_socket(box_id: str) -> tuple[str, Callable[[], None]]:
        listener = socket.socket(socket.AF_UNIX)
        path = tmp_path / f"{box_id}.s"
        listener.bind(str(path))
        listener.listen()
        listeners[box_id] = listener
        return str(path), listener.close

    code = (
        "import os, socket\ns = socket.socket(socket.AF_UNIX)\ns.connect(os.environ['HERDBOOK_URL'].removeprefix('unix:'))\n"
        "s.sendall(b'here')"
    )
    with Host(book, Bubblewrap(tmp_path / "b"), open_socket=open_socket, label="h") as host:
        first, second = host.open("x"), host.open("y")
        assert host.run(second, [second.python, "-c", code]) == 0
        with listeners["y"].accept()[0] as accepted:
            assert accepted.recv(9) == b"here"
        listeners["x"].setblocking(False)
        with pytest.raises(BlockingIOError):
            listeners["x"].accept()
        assert first.sockets == second.sockets
