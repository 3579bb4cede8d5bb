"""What a hostile program in a bubblewrap box may try, and that none of it works."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from herdbook.boxes.bubblewrap import Bubblewrap
from herdbook.boxes.provider import Box, BoxLimits, BoxSpec
from herdbook.testing.boxes import new_spec, run, run_python

pytestmark = pytest.mark.slow

MEBIBYTE = 1024 * 1024
# Prints "refused: ..." for an OSError and the result of `attempt` otherwise.
ATTEMPT = """
import os, sys
def attempt():
    {body}
try:
    print("done:", attempt())
except (OSError, MemoryError) as problem:
    print("refused:", type(problem).__name__, problem)
"""
LIBC = "import ctypes; libc = ctypes.CDLL(None, use_errno=True)"


@pytest.fixture
def box(bubblewrap: Bubblewrap) -> Iterator[Box]:
    box = bubblewrap.create(new_spec())
    yield box
    bubblewrap.destroy(box.id)


def attempt(provider: Bubblewrap, box: Box, body: str, *arguments: str) -> str:
    return run_python(provider, box, ATTEMPT.format(body=body.replace("\n", "\n    ")), *arguments).stdout.decode()


def test_other_processes_cannot_be_seen_or_signalled(bubblewrap: Bubblewrap, box: Box) -> None:
    """A box that sees the host's processes could read their arguments, and stop them."""
    seen = run_python(bubblewrap, box, "import os; print(*sorted(int(n) for n in os.listdir('/proc') if n.isdecimal()))")
    assert len(seen.stdout.split()) <= 4
    assert "refused" in attempt(bubblewrap, box, "return os.kill(int(sys.argv[1]), 0)", str(os.getpid()))


SYSTEM_FILES = "/etc/shadow /etc/hosts /etc/ssh /sys /var /opt /mnt /run/systemd /dev/sda /dev/mem /boot"
READ_ONLY = "/x /usr/x /usr/bin/python3 /etc/x /etc/passwd /dev/x /run/x /run/launch.py /bin/sh /proc/x"
SETTINGS = (
    "/proc/sys/kernel/core_pattern /proc/sys/user/max_user_namespaces /run/max_user_namespaces "
    "/proc/sysrq-trigger /proc/self/uid_map /proc/self/oom_score_adj"
)


@pytest.mark.parametrize("path", SYSTEM_FILES.split())
def test_the_hosts_system_files_are_not_there(bubblewrap: Bubblewrap, box: Box, path: str) -> None:
    """Whatever is visible is readable: keys, host names, devices."""
    assert "done: False" in attempt(bubblewrap, box, "return os.path.lexists(sys.argv[1])", path)


def test_the_hosts_own_files_are_not_there(bubblewrap: Bubblewrap, box: Box, tmp_path: Path) -> None:
    """A home, the record or another box's files in sight would be read, and the next run told of them."""
    other = bubblewrap.create(new_spec())
    bubblewrap.put(other, "secret", b"canary")
    (tmp_path / "secret").write_text("canary")
    places = [str(tmp_path), str(Path.home()), os.path.expanduser("~root/.ssh"), os.getcwd(), str(bubblewrap.state_dir)]
    code = "import os, sys; print([p for p in sys.argv[1:] if os.path.lexists(p)])"
    assert run_python(bubblewrap, box, code, *places).stdout == b"[]\n"
    everywhere = """import os
found = []
for folder, folders, files in os.walk('/'):
    folders[:] = [name for name in folders if os.path.join(folder, name) not in ('/usr', '/proc', os.path.dirname(os.__file__))]
    found += [folder] * ('secret' in files)
print(found)"""
    assert run_python(bubblewrap, box, everywhere).stdout == b"[]\n"
    through_proc = "import glob; print([p for p in glob.glob('/proc/[0-9]*/root/*') if p.endswith(('/home', '/var', '/opt'))])"
    assert run_python(bubblewrap, box, through_proc).stdout == b"[]\n"


def test_the_hosts_environment_and_paths_are_not_in_the_first_process(
    bubblewrap: Bubblewrap, box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sandbox's own process would tell what its program must not know."""
    monkeypatch.setenv("HOST_SECRET", "canary")
    body = "return [open('/proc/1/' + name, 'rb').read() for name in ('cmdline', 'environ')]"
    said = attempt(bubblewrap, box, body)
    assert "canary" not in said
    assert str(bubblewrap.state_dir) not in said
    assert str(bubblewrap.state_dir) not in attempt(bubblewrap, box, "return open('/proc/1/cmdline').read()")


def test_there_is_no_network(bubblewrap: Bubblewrap, box: Box) -> None:
    """One open port is a way out: what was read in the box would leave with it."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as hidden:
        hidden.bind(f"\0herdbook-canary-{os.getpid()}")
        hidden.listen()
        body = "import socket\nsocket.create_connection(('{}', {}), timeout=5)"
        for host, port in (("127.0.0.1", listener.getsockname()[1]), ("192.0.2.1", 80), ("169.254.169.254", 80)):
            assert "refused" in attempt(bubblewrap, box, body.format(host, port))
        abstract = "import socket\ns = socket.socket(socket.AF_UNIX)\nreturn s.connect('\\0herdbook-canary-' + sys.argv[1])"
        assert "refused" in attempt(bubblewrap, box, abstract, str(os.getpid()))
    interfaces = "import socket; print([name for _, name in socket.if_nameindex()])"
    assert run_python(bubblewrap, box, interfaces).stdout == b"['lo']\n"
    assert "refused" in attempt(bubblewrap, box, "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_RAW, 1)")


def test_its_socket_is_there_and_cannot_be_changed(
    bubblewrap: Bubblewrap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its socket a box cannot reach the record; one it could change would serve somebody else."""
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(tmp_path)  # the path of a unix socket is short
        listener.bind("s.sock")
        listener.listen()
        os.chmod("s.sock", 0o600)
        box = bubblewrap.create(BoxSpec(id="talks", label="t", sockets={str(tmp_path / "s.sock"): "/run/herdbook.sock"}))
        assert box.sockets == {"/run/herdbook.sock": "/run/herdbook.sock"}
        body = "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('/run/herdbook.sock')\nreturn s.send(b'hello')"
        assert "done: 5" in attempt(bubblewrap, box, body)
        with listener.accept()[0] as accepted:
            assert accepted.recv(5) == b"hello"
        for change in ("os.chmod('/run/herdbook.sock', 0o777)", "os.unlink('/run/herdbook.sock')"):
            assert "refused" in attempt(bubblewrap, box, f"return {change}")
    bubblewrap.destroy("talks")
    assert not (tmp_path / "s.sock").exists()


@pytest.mark.parametrize("path", READ_ONLY.split())
def test_only_its_own_places_are_writable(bubblewrap: Bubblewrap, box: Box, path: str) -> None:
    """A box that writes to the system's files would change what every program on the host runs."""
    assert "refused" in attempt(bubblewrap, box, "return open(sys.argv[1], 'ab')", path)


@pytest.mark.parametrize("setting", SETTINGS.split())
def test_kernel_settings_cannot_be_changed(bubblewrap: Bubblewrap, box: Box, setting: str) -> None:
    """A core pattern set from a box runs a program on the host, as root."""
    assert "refused" in attempt(bubblewrap, box, "return os.write(os.open(sys.argv[1], os.O_WRONLY), b'-9')", setting)


def test_there_are_no_privileges_to_use_or_to_gain(bubblewrap: Bubblewrap, box: Box) -> None:
    """Any capability is a way to undo the walls from inside."""
    status = run_python(bubblewrap, box, "print(open('/proc/self/status').read())").stdout.decode()
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    assert {int(fields[name], 16) for name in ("CapEff", "CapPrm", "CapAmb")} == {0}
    assert fields["NoNewPrivs"].strip() == "1"
    assert fields["Uid"].split() == ["1000"] * 4
    for call in ("os.setuid(0)", "os.setgid(0)", "os.setgroups([0])", "os.chroot('/tmp')", "os.chown('/box', 0, 0)"):
        assert "refused" in attempt(bubblewrap, box, f"return {call}")
    assert b"uid=0" not in run(bubblewrap, box, ["/usr/bin/su", "-c", "id"]).stdout


def test_nothing_can_be_mounted_and_no_namespace_made(bubblewrap: Bubblewrap, box: Box) -> None:
    """A namespace inside the box gives its maker every capability in it, and the kernel's whole surface to try them on."""
    for flags in (0x10000000, 0x00020000, 0x40000000, 0x10000000 | 0x00020000):  # user, mount, network, user and mount
        assert "done: -1" in attempt(bubblewrap, box, f"{LIBC}\nreturn libc.unshare({flags})")
    assert "done: -1" in attempt(bubblewrap, box, f"{LIBC}\nreturn libc.mount(b'none', b'/tmp', b'tmpfs', 0, 0)")
    assert "done: -1" in attempt(bubblewrap, box, f"{LIBC}\nreturn libc.umount2(b'/run', 2)")


def test_no_device_can_be_made_or_found(bubblewrap: Bubblewrap, box: Box) -> None:
    """A device node is the disk itself, past every permission of its files."""
    for place in ("/box/disk", "/tmp/disk", "/dev/shm/disk"):
        assert "refused" in attempt(bubblewrap, box, f"import stat\nos.mknod('{place}', 0o600 | stat.S_IFBLK, os.makedev(8, 0))")
    devices = "import os; print(*(n for n in os.listdir('/dev') if not os.path.islink('/dev/' + n)))"
    found = set(run_python(bubblewrap, box, devices).stdout.decode().split())
    assert found == {
        "full",
        "null",
        "pts",
        "random",
        "shm",
        "tty",
        "urandom",
        "zero",
    }
    assert "refused" in attempt(bubblewrap, box, "return open('/dev/tty')")


def test_no_file_of_the_host_is_left_open(bubblewrap: Bubblewrap, box: Box) -> None:
    """An open descriptor reaches past every wall: whatever its file is, the box holds it."""
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(70)]  # so that descriptors handed on have high numbers
    os.set_inheritable(held[0], True)
    seen = run_python(bubblewrap, box, "import os; print([n for n in map(int, os.listdir('/proc/self/fd')) if n > 3])")
    assert seen.stdout == b"[]\n"
    for fd in held:
        os.close(fd)


def limited(provider: Bubblewrap, **limits: int) -> Box:
    return provider.create(new_spec(limits=BoxLimits(**limits)))


FORKS = """import time
for n in range({count}):
    try:
        if os.fork() == 0: time.sleep(600)
    except BlockingIOError: return n
return {count}"""
THREADS = """import os, threading
n = 0
try:
    while n < 400:
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        n += 1
except RuntimeError:
    pass
print(n, flush=True)
os._exit(0)"""
HOLD_PROCESSES = """import os, time
for n in range(20):
    if os.fork() == 0: time.sleep(600)
print('up', flush=True)
time.sleep(600)"""


def test_a_fork_bomb_is_bounded(bubblewrap: Bubblewrap) -> None:
    """Unbounded, one box takes the process table, and every other program's next fork fails."""
    box = limited(bubblewrap, processes=40)
    assert 20 <= int(attempt(bubblewrap, box, FORKS.format(count=400)).split(":")[1]) <= 40
    assert 20 <= int(run_python(bubblewrap, box, THREADS).stdout) <= 40
    bomb = run(bubblewrap, box, ["/bin/sh", "-c", "b() { b | b & }; b; exec sleep 600"], timeout_seconds=1)
    assert bomb.exit.reason in ("timeout", "exited")
    bubblewrap.destroy(box.id)


def test_the_process_limit_is_the_boxs_own(bubblewrap: Bubblewrap) -> None:
    """Counted for the whole user, the limit would stop a box because its user has a browser open."""
    first, second = limited(bubblewrap, processes=30), limited(bubblewrap, processes=30)
    execution = bubblewrap.exec(first, [first.python, "-I", "-c", HOLD_PROCESSES])
    for _ in execution:
        assert "done: 20" in attempt(bubblewrap, second, FORKS.format(count=20))
        execution.kill()
    bubblewrap.destroy(first.id)
    bubblewrap.destroy(second.id)


def test_memory_is_bounded(bubblewrap: Bubblewrap) -> None:
    """Unbounded, one box takes the host's memory, and the kernel chooses whom to kill for it."""
    box = limited(bubblewrap, memory_bytes=300 * MEBIBYTE)
    assert "refused: MemoryError" in attempt(bubblewrap, box, "return len(bytearray(600 << 20))")
    assert "done: 1048576" in attempt(bubblewrap, box, "return len(bytearray(1 << 20))")
    bubblewrap.destroy(box.id)


@pytest.mark.parametrize("place", ["/tmp", "/dev/shm", "/run"])
def test_memory_backed_places_are_bounded(bubblewrap: Bubblewrap, place: str) -> None:
    """What is written there is memory: unbounded, it is the host's."""
    box = limited(bubblewrap, tmp_bytes=4 * MEBIBYTE)
    body = f"f = open('{place}/x', 'wb')\nfor n in range(64): f.write(bytes(1 << 20)); f.flush()"
    assert "refused" in attempt(bubblewrap, box, body)
    bubblewrap.destroy(box.id)


def test_files_and_the_whole_box_are_bounded(bubblewrap: Bubblewrap) -> None:
    """Unbounded, one box fills the disk that the record is on."""
    box = limited(bubblewrap, file_bytes=2 * MEBIBYTE, disk_bytes=16 * MEBIBYTE)
    assert "File too large" in attempt(
        bubblewrap, box, "f = open('big', 'wb')\nfor n in range(8): f.write(bytes(1 << 20)); f.flush()"
    )
    many = "n = 0\nimport time\nwhile True:\n    open(str(n), 'wb').write(bytes(1 << 20)); n += 1; time.sleep(0.02)"
    assert run_python(bubblewrap, box, many).exit.reason == "disk"
    bubblewrap.destroy(box.id)


def test_cpu_time_is_bounded(bubblewrap: Bubblewrap) -> None:
    """A loop that nobody waits for would hold a core until its deadline."""
    box = limited(bubblewrap, cpu_seconds=1)
    assert run_python(bubblewrap, box, "while True: pass").code == 137
    bubblewrap.destroy(box.id)
