"""Nothing outlives its lease or its owner, and what is kept stays."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from herdbook.base import limits
from herdbook.base.errors import Unavailable
from herdbook.base.ids import new_name
from herdbook.boxes import owner
from herdbook.boxes.bubblewrap import Bubblewrap
from herdbook.boxes.containers import Containers
from herdbook.boxes.provider import BoxSpec, Provider
from herdbook.boxes.reaper import Reaped, reap
from herdbook.boxes.unsafe_process import UnsafeProcess
from herdbook.testing.boxes import eventually
from tests.boxes.filebook import FileBook
from tests.boxes.owner_process import CONTAINER_POINTS, LABEL, POINTS

ROOT = Path(__file__).parents[2]


def processes_with(token: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [path.parent.name] * (token.encode() in path.read_bytes())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def killed_owner(tmp_path: Path, point: str, provider: str) -> None:
    """Run an owner until it kills itself there; what ran in its box is dead before anybody reaps."""
    token, state = new_name("token"), tmp_path / "s"
    state.mkdir()
    command = [sys.executable, "-m", "tests.boxes.owner_process", str(state), str(tmp_path / "book"), point, token, provider]
    paths = [str(ROOT), *filter(None, sys.path)]
    died = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}, timeout=60, check=False)
    assert died.returncode == -9
    eventually(lambda: not processes_with(token), what="what ran in the box dies with the owner, before any reap")


def nothing_is_left_after_one_reap(book: FileBook, provider: Provider, state: Path) -> None:
    (row,) = book.box_list(label=LABEL, live=True, limit=10)["boxes"]
    assert reap(book, provider, LABEL) == [Reaped(row["box"], "its owner is dead")]
    assert list(provider.list()) == []
    assert list((state / "boxes" / "boxes").iterdir()) == []
    assert book.row(row["box"])["state"] == "closed"
    assert reap(book, provider, LABEL) == []


@pytest.mark.parametrize("point", POINTS)
def test_an_owner_killed_at_any_point_leaves_nothing_after_one_reap(point: str, bubblewrap_works: None, tmp_path: Path) -> None:
    """A box that survives its owner would run on, unseen and unpaid for, until somebody finds the disk full."""
    killed_owner(tmp_path, point, "bubblewrap")
    state = tmp_path / "s"
    nothing_is_left_after_one_reap(FileBook(tmp_path / "book"), Bubblewrap(state / "boxes"), state)
    assert not (state / "s.sock").exists() or point in ("socket", "half-made"), "a socket the box was told of goes with it"


@pytest.mark.slow
@pytest.mark.parametrize("point", CONTAINER_POINTS)
def test_an_owner_of_a_container_killed_at_any_point_leaves_nothing_after_one_reap(
    point: str, containers: Containers, tmp_path: Path
) -> None:
    """A container belongs to its engine, not to its owner: it would outlive everybody who knew of it."""
    killed_owner(tmp_path, point, containers.name)
    provider = Containers(tmp_path / "s" / "boxes", name=containers.name)
    nothing_is_left_after_one_reap(FileBook(tmp_path / "book"), provider, tmp_path / "s")
    assert containers.engine.get("/containers/json", all=1) == []


@pytest.mark.slow
def test_a_container_that_lost_its_directory_is_reaped(containers: Containers, book: FileBook) -> None:
    """Removing a home by hand would leave its containers running for ever."""
    box = containers.create(BoxSpec(id="lost", label=LABEL))
    execution = containers.exec(box, [box.python, "-c", "print('up', flush=True); import time; time.sleep(600)"])
    for _ in execution:
        shutil.rmtree(containers.state_dir / "boxes" / f"{LABEL}@lost")
        (containers.state_dir / "boxes").mkdir(exist_ok=True)
        assert reap(book, containers, LABEL) == [Reaped("lost", "no open row knows it")]
    assert containers.engine.get("/containers/json", all=1) == []


def opened(book: FileBook, provider: UnsafeProcess, box: str, *, keeper: str | None = None, lease_seconds: int = 60) -> None:
    row_owner = keeper or owner.this_process()
    book.box_open(box=box, provider=provider.name, isolation="process", label="l", owner=row_owner, lease_seconds=lease_seconds)
    provider.create(BoxSpec(id=box, label="l"))


@pytest.fixture
def provider(tmp_path: Path) -> UnsafeProcess:
    return UnsafeProcess(tmp_path / "boxes")


@pytest.fixture
def book(tmp_path: Path) -> FileBook:
    return FileBook(tmp_path / "book")


def test_what_is_kept_stays(book: FileBook, provider: UnsafeProcess) -> None:
    """A reaper that takes a live box would end work in the middle."""
    opened(book, provider, "mine")
    opened(book, provider, "elsewhere", keeper="another-host:1:1")
    opened(book, provider, "left", keeper=owner.nobody())
    assert reap(book, provider, "l") == []
    assert len(provider.list("l")) == 3


def test_a_lease_that_ran_out_is_the_end(book: FileBook, provider: UnsafeProcess) -> None:
    """A box whose host hangs, or is cut off, would otherwise live for ever."""
    opened(book, provider, "short", lease_seconds=5)
    opened(book, provider, "long")
    later = FileBook(book.place, now=lambda: book.now() + 10)
    assert reap(later, provider, "l") == [Reaped("short", "its lease ran out")]
    assert [box.id for box in provider.list()] == ["long"]


def test_a_box_without_an_open_row_is_destroyed(book: FileBook, provider: UnsafeProcess) -> None:
    """A box that no row knows has nobody who would ever end it."""
    opened(book, provider, "closed")
    book.box_close(box="closed", detail=None)
    provider.create(BoxSpec(id="never-had-one", label="l"))
    provider.create(BoxSpec(id="another-label", label="other"))
    assert [reaped.box for reaped in reap(book, provider, "l")] == ["closed", "never-had-one"]
    assert [box.id for box in provider.list()] == ["another-label"]


def test_another_providers_rows_are_left_alone(book: FileBook, provider: UnsafeProcess) -> None:
    """Closing the row of a box that this provider cannot destroy would hide a box that still runs."""
    book.box_open(box="theirs", provider="other", isolation="container", label="l", owner=owner.nobody(), lease_seconds=-1)
    assert reap(book, provider, "l") == []
    assert book.row("theirs")["state"] == "open"


def test_an_id_that_was_reused_is_not_the_owner(book: FileBook, provider: UnsafeProcess) -> None:
    """Process ids come round: a stranger with the owner's id would keep a dead owner's box alive."""
    host, pid, start = owner.this_process().rsplit(":", 2)
    opened(book, provider, "stale", keeper=f"{host}:{pid}:{int(start) - 1}")
    assert reap(book, provider, "l") == [Reaped("stale", "its owner is dead")]


def test_more_rows_than_a_page_destroy_nothing_unseen(
    book: FileBook, provider: UnsafeProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A box whose row is on the next page would be taken for one that has none."""
    monkeypatch.setattr(limits, "PAGE_MAX", 2)
    for name in ("a", "b", "c"):
        opened(book, provider, name)
    assert reap(book, provider, "l") == []
    assert len(provider.list()) == 3


def test_one_box_that_resists_does_not_save_the_others(
    book: FileBook, provider: UnsafeProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first failure would shield every box after it, at every pass."""
    dead = f"{owner.this_process()}0"
    for name in ("a", "b"):
        opened(book, provider, name, keeper=dead)
    destroy = provider.destroy

    def resist(box_id: str) -> None:
        if box_id == "a":
            raise Unavailable("the engine does not answer")
        destroy(box_id)

    monkeypatch.setattr(provider, "destroy", resist)
    reaped = {one.box: one.problem for one in reap(book, provider, "l")}
    assert reaped == {"a": "the engine does not answer", "b": None}
    assert (book.row("a")["state"], book.row("b")["state"]) == ("open", "closed")


@pytest.mark.parametrize("text", ["", "x", "host:1", f"{owner.nobody()}", "another:1:1", "a:b:c:d"])
def test_a_doubtful_owner_is_not_dead(text: str) -> None:
    """An owner that cannot be judged here, taken for dead, would lose its box while it works."""
    assert not owner.is_dead(text)
