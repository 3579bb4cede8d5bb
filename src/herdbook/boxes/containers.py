"""Boxes made by a container engine, Docker or Podman, through its own socket: another kernel view for each exec, the same kernel.

As with bubblewrap, a box is a directory on this machine, and each exec starts a fresh container over it: no network, a read-only
root, no capabilities, nothing to gain. The container's first process ends when whoever started it is gone. Arguments and
environment go in on its standard input, so that the engine keeps neither.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from herdbook.base import settings
from herdbook.base.errors import CannotIsolate, HerdbookError, Unavailable
from herdbook.boxes import owner, recipe
from herdbook.boxes.directory import BoxDirectories, parts_inside
from herdbook.boxes.engine import Attached, Engine, Refused, sockets
from herdbook.boxes.findings import NOT_LINUX, OPEN_FIX, engine_finding
from herdbook.boxes.launch import FIRST_PROCESS
from herdbook.boxes.probe import NAMESPACES, judge, look_inside
from herdbook.boxes.provider import HOME_IN_BOX, Box, BoxLimits, BoxSpec, Chunk, Finding, Isolation, demand
from herdbook.boxes.spawn import LAUNCH, order_bytes, order_for
from herdbook.boxes.watched import WatchedExecution

USER_FOR_ROOT: Final = 65534  # nobody: owner of no file, here and in the container
OF_BOX, OF_LABEL, OF_STATE = "herdbook.box", "herdbook.label", "herdbook.state"
KILLED: Final = 137
PYTHON: Final = "python3"
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# A limit on processes would count every process of the user on the host: the engine counts the container's.
NOT_BY_LAUNCHER: Final = frozenset({"RLIMIT_NPROC"})


class Containers:
    """Container boxes on this machine."""

    isolation: Isolation = "container"

    def __init__(self, state_dir: Path | str, *, name: str = "docker") -> None:
        self.name = name
        self._user = (USER_FOR_ROOT, USER_FOR_ROOT) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
        self._directories = BoxDirectories(Path(state_dir), owner=USER_FOR_ROOT if os.geteuid() == 0 else None)
        self.image = settings.load().box_image
        # Two homes may share an engine: neither may list, or reap, the other's.
        self._state = hashlib.sha256(os.fsencode(self.state_dir)).hexdigest()[:32]

    @property
    def state_dir(self) -> Path:
        return self._directories.state_dir

    @cached_property
    def engine(self) -> Engine:
        """The first socket that answers."""
        found = sockets(self.name)
        problems = []
        for path in found:
            try:
                Engine(path).get("/_ping")
            except (Unavailable, Refused) as problem:
                problems.append(str(problem))
            else:
                return Engine(path)
        raise Unavailable("; ".join(problems) or f"no {self.name} engine listens on this machine")

    def probe(self) -> Finding:
        if not owner.IS_LINUX:
            return Finding(ok=False, what=f"{self.name}: this is not Linux", fix=NOT_LINUX.fix)
        try:
            leaked = look_inside(self, namespaces=[name for name in NAMESPACES if name != "user"])
        except HerdbookError as problem:
            return engine_finding(self.name, problem.message, image=self.image)
        return judge(self.name, leaked, how="a container, same kernel", fix=OPEN_FIX)

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
    ) -> WatchedExecution:
        place = self._directories.place(box.id)
        limits, mounted = self._directories.kept(place)
        order = order_for(
            argv,
            env={"PATH": self._path, "HOME": HOME_IN_BOX, "LANG": "C.UTF-8", **(env or {})},
            cwd=str(Path(HOME_IN_BOX, *parts_inside(cwd or HOME_IN_BOX))),
            limits=[(name, value) for name, value in recipe.limits_as_pairs(limits) if name not in NOT_BY_LAUNCHER],
        )
        for outside in mounted:
            if os.path.exists(outside):  # else the engine says it better
                self._directories.hand_over(Path(outside))
        program = self._start(box, self._asked(box, place, limits, mounted), order_bytes(order))
        return WatchedExecution(
            program,
            timeout_seconds=limits.wall_seconds if timeout_seconds is None else timeout_seconds,
            disk_is_full=lambda: self._directories.is_over(place, limits.disk_bytes),
        )

    def destroy(self, box_id: str) -> None:
        if not self._directories.find(box_id):
            return self._remove_containers(box_id)  # its directory may be lost
        return self._directories.destroy(box_id, end=lambda place: self._remove_containers(box_id))

    def list(self, label: str | None = None) -> Sequence[Box]:
        """By directory, and by the engine's own labels for what has lost its directory."""
        found = {
            box_id: self._box(box_id, its_label, self._directories.kept(place)[1])
            for its_label, box_id, place in self._directories.names(label)
        }
        for one in self._containers():
            box_id, its_label = one["Labels"][OF_BOX], one["Labels"].get(OF_LABEL, "")
            if box_id not in found and label in (None, its_label):
                found[box_id] = self._box(box_id, its_label, {})
        return list(found.values())

    @cached_property
    def _path(self) -> str:
        """Where the image has its programs."""
        variables = (self._image["Config"] or {}).get("Env") or []
        return next((text.partition("=")[2] for text in variables if text.startswith("PATH=")), PATH)

    @cached_property
    def _image(self) -> Any:
        try:
            return self.engine.get(f"/images/{self.image}/json")
        except Refused as refused:
            raise CannotIsolate(refused.said) from refused

    def _box(self, box_id: str, label: str, mounted: Mapping[str, str]) -> Box:
        return Box(
            id=box_id,
            label=label,
            provider=self.name,
            isolation=self.isolation,
            home=HOME_IN_BOX,
            python=PYTHON,
            sockets={path: path for path in mounted.values()},
        )

    def _asked(self, box: Box, place: Path, limits: BoxLimits, mounted: Mapping[str, str]) -> dict[str, Any]:
        """The container, in the engine's words. Mounts, not binds: a bind makes a missing source, as root."""
        scratch = f"rw,exec,nosuid,nodev,mode=1777,size={limits.tmp_bytes}"
        binds = [(str(place / "files"), HOME_IN_BOX, False), (str(LAUNCH), recipe.LAUNCH_IN_BOX, True)]
        binds += [(outside, inside, True) for outside, inside in mounted.items()]
        return {
            "Image": self._image["Id"],
            "Entrypoint": [],
            "Cmd": [PYTHON, "-I", "-S", recipe.LAUNCH_IN_BOX, FIRST_PROCESS],
            "User": "{}:{}".format(*self._user),
            "WorkingDir": HOME_IN_BOX,
            "Hostname": "box",
            "Labels": {OF_BOX: box.id, OF_LABEL: box.label, OF_STATE: self._state},
            "OpenStdin": True,
            "StdinOnce": True,
            "AttachStdin": True,
            "AttachStdout": True,
            "AttachStderr": True,
            "NetworkDisabled": True,
            "HostConfig": {
                "NetworkMode": "none",
                "ReadonlyRootfs": True,
                "CapDrop": ["ALL"],
                "SecurityOpt": ["no-new-privileges"],
                "PidsLimit": limits.processes + 1,  # the first process is ours
                "Memory": limits.memory_bytes,
                "MemorySwap": limits.memory_bytes,
                "ShmSize": limits.tmp_bytes,
                "Tmpfs": {"/tmp": scratch},  # noqa: S108  (the box's own)
                "LogConfig": {"Type": "none"},
                "Mounts": [
                    {"Type": "bind", "Source": source, "Target": inside, "ReadOnly": read_only}
                    for source, inside, read_only in binds
                ],
            },
        }

    def _start(self, box: Box, asked: dict[str, Any], order: bytes) -> ContainerProgram:
        """Attached before it starts, so that no output is lost."""
        engine, container, attached = self.engine, "", None
        try:
            container = engine.post("/containers/create", asked)["Id"]
            attached = engine.attach(container)
            engine.post(f"/containers/{container}/start")
            attached.send(order)
        except (Refused, OSError, HerdbookError) as problem:
            if attached is not None:
                attached.close()
            if container:
                engine.remove(container)
            self._directories.place(box.id)  # raises NotFound if it was destroyed in between
            raise CannotIsolate(f"the container did not start: {problem}") from problem
        return ContainerProgram(engine, container, attached)

    def _containers(self, box_id: str | None = None) -> Sequence[Any]:
        """Every container of this state directory, or of one box; none where there is no engine."""
        if not sockets(self.name):
            return []
        labels = [f"{OF_STATE}={self._state}", *([f"{OF_BOX}={box_id}"] if box_id else [])]
        found: list[Any] = self.engine.get("/containers/json", all=1, filters={"label": labels})
        return found

    def _remove_containers(self, box_id: str) -> None:
        for one in self._containers(box_id):
            self.engine.remove(one["Id"])


class ContainerProgram:
    """A started container, seen as one program."""

    def __init__(self, engine: Engine, container: str, attached: Attached) -> None:
        self._engine, self._container, self._attached = engine, container, attached

    def chunks(self) -> Iterator[Chunk]:
        return iter(self._attached)

    def kill(self) -> None:
        try:
            self._engine.post(f"/containers/{self._container}/kill")
        except (Refused, Unavailable):
            self._attached.cut()  # because it is gone, or nobody can tell: its first process sees its input end

    def finish(self) -> int:
        self._attached.close()
        try:
            code = int(self._engine.post(f"/containers/{self._container}/wait")["StatusCode"])
            self._engine.remove(self._container)
        except (Refused, Unavailable):
            return KILLED  # because somebody destroyed the box, or the engine is gone: the reaper removes what is left
        return code
