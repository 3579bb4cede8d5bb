"""Boot one box and ask from inside whether it isolates. What the outside believes is not evidence."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from herdbook.base.errors import CannotIsolate
from herdbook.boxes import owner
from herdbook.boxes.provider import BoxLimits, BoxSpec, Finding, Provider

LABEL = "herdbook-probe"
NAMESPACES = ("pid", "net", "mnt", "ipc", "uts", "user")
PROBE_SECONDS = 20.0

# Runs inside. Addresses are from the block kept for documentation (RFC 5737): nothing is ever there.
INSIDE = """
import json, os, socket, sys
def connects():
    try:
        socket.create_connection(("192.0.2.1", 9), timeout=1).close()
    except TimeoutError:
        return True
    except OSError:
        return False
    return True
def nests():
    try:
        import ctypes
    except ImportError:
        return "whether it may make namespaces cannot be told, since its Python has no ctypes"
    child = os.fork()
    if child == 0:
        os._exit(ctypes.CDLL(None).unshare(0x10000000) == 0)
    return "it may make user namespaces" if os.waitpid(child, 0)[1] else ""
status = {line.split(":")[0]: line.split()[-1] for line in open("/proc/self/status")}
print(json.dumps({
    "processes": sum(name.isdecimal() for name in os.listdir("/proc")),
    "namespaces": {name: os.readlink("/proc/self/ns/" + name) for name in sys.argv[2:]},
    "network": connects(),
    "sees": [path for path in sys.argv[1].split(":") if os.path.exists(path)],
    "capabilities": int(status["CapEff"], 16) | int(status["CapPrm"], 16),
    "user": os.getuid(),
    "nests": nests(),
}))
"""


class OnThisMachine(Provider, Protocol):
    """A provider whose boxes share this kernel, so that their namespaces can be told from ours."""

    @property
    def state_dir(self) -> Path: ...


def look_inside(provider: OnThisMachine, *, hidden: Sequence[str] = (), namespaces: Sequence[str] = NAMESPACES) -> list[str]:
    """What a real box leaks, in words; nothing, if it isolates. Raises CannotIsolate with its last words if none ran."""
    sweep(provider)
    box_id = f"probe-{os.getpid()}-{owner.started(os.getpid())}-{secrets.token_hex(4)}"
    try:
        box = provider.create(BoxSpec(id=box_id, label=LABEL, limits=BoxLimits(wall_seconds=PROBE_SECONDS)))
        canary = provider.state_dir / "canary"
        canary.touch()
        execution = provider.exec(box, [box.python, "-I", "-S", "-c", INSIDE, ":".join((str(canary), *hidden)), *namespaces])
        said = b"".join(data for _, data in execution).decode(errors="replace")
    finally:  # a probe that is killed here is swept by the next one
        provider.destroy(box_id)
    if execution.exit.code != 0:
        raise CannotIsolate(said.strip() or f"the probe ended with exit code {execution.exit.code}")
    return leaks(json.loads(said), {name: os.readlink(f"/proc/self/ns/{name}") for name in namespaces})


def leaks(inside: dict[str, Any], outside: dict[str, str]) -> list[str]:
    """Every way in which the box failed to isolate."""
    found = [f"the {name} namespace is the host's" for name, link in inside["namespaces"].items() if link == outside[name]]
    if inside["processes"] > 4:
        found.append("other processes are visible")
    if inside["network"]:
        found.append("the network can be reached")
    found += [f"{path} is visible" for path in inside["sees"]]
    if inside["capabilities"]:
        found.append(f"it holds the capabilities {inside['capabilities']:#x}")
    if inside["user"] == 0:
        found.append("it runs as root")
    if inside["nests"]:
        found.append(inside["nests"])
    return found


def judge(name: str, leaked: Sequence[str], *, how: str, fix: str) -> Finding:
    if leaked:
        return Finding(ok=False, what=f"{name}: the box does not isolate: {'; '.join(leaked)}", fix=fix)
    return Finding(ok=True, what=f"{name}: a box started and was isolated ({how})")


def sweep(provider: Provider) -> None:
    """Remove the boxes of probes whose process is gone."""
    for box in provider.list(LABEL):
        _, pid, start, *_ = [*box.id.split("-"), "", "", ""]
        if not pid.isdecimal() or owner.started(int(pid)) != start:
            provider.destroy(box.id)
