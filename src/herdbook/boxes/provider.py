"""What a box provider is: five methods, and the types they speak.

Isolation is data, so a task can demand a minimum and every record says what it ran in. A provider may keep nothing that only one
process knows: any process that can reach it can list, enter and destroy any box.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Final, Literal, Protocol

from herdbook.base.errors import CannotIsolate, InvalidRequest

Isolation = Literal["microvm", "userspace-kernel", "container", "namespace", "process"]
Stream = Literal["stdout", "stderr"]
Chunk = tuple[Stream, bytes]
Reason = Literal["exited", "timeout", "disk", "killed"]

WEAKEST_FIRST: Final[tuple[Isolation, ...]] = ("process", "namespace", "container", "userspace-kernel", "microvm")
HOME_IN_BOX: Final = "/box"
SOCKET_IN_BOX: Final = "/run/herdbook.sock"  # where a box finds the record
TIMEOUT_EXIT_CODE: Final = 124  # what timeout(1) answers
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # is also a file name, a host name and a container name
MEBIBYTE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxLimits:
    """What one box may take. Memory and CPU hold for each process, so the worst case is `processes` times as much."""

    memory_bytes: int = 2048 * MEBIBYTE  # address space of one process
    processes: int = 128  # threads count too
    file_bytes: int = 256 * MEBIBYTE  # one file
    disk_bytes: int = 1024 * MEBIBYTE  # everything under the box's home, looked at while it runs
    cpu_seconds: int = 600  # of one process
    tmp_bytes: int = 64 * MEBIBYTE  # /tmp, and again /dev/shm
    wall_seconds: float = 600  # one exec, unless it asks for less or more
    open_files: int = 1024

    def __post_init__(self) -> None:
        for limit in fields(self):
            if not getattr(self, limit.name) > 0:  # False for NaN too
                raise InvalidRequest(f"the box limit {limit.name} must be above zero")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxSpec:
    """What is asked for."""

    id: str
    label: str  # what boxes are listed and reaped by
    sockets: Mapping[str, str] = field(default_factory=dict)  # unix sockets: path on the host -> path in the box
    limits: BoxLimits = field(default_factory=BoxLimits)
    minimum: Isolation = "process"
    without: tuple[str, ...] = ()  # programs that must not be found inside, where the box shows those of its host

    def __post_init__(self) -> None:
        box_name(self.id, what="box id")
        box_name(self.label, what="box label")


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A box that exists. Only names and places: everything else is the provider's."""

    id: str
    label: str
    provider: str
    isolation: Isolation
    home: str  # its own directory, as code inside sees it
    python: str  # an interpreter, as code inside sees it
    sockets: Mapping[str, str] = field(default_factory=dict)  # path asked for -> path where code inside finds it
    record_url: str = ""  # where code inside finds the record, if that is not its socket; the box's claim is to be added


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How an exec ended: `code` as a shell would give it, 128 + n for a signal, 124 for a timeout."""

    code: int
    reason: Reason = "exited"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at: what was found and, if it is not well, the sentence that mends it."""

    ok: bool
    what: str
    fix: str = ""


class Execution(Protocol):
    """A program running in a box: iterate over its output as it comes, then ask for its `exit`."""

    def __iter__(self) -> Iterator[Chunk]: ...

    @property
    def exit(self) -> Exit:
        """How it ended; only known once the output has been read to its end."""
        ...

    def kill(self) -> None:
        """End it with everything it started. Ending it twice is one ending."""
        ...


class Provider(Protocol):
    """Where boxes come from."""

    @property
    def name(self) -> str: ...

    @property
    def isolation(self) -> Isolation: ...

    def probe(self) -> Finding:
        """Boot one and see whether it isolates: never an opinion from looking at files."""
        ...

    def create(self, spec: BoxSpec) -> Box:
        """Make the box. Refuses a spec that demands more isolation than this provider gives."""
        ...

    def put(self, box: Box, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Place a file inside the box's home, whole or not at all. Paths that lead outside are refused."""
        ...

    def exec(
        self,
        box: Box,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_seconds: float | None = None,
    ) -> Execution:
        """Start a program; nothing of the host's environment goes in."""
        ...

    def destroy(self, box_id: str) -> None:
        """Kill what runs in it and remove it. Destroying a box that is gone, or never was, is fine."""
        ...

    def list(self, label: str | None = None) -> Sequence[Box]:
        """Every box there is, whoever made it; half-made and half-destroyed ones too."""
        ...


def at_least(have: Isolation, need: Isolation) -> bool:
    """Whether `have` isolates as strongly as `need`, or more."""
    return WEAKEST_FIRST.index(have) >= WEAKEST_FIRST.index(need)


def demand(provider: Provider, need: Isolation) -> None:
    """Refuse to go on with less isolation than was asked for."""
    if not at_least(provider.isolation, need):
        raise CannotIsolate(f"{provider.name} isolates as {provider.isolation!r}, but {need!r} or stronger is asked for")


def box_name(text: str, *, what: str) -> str:
    """Refuse a name that could mean something to a file system or an engine."""
    if not NAME.fullmatch(text):
        raise InvalidRequest(f"the {what} {text!r} must be 1 to 64 letters, digits, dots, hyphens or underscores")
    return text
