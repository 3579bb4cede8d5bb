"""What a watch leans on is away, slow or told twice: nothing is lost, nothing is watched twice, nothing waits for ever."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from herdbook.watch import principal
from herdbook.watch.actor import errand
from herdbook.watch.queue import RecordQueue
from herdbook.watch.sources import web
from herdbook.watch.sources.protocol import Unreadable
from tests import postgres_server
from tests.watch.hooking import SECRET, deploy_of, signature
from tests.watch.staging import LEAST, staging


@contextmanager
def answering(*answers: bytes, drip: bool = False) -> Iterator[tuple[str, list[bytes]]]:
    """A server that gives these answers in turn, the last one for ever; or one byte of it now and then. What it was asked."""
    sock = socket.create_server(("127.0.0.1", 0))
    asked: list[bytes] = []
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            try:
                connection, _ = sock.accept()
            except OSError:
                return
            with connection:
                asked.append(connection.recv(65536))
                told = answers[min(len(asked), len(answers)) - 1]
                try:
                    for each in [bytes([one]) for one in told] if drip else [told]:
                        connection.sendall(each)
                        over.wait(0.05 if drip else 0)
                except OSError:
                    continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{sock.getsockname()[1]}", asked
    over.set()
    sock.shutdown(socket.SHUT_RDWR)
    thread.join(timeout=30)
    sock.close()


def said(status: str, body: bytes = b"", *more: str) -> bytes:
    head = "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *more))
    return head.encode() + b"\r\n" + body


BUSY = said("429 Too Many Requests", b"rate_limited", "Retry-After: 1")


@pytest.mark.parametrize(
    "answers, ok, times",
    [
        ((BUSY, said("200 OK", b"ok")), True, 2),
        ((said("500 Oh", b"server_error"), said("200 OK", b"ok")), True, 2),
        ((BUSY,), False, 3),
        ((said("404 Not Found", b"no_team"),), False, 1),
        ((b"",), False, 3),
        ((b"no HTTP at all\r\n\r\n",), False, 3),
    ],
    ids=["busy once", "broken once", "busy for ever", "refused", "hangs up", "talks nonsense"],
)
def test_a_chat_is_asked_again_where_that_helps(
    monkeypatch: pytest.MonkeyPatch, answers: tuple[bytes, ...], ok: bool, times: int
) -> None:
    """People would not hear of it for one hiccup, or a chat that refuses would be asked for ever."""
    monkeypatch.setattr(errand, "PAUSE_SECONDS_MAX", 0.01)
    with answering(*answers) as (url, asked):
        told = errand.notify(web.Web(url), {"text": "it broke"})
    assert (ok, times) == (told["ok"], len(asked)), told
    assert ok or told["why"]


def test_an_answer_that_drips_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte now and then would keep a watch waiting past its budget: no other timeout ever comes."""
    monkeypatch.setattr(web, "ANSWER_SECONDS_MAX", 0.5)
    with answering(b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 100_000, drip=True) as (url, _):
        began = time.monotonic()
        with pytest.raises(Unreadable, match="no answer"):
            web.Web(url).json("GET", "/")
        assert 60 > time.monotonic() - began


@pytest.mark.isolation
@pytest.mark.slow
def test_without_its_gateway_a_watch_still_ends_and_people_are_told_later(tmp_path: Path) -> None:
    """GitHub, the chat or the gateway being away would fail the watch of a release that went badly."""
    with staging(tmp_path, github="github", slack="slack") as stage:
        stage.logged(LEAST)
        key = stage.deploy(1)
        stage.worker().once()
        jobs = {job["key"].partition("-")[0]: job for job in RecordQueue(stage.book()).jobs()}
        result = jobs["deploy"]["result"]
        assert "unavailable" == stage.entry(key)["value"]["repositories"]["acme/app"]["compare"]
        assert (False, True, "waiting") == (result["told"]["ok"], bool(result["told"]["why"]), jobs["notify"]["state"])
        stage.worker().once()
        [notify] = [job for job in RecordQueue(stage.book()).jobs() if job["body"]["kind"] == "notify"]
        assert ("running", True) == (notify["state"], "people could not be told" in notify["progress"]["failed"])


@pytest.mark.isolation
@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_record_that_is_away_in_the_middle_of_a_watch_costs_an_attempt(tmp_path: Path) -> None:
    """A restart of the database would lose the deploys that were being watched, or leave their boxes."""
    server = postgres_server.Server().make_template()
    try:
        url = server.url(server.database(), login=postgres_server.LOGIN)
        with staging(tmp_path, record=url) as stage:
            stage.logged(LEAST)
            key = stage.deploy(1)
            fallen: list[str] = []

            def fall(step: str) -> None:
                if step == "in box" and not fallen:
                    fallen.append(step)
                    server.stop(3)  # as a crash
                    server.start()

            stage.on_step = fall
            worker = stage.worker(lease_seconds=2)
            until = time.monotonic() + 300
            while True:
                worker.reap()
                worker.once()
                [job] = RecordQueue(stage.book()).jobs(key=key)
                if job["state"] == "done":
                    break
                assert time.monotonic() < until, job
                time.sleep(0.1)
            assert ["product_regression"] == [each["label"] for each in job["result"]["verdicts"]]
            assert ["in box"] == fallen
            assert [] == stage.boxes_left()
    finally:
        server.remove()


@pytest.mark.long
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_two_dispatchers_over_one_record_make_one_job_of_each(tmp_path: Path, engine: str) -> None:
    """Behind a load balancer a redelivery meets the other dispatcher: each deploy would be watched twice."""
    env = {**os.environ, "HERDBOOK_HOME": str(tmp_path), "HERDBOOK_HOOK_DEPLOY": SECRET.decode()}
    if engine == "postgres":
        server = postgres_server.server()
        env["HERDBOOK_RECORD"] = server.url(server.database(), login=postgres_server.LOGIN)
    principal.init(tmp_path / "oncall")
    command = [sys.executable, "-m", "herdbook", "watch"]
    if engine == "sqlite":
        subprocess.run([sys.executable, "-m", "herdbook", "init"], cwd=tmp_path, env=env, check=True, capture_output=True)
    with ExitStack() as stack:
        addresses = []
        for _ in range(2):
            words = [*command, "serve", "--port", "0", "--json"]
            serving = stack.enter_context(subprocess.Popen(words, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True))
            stack.callback(serving.terminate)
            assert serving.stdout is not None
            addresses.append(json.loads(serving.stdout.readline())["url"].removeprefix("http://"))

        def post(asked: tuple[str, bytes]) -> int:
            connection = http.client.HTTPConnection(asked[0], timeout=120)
            try:
                connection.request("POST", "/hooks/deploy", asked[1], signature(asked[1]))
                return connection.getresponse().status
            finally:
                connection.close()

        bodies = [deploy_of(number) for number in range(1, 1001)]
        asked = [(addresses[turn % 2], body) for body in bodies for turn in range(3)]
        with ThreadPoolExecutor(16) as pool:
            statuses = list(pool.map(post, asked))
    assert (1000, 2000) == (statuses.count(202), statuses.count(200))
    listed = subprocess.run(
        [*command, "status", "--json", "--limit", "1000"], cwd=tmp_path, env=env, check=True, capture_output=True
    )
    assert 1000 == len({job["key"] for job in json.loads(listed.stdout)["jobs"]})
