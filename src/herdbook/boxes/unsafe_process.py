"""Plain processes that call themselves boxes, for machines that cannot isolate and for people who know what they run.

It keeps files apart, the environment clean and most limits; it hides nothing and stops nobody. Only ever chosen by its name, and
every record says `process`. A program that leaves its session outlives its box here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from herdbook.base.errors import NotFound
from herdbook.boxes import owner, recipe
from herdbook.boxes.directory import BoxDirectories, kill_noted, kill_process, parts_inside
from herdbook.boxes.execution import LocalExecution
from herdbook.boxes.provider import HOME_IN_BOX, Box, BoxLimits, BoxSpec, Finding, Isolation, demand
from herdbook.boxes.spawn import LAUNCH, order_file, order_for

# Counted for the whole user here, not for the box: a limit would stop the user's own programs.
NOT_LIMITED = {"RLIMIT_NPROC"} if owner.IS_LINUX else {"RLIMIT_NPROC", "RLIMIT_AS"}


class UnsafeProcess:
    """Directories and process sessions, without isolation."""

    name = "unsafe-process"
    isolation: Isolation = "process"

    def __init__(self, state_dir: Path | str) -> None:
        self._directories = BoxDirectories(Path(state_dir))

    def probe(self) -> Finding:
        return Finding(ok=True, what="unsafe-process: programs run as they are, nothing is isolated")

    def create(self, spec: BoxSpec) -> Box:
        demand(self, spec.minimum)
        place = self._directories.create(spec)
        return self._box(spec.id, spec.label, place, spec.sockets)

    def put(self, box: Box, path: str, data: bytes, *, mode: int = 0o644) -> None:
        self._directories.put(box.id, path, data, mode=mode)

    def exec(
        self,
        box: Box,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_seconds: float | None = None,
    ) -> LocalExecution:
        place = self._directories.place(box.id)
        limits, _ = self._directories.kept(place)
        base = {"PATH": f"{os.path.dirname(sys.executable)}:/usr/local/bin:/usr/bin:/bin", "HOME": box.home, "LANG": "C.UTF-8"}
        order = order_for(
            argv,
            env={**base, **(env or {})},
            cwd=str(place.joinpath("files", *parts_inside(cwd or HOME_IN_BOX))),
            limits=kept_limits(limits),
        )
        ordered = order_file(order)
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(LAUNCH), str(ordered.fd)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={},
            pass_fds=(ordered.fd,),
            start_new_session=True,
            bufsize=0,
        )
        start = owner.started(process.pid)
        return LocalExecution(
            process,
            end=lambda: kill_session(process.pid, start),
            disk_is_full=lambda: self._directories.is_over(place, limits.disk_bytes),
            order=ordered,
            note=self._note(place, process, start),
            timeout_seconds=limits.wall_seconds if timeout_seconds is None else timeout_seconds,
        )

    def destroy(self, box_id: str) -> None:
        self._directories.destroy(box_id, end=lambda place: kill_noted(place, kill_session))

    def list(self, label: str | None = None) -> Sequence[Box]:
        found = self._directories.names(label)
        return [self._box(box_id, its_label, place, self._directories.kept(place)[1]) for its_label, box_id, place in found]

    def _box(self, box_id: str, label: str, place: Path, sockets: Mapping[str, str]) -> Box:
        where = {inside: outside for outside, inside in sockets.items()}
        return Box(
            id=box_id,
            label=label,
            provider=self.name,
            isolation=self.isolation,
            home=str(place / "files"),
            python=sys.executable,
            sockets=where,
        )

    def _note(self, place: Path, process: subprocess.Popen[bytes], start: str) -> Path:
        try:
            return self._directories.note_running(place, process.pid)
        except FileNotFoundError:
            kill_session(process.pid, start)
            process.communicate()
            raise NotFound("the box was destroyed while a program was starting in it") from None


def kept_limits(limits: BoxLimits) -> list[tuple[str, int]]:
    return [(name, value) for name, value in recipe.limits_as_pairs(limits) if name not in NOT_LIMITED]


def kill_session(leader: int, start: str) -> None:
    """Kill the leader and every process of its session, unless the leader's id belongs to a stranger by now."""
    if owner.started(leader) not in ("", start):
        return
    kill_process(leader, start)
    for pid in members(leader):
        kill_process(pid, owner.started(pid))


def members(session: int) -> list[int]:
    """The processes of a session."""
    return [pid for pid in process_ids() if session_of(pid) == session]


def process_ids() -> list[int]:
    if owner.IS_LINUX:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    listed = subprocess.run(["ps", "-A", "-o", "pid="], capture_output=True, text=True, check=False)
    return [int(pid) for pid in listed.stdout.split()]


def session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return -1
