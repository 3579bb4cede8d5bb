"""What a hostile program in a container may try, and that none of it works. Few boxes, many attempts each: one costs 0.4 s."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from herdbook.boxes.containers import Containers
from herdbook.boxes.provider import BoxLimits, BoxSpec
from herdbook.testing.boxes import new_spec, run, run_python

pytestmark = pytest.mark.slow
MEBIBYTE = 1024 * 1024

# Each attempt is an expression; what it raises is its answer.
TRY_ALL = """
import ctypes, glob, json, os, socket, stat, sys
libc = ctypes.CDLL(None, use_errno=True)
answers = {}
for attempt in json.loads(sys.argv[1]):
    try:
        answers[attempt] = repr(eval(attempt))
    except (OSError, MemoryError) as problem:
        answers[attempt] = "refused: %s" % problem
print(json.dumps(answers))
"""


def answers(provider: Containers, *attempts: str, spec: BoxSpec | None = None) -> dict[str, str]:
    box = provider.create(spec or new_spec())
    try:
        said = run_python(provider, box, TRY_ALL, json.dumps(attempts))
        assert said.code == 0, said.stderr
        found: dict[str, str] = said.json()
        return found
    finally:
        provider.destroy(box.id)


def test_what_is_the_hosts_is_neither_seen_nor_reached(
    containers: Containers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files, processes, the network or the environment of the host in sight of a box are the host's secrets gone."""
    monkeypatch.setenv("HOST_SECRET", "canary")
    (tmp_path / "secret").write_text("canary")
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as hidden:
        hidden.bind(f"\0herdbook-canary-{os.getpid()}")
        hidden.listen()
        addresses = (("127.0.0.1", listener.getsockname()[1]), ("192.0.2.1", 80), ("169.254.169.254", 80))
        reach = [f"socket.create_connection({address!r}, timeout=5)" for address in addresses]
        reach.append(f"socket.socket(socket.AF_UNIX).connect('\\0herdbook-canary-{os.getpid()}')")
        reach.append("socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)")
        see = [
            f"os.path.lexists({str(path)!r})"
            for path in (tmp_path, containers.state_dir, "/var/run/docker.sock", "/dev/sda", "/dev/mem")
        ]
        count = "len([n for n in os.listdir('/proc') if n.isdecimal()])"
        environ = "[open(path, 'rb').read() for path in glob.glob('/proc/[0-9]*/environ')]"
        found = answers(containers, *reach, *see, count, environ, "[name for _, name in socket.if_nameindex()]")
    assert [] == [attempt for attempt in reach if not found[attempt].startswith("refused")]
    assert ["False"] * len(see) == [found[attempt] for attempt in see]
    assert int(found[count]) <= 4
    assert "canary" not in found[environ]
    assert found["[name for _, name in socket.if_nameindex()]"] == "['lo']"


def test_nothing_of_the_system_can_be_changed_and_nothing_gained(containers: Containers) -> None:
    """A writable setting, a device, a namespace or a capability is a way to undo the walls from inside."""
    written = [
        f"open({path!r}, 'ab')" for path in ("/x", "/usr/x", "/etc/x", "/etc/passwd", "/run/launch.py", "/run/x", "/bin/sh")
    ]
    knobs = ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/kernel/profiling", "/proc/self/uid_map")
    written += [f"os.write(os.open({path!r}, os.O_WRONLY), b'1')" for path in knobs]
    written += [f"os.mknod({place + '/d'!r}, 0o600 | stat.S_IFBLK, os.makedev(8, 0))" for place in ("/box", "/tmp", "/dev/shm")]
    written += ["os.setuid(0)", "os.setgid(0)", "os.setgroups([0])", "os.chroot('/tmp')", "os.chown('/box', 0, 0)"]
    calls = [f"libc.unshare({flags})" for flags in (0x10000000, 0x00020000, 0x40000000, 0x10020000)]
    calls += ["libc.mount(b'none', b'/tmp', b'tmpfs', 0, 0)", "libc.umount2(b'/run', 2)"]
    status = "open('/proc/self/status').read()"
    opened = "[n for n in map(int, os.listdir('/proc/self/fd')) if n > 3]"
    found = answers(containers, opened, *written, status, "os.getuid()", *calls)  # a namespace would change what is seen
    assert [] == [attempt for attempt in written if not found[attempt].startswith("refused")]
    assert ["-1"] * len(calls) == [found[attempt] for attempt in calls]
    fields: dict[str, Any] = dict(line.split(":", 1) for line in eval(found[status]).splitlines() if ":" in line)
    assert {int(fields[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")} == {0}
    assert fields["NoNewPrivs"].strip() == "1"
    assert found[opened] == "[]"
    assert found["os.getuid()"] != "0"


def test_the_engine_keeps_neither_arguments_nor_environment(containers: Containers) -> None:
    """What the engine writes down stays on its disk, and whoever may ask it reads it."""
    box = containers.create(new_spec())
    code = "print('up', flush=True); import time; time.sleep(600)"
    execution = containers.exec(box, [box.python, "-c", code, "argument-canary"], env={"TOKEN": "environment-canary"})
    for _ in execution:
        (container,) = containers.engine.get("/containers/json")
        kept = json.dumps(containers.engine.get(f"/containers/{container['Id']}/json"))
        execution.kill()
    containers.destroy(box.id)
    assert "canary" not in kept
    assert containers.engine.get("/containers/json", all=1) == []


FORKS = """
import os, time
n = 0
try:
    while n < 400:
        if os.fork() == 0: time.sleep(600)
        n += 1
except OSError:
    pass
print(n)
"""
# Each holds what it has until all have been asked: on a busy machine they would else come one after the other, and fit.
SHARED = """
import os, signal
def start():
    says, hears = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(says)
        x = bytearray(60 << 20)
        x[::4096] = b"x" * len(x[::4096])
        os.write(hears, b"x")
        signal.pause()
    os.close(hears)
    return child, says
children = [start() for n in range(8)]
print(sum(os.read(says, 1) == b"x" for _, says in children), flush=True)
for child, _ in children:
    os.kill(child, signal.SIGKILL)
"""


def test_memory_processes_files_disk_and_time_are_bounded(containers: Containers) -> None:
    """Unbounded, one box takes the memory, the process table or the disk of every other."""
    limits = BoxLimits(
        memory_bytes=256 * MEBIBYTE,
        processes=40,
        file_bytes=2 * MEBIBYTE,
        disk_bytes=16 * MEBIBYTE,
        tmp_bytes=4 * MEBIBYTE,
        cpu_seconds=1,
    )
    box = containers.create(new_spec(limits=limits))
    assert 20 <= int(run_python(containers, box, FORKS).stdout) <= 40
    bomb = run(containers, box, ["/bin/sh", "-c", "b() { b | b & }; b; exec sleep 600"], timeout_seconds=1)
    assert bomb.exit.reason in ("timeout", "exited")
    assert run_python(containers, box, "len(bytearray(400 << 20))").code != 0
    together = run_python(containers, box, SHARED)
    assert together.code == 137 or int(together.stdout) < 8, "the memory limit holds for all together"
    write = "for n in range(64):\n    f = open(f'{sys.argv[1]}/x', 'ab'); f.write(bytes(1 << 20)); f.close()"
    for place in ("/tmp", "/dev/shm", "/box"):
        assert run_python(containers, box, f"import sys\n{write}", place).code == 1
    many = "n = 0\nimport time\nwhile True:\n    open(str(n), 'wb').write(bytes(1 << 20)); n += 1; time.sleep(0.02)"
    assert run_python(containers, box, many).exit.reason == "disk"
    assert run_python(containers, box, "while True: pass").code in (137, 152)
    containers.destroy(box.id)


def test_its_socket_is_there_and_cannot_be_changed(
    containers: Containers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its socket a box cannot reach the record; one it could change would serve somebody else."""
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(tmp_path)  # the path of a unix socket is short
        listener.bind("s.sock")
        listener.listen()
        os.chmod("s.sock", 0o600)
        spec = BoxSpec(id="talks", label="t", sockets={str(tmp_path / "s.sock"): "/run/herdbook.sock"})
        connect = "socket.socket(socket.AF_UNIX).connect('/run/herdbook.sock')"
        changes = ["os.chmod('/run/herdbook.sock', 0o777)", "os.unlink('/run/herdbook.sock')"]
        found = answers(containers, connect, *changes, spec=spec)
    assert found.pop(connect) == "None"
    assert [] == [attempt for attempt, answer in found.items() if not answer.startswith("refused")]
    assert not (tmp_path / "s.sock").exists()
