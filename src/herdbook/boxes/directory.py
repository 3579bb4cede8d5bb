"""Boxes that are a directory on this machine: made, listed and removed by name, and written to without being led astray.

A box's label and id are its directory's name, so a box is on the list from the instant it exists. What ran inside may have left
symbolic links, unreadable directories or endless nesting behind; nothing here follows or trusts what it finds.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path, PurePosixPath

from herdbook.base.errors import Broken, DiskFull, Forbidden, InvalidRequest, NotFound, RequestConflict
from herdbook.boxes.owner import started
from herdbook.boxes.provider import HOME_IN_BOX, BoxLimits, BoxSpec

REMOVE_SECONDS = 10.0
LEAVING = ".leaving-"  # prefix of a box that is being destroyed
FILES_COUNTED_MAX = 100_000  # a box with more files than this counts as full: looking must stay cheap


class BoxDirectories:
    """All boxes of one provider under one state directory, which is closed to other users."""

    def __init__(self, state_dir: Path, *, owner: int | None = None) -> None:
        self.state_dir = private_directory(Path(os.path.abspath(state_dir)))
        self.boxes = private_directory(self.state_dir / "boxes")
        self.owner = owner  # the host user whose files the boxes' files are, if it is not the caller

    def create(self, spec: BoxSpec) -> Path:
        place = self.boxes / f"{spec.label}@{spec.id}"
        if self.find(spec.id):
            raise RequestConflict(f"there is a box {spec.id!r} already: destroy it, or choose another id")
        place.mkdir(mode=0o700)
        (place / "running").mkdir(mode=0o700)
        (place / "files").mkdir(mode=0o755)
        self.hand_over(place / "files")
        kept = {"limits": asdict(spec.limits), "sockets": dict(spec.sockets), "without": list(spec.without)}
        (place / "box.json").write_text(json.dumps(kept), encoding="utf-8")
        return place

    def hand_over(self, path: Path | int) -> None:
        """Give a file to the user the boxes run as."""
        if self.owner is not None:
            os.chown(path, self.owner, self.owner)

    def find(self, box_id: str) -> list[Path]:
        """Every directory of this box: one, none, or one that is being removed."""
        return [path for path in self.boxes.iterdir() if path.name.rpartition("@")[2] == box_id]

    def place(self, box_id: str) -> Path:
        for path in self.find(box_id):
            if not path.name.startswith(LEAVING):
                return path
        raise NotFound(f"there is no box {box_id!r}: it was destroyed, or never created")

    def names(self, label: str | None) -> list[tuple[str, str, Path]]:
        """(label, id, place) of every box."""
        places = [
            (path.name.removeprefix(LEAVING).partition("@"), path) for path in sorted(self.boxes.iterdir()) if "@" in path.name
        ]
        return [(its_label, box_id, place) for (its_label, _, box_id), place in places if label in (None, its_label)]

    def kept(self, place: Path) -> tuple[BoxLimits, Mapping[str, str]]:
        """The limits and sockets of a box; of one that is only half there, the usual limits and no sockets."""
        try:
            kept = json.loads((place / "box.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return BoxLimits(), {}
        return BoxLimits(**kept["limits"]), kept["sockets"]

    def without(self, place: Path) -> list[str]:
        """The programs that this box must not find."""
        kept = json.loads((place / "box.json").read_text(encoding="utf-8"))
        return [str(name) for name in kept.get("without", ())]  # a box of an earlier version has none

    def put(self, box_id: str, path: str, data: bytes, *, mode: int) -> None:
        """Write beside the target, then rename: the file appears whole, and whatever stood there is not opened."""
        *folders, name = parts_inside(path)
        if not name:
            raise InvalidRequest(f"{path!r} names a directory: name a file in it")
        folder = os.open(self.place(box_id) / "files", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            for part in folders:
                folder = self._step_into(folder, part)
            self._write(folder, name, data, mode=mode)
        except OSError as problem:
            if problem.errno == errno.ENOSPC:
                raise DiskFull(f"the disk under the box is full: {path!r} was not written") from problem
            raise InvalidRequest(f"{path!r} cannot be a file in the box: {problem.strerror}") from problem
        finally:  # only descriptors: a killed process keeps none
            os.close(folder)

    def _step_into(self, folder: int, part: str) -> int:
        with suppress(FileExistsError):
            os.mkdir(part, 0o755, dir_fd=folder)
            self._hand_over_new(part, folder)
        # Never through a symbolic link: it would be followed on the host's side.
        deeper = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
        os.close(folder)
        return deeper

    def _hand_over_new(self, name: str, folder: int) -> None:
        if self.owner is not None:
            os.chown(name, self.owner, self.owner, dir_fd=folder, follow_symlinks=False)

    def _write(self, folder: int, name: str, data: bytes, *, mode: int) -> None:
        fresh = f".put-{secrets.token_hex(8)}"
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                os.fchmod(fd, mode & 0o777)
                self.hand_over(fd)
            os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            os.unlink(fresh, dir_fd=folder)
            raise

    def is_over(self, place: Path, bytes_max: int) -> bool:
        """Whether the box's files take more than they may. What cannot be read is not counted: a limit against accidents."""
        total = counted = 0
        waiting = [str(place / "files")]
        while waiting:
            with suppress(OSError), os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    counted += 1
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    if total > bytes_max or counted > FILES_COUNTED_MAX:
                        return True
        return False

    def note_running(self, place: Path, pid: int) -> Path:
        """Leave word of a process for whoever destroys the box. Fails if the box is already being destroyed."""
        note = place / "running" / f"{pid}.{started(pid)}"
        note.touch()
        return note

    def destroy(self, box_id: str, *, end: Callable[[Path], None]) -> None:
        """Out of the way first, so that nothing new starts in it; then end what runs; then remove."""
        for path in self.find(box_id):
            gone = path
            if not path.name.startswith(LEAVING):
                gone = path.with_name(LEAVING + path.name)
                with suppress(FileNotFoundError):  # because another process destroys it at the same time
                    path.rename(gone)
            end(gone)
            for socket in self.kept(gone)[1]:
                remove_socket(Path(socket))
            remove_tree(gone)


def kill_noted(place: Path, kill: Callable[[int, str], None]) -> None:
    """Kill every process noted in a box, by its id and its start time."""
    for pid, start in running(place):
        kill(pid, start)


def running(place: Path) -> list[tuple[int, str]]:
    """The processes noted in a box, with their start times: some may be gone."""
    if not (place / "running").is_dir():
        return []
    notes = [note.name.partition(".") for note in (place / "running").iterdir()]
    return [(int(pid), start) for pid, _, start in notes]


def kill_process(pid: int, start: str) -> None:
    """Kill it if it still is the process that started then."""
    if start and started(pid) == start:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def remove_socket(path: Path) -> None:
    """A socket file whose listener was killed stays behind; anything else that stands there is not ours."""
    if path.is_socket():
        path.unlink(missing_ok=True)


def parts_inside(path: str) -> list[str]:
    """The steps from the box's home to this path, relative or under /box. Anything that leads outside is refused."""
    steps = PurePosixPath(path)
    if steps.is_absolute():
        if not steps.is_relative_to(HOME_IN_BOX):
            raise InvalidRequest(f"{path!r} is outside the box's home: use a path under {HOME_IN_BOX}")
        steps = steps.relative_to(HOME_IN_BOX)
    parts = list(steps.parts)
    if ".." in parts or "\0" in path:
        raise InvalidRequest(f"{path!r} leads out of the box's home: use a path under {HOME_IN_BOX} without '..'")
    if any(len(os.fsencode(part)) > 255 for part in parts):
        raise InvalidRequest("a file name in the path is longer than 255 bytes")
    return parts if parts and not path.endswith("/") else [*parts, ""]


def private_directory(path: Path) -> Path:
    """This directory, ours and closed to others: whoever can write here can enter every box."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.stat()
    if found.st_uid != os.geteuid():
        raise Forbidden(f"{path} belongs to another user: choose a state directory of your own")
    if found.st_mode & 0o077:
        path.chmod(0o700)
    return path


def remove_tree(path: Path) -> None:
    """Remove it whatever is in it, while what was just killed may still be writing there."""
    deadline = time.monotonic() + REMOVE_SECONDS
    while os.path.lexists(path):
        try:
            shutil.rmtree(path)
        except (OSError, RecursionError):  # because it gives up on closed directories and deep nesting; rm does not
            subprocess.run(["chmod", "-R", "u+rwX", "--", str(path)], check=False, capture_output=True)
            removed = subprocess.run(["rm", "-rf", "--", str(path)], check=False, capture_output=True, text=True)
            if removed.returncode and time.monotonic() > deadline:
                raise Broken(f"the box directory {path} could not be removed: {removed.stderr.strip()[-300:]}") from None
            threading.Event().wait(0.01)
