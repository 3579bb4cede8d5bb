"""What a bubblewrap box sees, as arguments: the system's programs read-only, its own directory, its sockets, and nothing else.

Pure but for looking at which of the host's top directories are links. The order of the arguments is the order of the mounts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from herdbook.base.errors import CannotIsolate
from herdbook.boxes.provider import HOME_IN_BOX, BoxLimits

USER_IN_BOX = 1000
LAUNCH_IN_BOX = "/run/launch.py"
NO_USERNS_IN_BOX = "/run/max_user_namespaces"
RUN_BYTES = 1024 * 1024
SCRATCH = tuple(f"/{place}" for place in ("dev/shm", "tmp"))  # of the box, not of the host
TOP_DIRECTORIES = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
PUBLIC_ETC = ("ld.so.cache", "alternatives")  # where libraries and the system's chosen programs are: no secret among them


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The host's Python as a box sees it: the installation itself, never the home directory it may lie in."""

    program: str
    roots: tuple[str, ...]  # what must be mounted besides /usr, at the same place, since paths are compiled in


def interpreter() -> Interpreter:
    """The base interpreter this process runs on. Refuses one whose installation is a whole home directory."""
    roots = tuple(dict.fromkeys((os.path.realpath(sys.base_prefix), sys.base_prefix)))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    candidates = [os.path.realpath(sys.executable), *(f"{roots[0]}/bin/{name}" for name in (version, "python3"))]
    program = next((path for path in candidates if is_under(path, (*roots, "/usr")) and os.path.exists(path)), None)
    home = os.path.realpath(Path.home())
    if program is None or any(is_under(home, (root,)) for root in roots):
        raise CannotIsolate(
            f"the Python at {sys.base_prefix} cannot be shown to a box without what lies around it: "
            "run herdbook on a Python that has a directory of its own"
        )
    return Interpreter(program, tuple(root for root in roots if not is_under(root, ("/usr",))))


def is_under(path: str, roots: tuple[str, ...]) -> bool:
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)


def parents(path: str) -> list[str]:
    """`/a/b/c` -> `/a`, `/a/b`."""
    return [str(parent) for parent in reversed(Path(path).parents) if str(parent) != "/"]


def system_mounts(python: Interpreter) -> list[str]:
    arguments = ["--ro-bind", "/usr", "/usr"]
    for name in TOP_DIRECTORIES:
        top = f"/{name}"
        if os.path.islink(top):
            arguments += ["--symlink", os.readlink(top), top]
        elif os.path.isdir(top):
            arguments += ["--ro-bind", top, top]
    arguments += ["--perms", "0755", "--dir", "/etc"]
    for name in PUBLIC_ETC:
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for root in python.roots:
        for parent in parents(root):  # named one by one, or they get the host's modes, and a home is closed to others
            arguments += ["--perms", "0755", "--dir", parent]
        arguments += ["--ro-bind", root, root]
    return arguments


def hidden(programs: Sequence[str], python: Interpreter) -> list[str]:
    """Programs of the host that a box must not find: each file is covered, and a kit that it is part of is emptied."""
    shared = ("/usr", "/usr/local", *python.roots)  # places whose `bin` belongs to many
    folders = [f"{place}/{name}" for place in shared for name in ("bin", "sbin")]
    found = {os.path.realpath(f"{folder}/{name}") for folder in folders for name in programs}
    arguments = []
    for file in sorted(path for path in found if os.path.isfile(path) and is_under(path, shared)):
        kit, folder = os.path.split(os.path.dirname(file))
        arguments += ["--tmpfs", kit] if folder == "bin" and kit not in shared else ["--ro-bind", "/dev/null", file]
    return arguments


def scratch_mounts(limits: BoxLimits) -> list[str]:
    """Everything writable that is not the box's own directory is in memory and has a size."""
    sized = ["--perms", "1777", "--size", str(limits.tmp_bytes), "--tmpfs"]
    small = ["--perms", "0755", "--size", str(RUN_BYTES), "--tmpfs"]
    return ["--proc", "/proc", "--dev", "/dev", *sized, SCRATCH[0], "--remount-ro", "/dev", *sized, SCRATCH[1], *small, "/run"]


def own_mounts(files: Path, launch: Path, etc: Path, sockets: Mapping[str, str]) -> list[str]:
    arguments = ["--bind", str(files), HOME_IN_BOX, "--ro-bind", str(launch), LAUNCH_IN_BOX]
    for name in ("passwd", "group"):
        arguments += ["--ro-bind", str(etc / name), f"/etc/{name}"]
    for outside, inside in sockets.items():
        arguments += ["--ro-bind", outside, inside]
    return arguments


def separation(*, drops: bool, disable_userns: bool) -> list[str]:
    """Namespaces, no terminal, no capabilities. As root the launcher keeps three until it has dropped to the box's user."""
    arguments = ["--unshare-user", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--hostname", "box"]
    arguments += ["--cap-drop", "ALL"]
    if drops:
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SYS_RESOURCE"):
            arguments += ["--cap-add", capability]
        return [*arguments, "--bind", "/proc/sys/user/max_user_namespaces", NO_USERNS_IN_BOX]
    arguments += ["--uid", str(USER_IN_BOX), "--gid", str(USER_IN_BOX)]
    return [*arguments, "--disable-userns"] if disable_userns else arguments


def limits_as_pairs(limits: BoxLimits) -> list[tuple[str, int]]:
    return [
        ("RLIMIT_CORE", 0),
        ("RLIMIT_NPROC", limits.processes),
        ("RLIMIT_FSIZE", limits.file_bytes),
        ("RLIMIT_CPU", limits.cpu_seconds),
        ("RLIMIT_NOFILE", limits.open_files),
        ("RLIMIT_AS", limits.memory_bytes),
    ]
