"""A real container engine for the tests: started from Debian's packages, on sockets and directories of its own, without systemd.

Needs root. An engine that is installed is used as it is installed, else the packages are fetched with apt and only unpacked. No
registry is asked: the one image is this machine's Python, its libraries and a shell.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from herdbook.base.errors import Unavailable
from herdbook.boxes.engine import Connection, Engine, Refused, parsed, target
from herdbook.testing.boxes import eventually

IMAGE = "herdbook-test:latest"  # the one tag that Podman gives, whatever it is asked for
CACHE = Path(tempfile.gettempdir()) / f"herdbook-test-engines-{os.getuid()}"
TOOLS = ("sh", "true", "sleep", "su")
LEFT_OUT = re.compile(
    r"/(site-packages|dist-packages|test|tests|idlelib|tkinter|ensurepip|__pycache__|config-[^/]*|lib2to3)(/|$)"
)
DOCKER = ("docker.io", "containerd", "runc")
PODMAN = ("podman", "conmon", "runc", "golang-github-containers-common", "libgpgme11", "libsubid4", "libassuan0", "libyajl2")
NEEDED = {DOCKER: ("dockerd", "containerd", "runc"), PODMAN: ("podman", "conmon", "runc")}


def missing() -> str:
    """Why no engine can run here; empty if one can."""
    if not sys.platform.startswith("linux"):
        return "container engines need Linux"
    if os.geteuid() != 0:
        return "starting a container engine needs root"
    if shutil.which("apt-get") is None and shutil.which("dockerd") is None:
        return "no dockerd: install docker.io"
    return ""


def environment(packages: tuple[str, ...]) -> dict[str, str]:
    """What finds an engine's programs: installed ones, else the packages, unpacked beside the system."""
    root = CACHE / packages[0]
    path = os.pathsep.join([f"{root}/usr/sbin", f"{root}/usr/bin"])
    if all(map(shutil.which, NEEDED[packages])):
        return dict(os.environ)
    if not root.is_dir():
        fetch(packages, root)
    libraries = str(next(root.glob("usr/lib/*-linux-gnu"), root))
    return {**os.environ, "PATH": f"{path}:{os.environ['PATH']}", "LD_LIBRARY_PATH": libraries}


def fetch(packages: tuple[str, ...], root: Path) -> None:
    CACHE.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as fresh:
        asked = subprocess.run(
            ["apt-get", "download", "-q", *packages], cwd=fresh, capture_output=True, text=True, timeout=100, check=False
        )
        assert asked.returncode == 0, f"install {' '.join(packages)}, or make apt find them: {asked.stderr[-500:]}"
        for package in Path(fresh).glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", str(package), f"{fresh}/root"], check=True, timeout=60)
        with suppress(OSError):  # because another run was faster
            os.rename(f"{fresh}/root", root)


@contextmanager
def docker() -> Iterator[Engine]:
    """A dockerd of our own, with the test image in it, until the block ends."""
    with place_of_its_own() as place:
        command = ["dockerd", "--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-masq=false"]
        command += [
            f"--host=unix://{place}/sock",
            f"--data-root={place}/data",
            f"--exec-root={place}/exec",
            f"--pidfile={place}/pid",
        ]
        with served(command, place, environment(DOCKER)) as engine:
            yield engine


@contextmanager
def podman() -> Iterator[Engine]:
    """Podman's service with a home of its own, which is also where it finds what to trust."""
    with place_of_its_own() as place:
        env = {**environment(PODMAN), "HOME": str(place), "CONTAINERS_CONF": str(place / "containers.conf")}
        policy = place / ".config" / "containers" / "policy.json"
        policy.parent.mkdir(parents=True)
        policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        told = [f"{name}={env[name]}" for name in ("PATH", "LD_LIBRARY_PATH", "HOME", "CONTAINERS_CONF") if name in env]
        settings: dict[str, dict[str, Any]] = {
            "engine": {
                "cgroup_manager": "cgroupfs",
                "events_logger": "file",
                "runtime": "runc",
                "conmon_path": [shutil.which("conmon", path=env["PATH"])],
                "conmon_env_vars": told,
            },
            "engine.runtimes": {"runc": [shutil.which("runc", path=env["PATH"])]},
            "containers": {"default_ulimits": ["nofile=1024:1024", "nproc=1024:1024"]},  # its own need CAP_SYS_RESOURCE
            "network": {"network_backend": "cni"},
        }
        (place / "containers.conf").write_text("\n".join(toml(settings)))
        command = ["podman", f"--root={place}/data", f"--runroot={place}/run", "--storage-driver=overlay"]
        with served([*command, "system", "service", "--time=0", f"unix://{place}/sock"], place, env) as engine:
            yield engine


def toml(settings: dict[str, dict[str, Any]]) -> Iterator[str]:
    for table, values in settings.items():
        yield f"[{table}]"
        yield from (f"{name} = {json.dumps(value)}" for name, value in values.items())


@contextmanager
def place_of_its_own() -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="hb-engine-"))
    try:
        yield place
    finally:
        unmount_below(place)
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def served(command: list[str], place: Path, env: dict[str, str]) -> Iterator[Engine]:
    engine = Engine(str(place / "sock"))
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=place, env=env, stdout=log, stderr=log, start_new_session=True)
    try:
        eventually(lambda: answers(engine) or process.poll() is not None, what="the engine answers")
        assert process.poll() is None, (place / "log").read_text()[-2000:]
        load_image(engine)
        yield engine
    finally:
        stop(process)


def answers(engine: Engine) -> bool:
    try:
        engine.get("/_ping")
    except (Unavailable, Refused):
        return False
    return True


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def unmount_below(place: Path) -> None:
    mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for path in sorted((each for each in mounted if each.startswith(f"{place}/")), reverse=True):
        subprocess.run(["umount", "--lazy", path], check=False)


def load_image(engine: Engine, image: str = IMAGE, files: bytes | None = None) -> None:
    """As `docker import` does it."""
    name, _, tag = image.partition(":")
    bin_directory = os.path.dirname(os.path.realpath(sys._base_executable))  # type: ignore[attr-defined]
    query: dict[str, Any] = {
        "fromSrc": "-",
        "repo": name,
        "tag": tag,
        "changes": f"ENV PATH={bin_directory}:/usr/sbin:/usr/bin:/sbin:/bin",
    }
    connection = Connection(engine.socket)
    connection.request("POST", target("/images/create", query), files or rootfs(), {"Content-Type": "application/x-tar"})
    answer = connection.getresponse()
    parsed(answer.status, answer.read())
    connection.close()


def rootfs(
    *more_tools: str,
    left_out: re.Pattern[str] = LEFT_OUT,
    more: Mapping[str, Path] = MappingProxyType({}),
    needing: Sequence[str] = (),
) -> bytes:
    """This interpreter, a shell and what both need, at the places where they lie here; and more files at places of their own."""
    python = os.path.realpath(sys._base_executable)  # type: ignore[attr-defined]
    tools = [path for path in map(shutil.which, (*TOOLS, *more_tools)) if path]
    stdlib = sysconfig.get_paths()["stdlib"]
    modules = [str(path) for path in Path(stdlib).rglob("*.so") if not LEFT_OUT.search(str(path))]
    files = {python, f"{os.path.dirname(python)}/python3", *tools, *libraries([python, *tools, *modules, *needing])}
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name in ("tmp", "box", "run", "proc", "sys", "dev", "etc"):
            add_directory(archive, name)
        for name in ("bin", "sbin", "lib", "lib64"):
            if os.path.islink(f"/{name}"):
                archive.add(f"/{name}")
        for path in sorted(files):  # a directory's links are in the image as they are here
            archive.add(os.path.realpath(path), arcname=f"{os.path.realpath(os.path.dirname(path))}/{os.path.basename(path)}")
        archive.add(stdlib, filter=lambda one: None if left_out.search(f"/{one.name}") else one)
        for place, path in more.items():
            archive.add(path, arcname=place)
    return data.getvalue()


def add_directory(archive: tarfile.TarFile, name: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
    archive.addfile(entry)


def libraries(programs: list[str]) -> set[str]:
    """Every library that ldd names."""
    told = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    return set(re.findall(r"(/\S+)\s+\(0x", told))
