"""Boot one bubblewrap box and ask from inside whether it isolates. What the outside believes is not evidence."""

from __future__ import annotations

import json
import os
import secrets
from typing import TYPE_CHECKING, Any

from herdbook.base.errors import HerdbookError
from herdbook.boxes import owner
from herdbook.boxes.findings import ELSE_FIX, explain, kernel_settings
from herdbook.boxes.provider import BoxLimits, BoxSpec, Finding

if TYPE_CHECKING:
    from herdbook.boxes.bubblewrap import Bubblewrap

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
status = {line.split(":")[0]: line.split()[-1] for line in open("/proc/self/status")}
print(json.dumps({
    "processes": sum(name.isdecimal() for name in os.listdir("/proc")),
    "namespaces": {name: os.readlink("/proc/self/ns/" + name) for name in sys.argv[2:]},
    "network": connects(),
    "sees": [path for path in (sys.argv[1], "/etc/shadow", "/sys") if os.path.exists(path)],
    "capabilities": int(status["CapEff"], 16) | int(status["CapPrm"], 16),
    "user": os.getuid(),
}))
"""


def probe(provider: Bubblewrap) -> Finding:
    """A finding that is well only if a real box ran and nothing leaked."""
    sweep(provider)
    box_id = f"probe-{os.getpid()}-{owner.started(os.getpid())}-{secrets.token_hex(4)}"
    try:
        box = provider.create(BoxSpec(id=box_id, label=LABEL, limits=BoxLimits(wall_seconds=PROBE_SECONDS)))
        canary = provider.state_dir / "canary"
        canary.touch()
        execution = provider.exec(box, [box.python, "-I", "-S", "-c", INSIDE, str(canary), *NAMESPACES])
        chunks = list(execution)
    except HerdbookError as problem:
        return explain(problem.message, kernel_settings(), as_root=os.geteuid() == 0)
    finally:  # a probe that is killed here is swept by the next one
        provider.destroy(box_id)
    said = b"".join(data for _, data in chunks).decode(errors="replace")
    if execution.exit.code != 0:
        return explain(said, kernel_settings(), as_root=os.geteuid() == 0)
    return judge(json.loads(said), {name: os.readlink(f"/proc/self/ns/{name}") for name in NAMESPACES})


def judge(inside: dict[str, Any], outside: dict[str, str]) -> Finding:
    """Every way in which the box failed to isolate, or the one line that says it did."""
    leaks = [f"the {name} namespace is the host's" for name, link in inside["namespaces"].items() if link == outside[name]]
    if inside["processes"] > 4:
        leaks.append("other processes are visible")
    if inside["network"]:
        leaks.append("the network can be reached")
    leaks += [f"{path} is visible" for path in inside["sees"]]
    if inside["capabilities"]:
        leaks.append(f"it holds the capabilities {inside['capabilities']:#x}")
    if inside["user"] == 0:
        leaks.append("it runs as root")
    if leaks:
        return Finding(ok=False, what=f"bubblewrap: the box does not isolate: {'; '.join(leaks)}", fix=ELSE_FIX)
    return Finding(ok=True, what="bubblewrap: a box started and was isolated (namespaces, same kernel)")


def sweep(provider: Bubblewrap) -> None:
    """Remove the boxes of probes whose process is gone."""
    for box in provider.list(LABEL):
        _, pid, start, *_ = [*box.id.split("-"), "", "", ""]
        if not pid.isdecimal() or owner.started(int(pid)) != start:
            provider.destroy(box.id)
