"""The workflow's step: it tells, it skips, and it never fails a deploy."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from herdbook.watch.queue import RecordQueue
from tests.tidy import tree
from tests.watch import hooking
from tests.watch.hooking import SECRET, dispatching, sha_of

SCRIPT = tree.ROOT / "examples" / "github-action" / "tell.py"


def told(**environ: str) -> tuple[int, str]:
    clean = {
        "PATH": os.environ["PATH"],
        "WATCH_REPOSITORIES": f"acme/app {sha_of(0)} {sha_of(1)}",
        "WATCH_SERVICES": "api",
        **environ,
    }
    done = subprocess.run([sys.executable, str(SCRIPT)], env=clean, capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout


@pytest.fixture
def broken() -> Iterator[str]:
    """A server that answers every request with 500, and closes."""
    sock = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        while True:
            try:
                connection, _ = sock.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n")

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    sock.shutdown(socket.SHUT_RDWR)  # or it would wait on, and take what comes to the next server that gets its number
    thread.join(timeout=30)
    sock.close()


def test_a_deploy_is_told_and_becomes_a_job(tmp_path: Path) -> None:
    """The step and the dispatcher would not understand one another."""
    service = hooking.open_service(tmp_path)
    book = hooking.client_of(service)
    with dispatching(book) as hooks:
        url = f"http://127.0.0.1:{hooks.address[1]}/"
        shas = f"acme/app {sha_of(0)} {sha_of(1)}\nacme/library {sha_of(0)} {sha_of(1)}\n"
        code, said = told(WATCH_URL=url, WATCH_SECRET=SECRET.decode(), WATCH_REPOSITORIES=shas)
    assert (0, True) == (code, "told: 202" in said), said
    assert [f"deploy-{sha_of(1)[:12]}"] == [job["key"] for job in RecordQueue(book).jobs()]
    service.close()


@pytest.mark.parametrize("before", ["", "0" * 40])
def test_a_deploy_without_a_commit_before_it_is_told_too(tmp_path: Path, before: str) -> None:
    """A deploy that a person starts by hand, for which GitHub names no commit before, would never be watched."""
    service = hooking.open_service(tmp_path)
    book = hooking.client_of(service)
    with dispatching(book) as hooks:
        url = f"http://127.0.0.1:{hooks.address[1]}/"
        code, said = told(WATCH_URL=url, WATCH_SECRET=SECRET.decode(), WATCH_REPOSITORIES=f"acme/app {before} {sha_of(1)}")
    assert (0, True) == (code, "told: 202" in said), said
    [job] = RecordQueue(book).jobs()
    assert {"before": "0" * 40, "after": sha_of(1)} == job["body"]["repositories"]["acme/app"]
    service.close()


def test_a_refusal_is_told_with_its_reason(tmp_path: Path) -> None:
    """Who set the secret wrong would see a number, and no way on."""
    service = hooking.open_service(tmp_path)
    with dispatching(hooking.client_of(service)) as hooks:
        code, said = told(WATCH_URL=f"http://127.0.0.1:{hooks.address[1]}", WATCH_SECRET="another")
    assert (0, True) == (code, "401" in said and "signature or token is missing or wrong" in said), said
    service.close()


@pytest.mark.parametrize("missing", ["WATCH_URL", "WATCH_SECRET"])
def test_without_an_address_or_a_secret_it_skips(missing: str) -> None:
    """A fork without secrets could not deploy."""
    environ = {"WATCH_URL": "http://127.0.0.1:9", "WATCH_SECRET": "s", missing: ""}
    code, said = told(**environ)
    assert (0, True) == (code, "skipped" in said)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "nonsense", "http://[", "file:///etc/passwd"])
def test_a_dispatcher_that_is_away_fails_nothing(url: str) -> None:
    """A deploy would fail because nobody watches it."""
    assert 0 == told(WATCH_URL=url, WATCH_SECRET="s")[0]


def test_a_dispatcher_that_fails_and_a_mistake_in_the_step_fail_nothing(broken: str) -> None:
    """A 5xx, or a line too many, would fail a release."""
    assert 0 == told(WATCH_URL=broken, WATCH_SECRET="s")[0]
    assert 0 == told(WATCH_URL=broken, WATCH_SECRET="s", WATCH_REPOSITORIES="only-a-name")[0]
