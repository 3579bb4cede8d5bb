"""From a webhook to a job: who may call, what is one job, what leads to none, and what a record's answer means."""

from __future__ import annotations

import hmac
import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from herdbook.base.clock import TickClock
from herdbook.client import Client
from herdbook.service.door import Service
from herdbook.watch import hooks as hooks_module
from herdbook.watch.queue import Job, Put, RecordQueue
from tests.watch import hooking
from tests.watch.hooking import SECRET, Hooks, bearer, deploy_of, dispatching, sha_of, signature


@pytest.fixture
def clock() -> TickClock:
    return TickClock()


@pytest.fixture
def service(tmp_path: Path, clock: TickClock) -> Iterator[Service]:
    found = hooking.open_service(tmp_path, clock)
    yield found
    found.close()


@pytest.fixture
def book(service: Service) -> Client:
    return hooking.client_of(service)


@pytest.fixture
def hooks(book: Client, clock: TickClock) -> Iterator[Hooks]:
    with dispatching(book, clock=clock) as found:
        yield found


def jobs(book: Client) -> list[dict[str, Any]]:
    return RecordQueue(book).jobs(limit=1000)


def alertmanager(status: str = "firing", started: str = "2026-01-01T00:00:00Z", **labels: str) -> bytes:
    alert = {
        "status": status,
        "labels": {"alertname": "HighErrors", "service": "api", **labels},
        "annotations": {"summary": "too many errors"},
        "startsAt": started,
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "http://prometheus/graph",
        "fingerprint": "c0ffee",
    }
    return json.dumps({"version": "4", "status": status, "receiver": "herdbook", "groupKey": "{}", "alerts": [alert]}).encode()


OUTAGE = {"component": {"name": "API"}, "component_update": {"id": "u1", "new_status": "major_outage"}}
INCIDENT = {"incident_id": "0.a", "state": "open", "policy_name": "p", "resource": {"labels": {"service_name": "api"}}}
TRIGGERED = {"id": "e1", "event_type": "incident.triggered", "data": {"title": "down", "service": {"summary": "API"}}}
FIRING = {
    "statuspage": json.dumps(OUTAGE).encode(),
    "google": json.dumps({"version": "1.2", "incident": INCIDENT}).encode(),
    "alertmanager": alertmanager(),
    "grafana": alertmanager(),
    "pagerduty": json.dumps({"event": TRIGGERED}).encode(),
    "generic": json.dumps({"component": "api", "title": "down", "id": "g1"}).encode(),
}
NO_DEPLOYS = [
    b"",
    b"[]",
    b"null",
    b"{",
    b"\xff",
    b'{"repositories": {}}',
    b'{"repositories": {"acme/app": {"before": "x"}}}',
    b'{"a": 1, "a": 2}',
    b"[" * 50_000,
]
QUIET = {
    "statuspage": json.dumps(
        {"component": {"name": "API"}, "component_update": {"id": "u2", "new_status": "operational"}}
    ).encode(),
    "google": json.dumps({"version": "1.2", "incident": {"incident_id": "0.a", "state": "closed", "policy_name": "p"}}).encode(),
    "alertmanager": alertmanager("resolved"),
    "grafana": alertmanager(alertname="DatasourceNoData"),
    "pagerduty": json.dumps({"event": {"id": "e2", "event_type": "incident.resolved", "data": {"title": "down"}}}).encode(),
    "generic": json.dumps({"component": "api", "title": "down", "status": "no_data"}).encode(),
}


def headers_of(hook: str, body: bytes, secret: bytes = SECRET) -> dict[str, str]:
    if hook in ("deploy", "statuspage"):
        return signature(body, secret)
    return hooking.pagerduty(body, secret) if hook == "pagerduty" else bearer(secret)


def test_githubs_own_vector_is_right() -> None:
    """We would compute another signature than the one GitHub documents."""
    body, secret = b"Hello, World!", b"It's a Secret to Everybody"
    expected = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    hooks_module.verify("deploy", secret, body, {"x-hub-signature-256": expected})


def test_a_deploy_becomes_one_job_and_is_told_so_again(hooks: Hooks, book: Client) -> None:
    """A release would go unwatched, or be watched twice."""
    status, answer = hooks.deploy(deploy_of(1))
    assert (202, "accepted") == (status, answer["status"])
    [job] = jobs(book)
    assert (answer["job"], f"deploy-{sha_of(1)[:12]}") == (job["job"], job["key"])
    assert {"acme/app", "acme/library"} == set(job["body"]["repositories"])
    status, again = hooks.deploy(deploy_of(1))
    assert (200, "duplicate", answer["job"]) == (status, again["status"], again["job"])
    assert 1 == jobs(book)[0]["repeats"]


@pytest.mark.parametrize("hook", sorted(FIRING))
def test_each_sender_that_fires_makes_a_job(hooks: Hooks, book: Client, hook: str) -> None:
    """An alert of this sender would be dropped."""
    body = FIRING[hook]
    status, _ = hooks.post(f"/hooks/alert/{hook}", body, headers_of(hook, body))
    assert (202, ["diagnosis-api"]) == (status, [job["key"] for job in jobs(book)])


@pytest.mark.parametrize("hook", sorted(QUIET))
def test_all_clear_and_no_data_are_acknowledged_and_lead_to_nothing(hooks: Hooks, book: Client, hook: str) -> None:
    """A box would be made to look at something that is over."""
    status, answer = hooks.post(f"/hooks/alert/{hook}", QUIET[hook], headers_of(hook, QUIET[hook]))
    assert (200, "acknowledged", []) == (status, answer["status"], jobs(book))


@pytest.mark.parametrize("hook", ["deploy", *sorted(FIRING)])
@pytest.mark.parametrize("how", ["missing", "wrong secret", "one byte of the body"])
def test_what_is_not_signed_is_401_and_nothing_is_stored(hooks: Hooks, book: Client, hook: str, how: str) -> None:
    """Anybody could have boxes made, or a job's body could be changed on the way."""
    body = deploy_of(1) if hook == "deploy" else FIRING[hook]
    headers = {} if how == "missing" else headers_of(hook, body, b"another" if how == "wrong secret" else SECRET)
    if how.startswith("one byte"):
        if hook not in ("deploy", "statuspage", "pagerduty"):
            headers = {"Authorization": headers["Authorization"][:-1] + "X"}  # a bearer covers no body: one byte of itself
        body = body.replace(b"a", b"b", 1)
    path = "/hooks/deploy" if hook == "deploy" else f"/hooks/alert/{hook}"
    status, answer = hooks.post(path, body, headers)
    assert (401, "unauthorized", []) == (status, answer["error"]["code"], jobs(book))


@pytest.mark.parametrize("hook", ["deploy", *sorted(FIRING)])
def test_secrets_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch, hook: str) -> None:
    """The time an answer takes would tell the secret, byte by byte."""
    seen = []
    real = hmac.compare_digest

    def spy(a: bytes, b: bytes) -> bool:
        seen.append((a, b))
        return real(a, b)

    monkeypatch.setattr(hmac, "compare_digest", spy)
    body = b"{}"
    lower = {name.lower(): value for name, value in headers_of(hook, body).items()}
    hooks_module.verify(hook, SECRET, body, lower)
    assert [] != seen


def test_a_body_over_the_limit_is_413_before_it_is_read(hooks: Hooks, book: Client) -> None:
    """Whoever can reach the port could fill the memory."""
    with socket.create_connection(hooks.address, timeout=20) as sock:
        sock.sendall(b"POST /hooks/deploy HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n{")
        assert b" 413 " in sock.recv(4096).split(b"\r\n")[0]
    assert [] == jobs(book)


@pytest.mark.parametrize("body", NO_DEPLOYS)
def test_a_signed_body_that_is_no_deploy_is_400(hooks: Hooks, book: Client, body: bytes) -> None:
    """A mistake in somebody's workflow would be a 500, or a job that nobody can do."""
    status, answer = hooks.deploy(body)
    assert (True, []) == (status in (400, 413), jobs(book)), answer


def test_other_addresses_and_methods_are_refused(hooks: Hooks) -> None:
    """Something else than hooks would be answered."""
    assert 404 == hooks.post("/hooks/alert/unknown", b"{}", bearer())[0]
    assert 404 == hooks.post("/v1/job_take", b"{}", bearer())[0]


def test_a_flapping_alert_is_one_job_and_a_counter(hooks: Hooks, book: Client, clock: TickClock) -> None:
    """A dozen boxes would look at one blip, or a real second one would never be looked at."""
    for n in range(12):
        body = alertmanager(started=f"2026-01-01T00:{n:02}:00Z")
        hooks.post("/hooks/alert/alertmanager", body, bearer())
        resolved = alertmanager("resolved", started=f"2026-01-01T00:{n:02}:00Z")
        hooks.post("/hooks/alert/alertmanager", resolved, bearer())
        clock.tick(seconds=60)
    [job] = jobs(book)
    assert 11 == job["repeats"]
    clock.tick(seconds=1800)
    hooks.post("/hooks/alert/alertmanager", alertmanager(started="2026-01-01T01:00:00Z"), bearer())
    assert 2 == len(jobs(book))


def test_the_same_delivery_never_counts_again(hooks: Hooks, book: Client, clock: TickClock) -> None:
    """A recorded request could be played back whenever the window is over."""
    assert 202 == hooks.post("/hooks/alert/alertmanager", alertmanager(), bearer())[0]
    clock.tick(days=1)
    assert 200 == hooks.post("/hooks/alert/alertmanager", alertmanager(), bearer())[0]
    assert [0] == [job["repeats"] for job in jobs(book)]


def test_a_person_may_ask_for_another_look(hooks: Hooks, book: Client) -> None:
    """Whoever wants it looked at again would have to wait for the window."""
    for again in (False, True):
        body = json.dumps({"component": "api", "title": "down", "investigate_again": again}).encode()
        hooks.post("/hooks/alert/generic", body, bearer())
    hooks.deploy(deploy_of(1))
    hooks.deploy(deploy_of(1, investigate_again=True))
    assert 4 == len(jobs(book))


class Answers:
    """A record that answers every question the same way, with a 200."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def call(self, verb: str, fields: dict[str, Any]) -> Any:
        return self.answer


class Kept:
    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def put(self, job: Job) -> Put:
        self.jobs.append(job)
        return Put(f"job-{len(self.jobs)}", created=True)


@pytest.mark.parametrize(
    "answer", [{"status": "not_found"}, {}, {"key": "deploy-other", "version": 1}, {"entries": []}, {"key": None}]
)
def test_a_200_that_says_not_found_still_makes_a_watch(answer: Any) -> None:
    """Every deploy would look as if it were watched already, and none ever would be."""
    queue = Kept()
    with dispatching(Answers(answer), queue=queue) as hooks:  # type: ignore[arg-type]
        assert 202 == hooks.deploy(deploy_of(1))[0]
    assert 1 == len(queue.jobs)


def test_a_deploy_that_is_in_the_record_is_not_watched_again(book: Client) -> None:
    """A redelivery after the queue was cleared would watch an old release."""
    key = f"deploy-{sha_of(1)[:12]}"
    book.write("acme/deploy", key, {"outcome": "quiet"}, why="it was watched")
    queue = Kept()
    with dispatching(book, queue=queue) as hooks:
        status, answer = hooks.deploy(deploy_of(1))
        assert (200, "duplicate") == (status, answer["status"])
        assert 202 == hooks.deploy(deploy_of(2))[0]
    assert 1 == len(queue.jobs)


@pytest.mark.parametrize("deliveries", [100, pytest.param(1_000, marks=pytest.mark.long)])
def test_deliveries_three_times_at_once_are_one_job_each(hooks: Hooks, book: Client, deliveries: int) -> None:
    """Under load deliveries would be lost, or watched twice."""
    bodies = [deploy_of(n) for n in range(1, deliveries + 1)]
    with ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(hooks.deploy, [body for body in bodies for _ in range(3)]))
    assert {200, 202} == {status for status, _ in answers}
    assert (deliveries, deliveries) == (sum(status == 202 for status, _ in answers), len(jobs(book)))
    assert deliveries == len({answer["job"] for _, answer in answers})


def test_jobs_outlive_the_dispatcher_and_the_record(tmp_path: Path) -> None:
    """A restart would lose what was acknowledged."""
    first = hooking.open_service(tmp_path)
    with dispatching(hooking.client_of(first)) as hooks:
        assert 202 == hooks.deploy(deploy_of(7))[0]
    first.close()
    second = hooking.open_service(tmp_path)
    assert [f"deploy-{sha_of(7)[:12]}"] == [job["key"] for job in jobs(hooking.client_of(second))]
    second.close()


def test_a_recorded_call_for_another_look_asks_once(hooks: Hooks, book: Client) -> None:
    """Whoever recorded one signed request could have boxes made for ever: other headers do not make it another delivery."""
    body = deploy_of(1, investigate_again=True)
    for number in range(4):
        hooks.post("/hooks/deploy", body, {**signature(body), "X-GitHub-Delivery": str(number)})
    assert 1 == len(jobs(book))
    hooks.deploy(deploy_of(1, investigate_again=True, id="once more"))
    assert 2 == len(jobs(book))


def test_a_recorded_alert_without_an_id_is_not_played_back(hooks: Hooks, book: Client, clock: TickClock) -> None:
    """A status page's old outage would be looked at whenever somebody sends it again."""
    body = json.dumps({"component": {"name": "API"}, "component_update": {"new_status": "major_outage"}}).encode()
    for _ in range(2):
        hooks.post("/hooks/alert/statuspage", body, signature(body))
        clock.tick(days=1)
    assert 1 == len(jobs(book))


@pytest.mark.parametrize("name", [None, ["api"], {"a": 1}, True, "", " -- "])
def test_what_is_no_name_names_no_component(hooks: Hooks, book: Client, name: Any) -> None:
    """A box would look for the service `none`, or for a table's braces."""
    for hook, payload in (
        ("generic", {"component": name}),
        ("alertmanager", {"alerts": [{"status": "firing", "labels": {"service": name}}]}),
        ("statuspage", {"incident": {"name": "x", "components": [{"name": name}]}}),
        ("google", {"incident": {"state": "open", "policy_name": name}}),
    ):
        body = json.dumps(payload).encode()
        status, answer = hooks.post(f"/hooks/alert/{hook}", body, headers_of(hook, body))
        assert (400, []) == (status, jobs(book)), answer


def test_a_refusal_is_told_whatever_was_sent(hooks: Hooks, book: Client) -> None:
    """A name that is no Unicode would be answered with nothing, and the log would hold a stack trace."""
    status, answer = hooks.deploy(rb'{"repositories": {"acme/app\ud800": {}}}')
    assert (400, "invalid_request", []) == (status, answer["error"]["code"], jobs(book))


def test_a_storm_of_alerts_is_no_storm_of_boxes(hooks: Hooks, book: Client) -> None:
    """One delivery could have thousands of boxes made; and what was left out would be nowhere said."""
    alerts = [{"status": "firing", "labels": {"service": f"s{n}"}} for n in range(150)]
    body = json.dumps({"alerts": alerts}).encode()
    status, answer = hooks.post("/hooks/alert/alertmanager", body, bearer())
    assert (202, 100, 50) == (status, len(jobs(book)), answer["left_out"])


@pytest.mark.parametrize(
    "head, status",
    [
        (b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", 400),
        (b"Content-Length: 5\r\nContent-Length: 6\r\n", 400),
        (b"Content-Length: -1\r\n", 400),
        (b"Content-Length: 2\r\nX-A: b\r\n c\r\n", 400),
        (b"Content-Length: 2\r\nContent-Encoding: gzip, gzip, br\r\n", 415),
        (b"X-PagerDuty-Signature: " + b"v1=00," * 11_500 + b"\r\n", 431),
        (b"X-A: b\r\n" * 9_000, 431),
        (b"Transfer-Encoding: chunked\r\n", 401),
    ],
    ids=["two framings", "two lengths", "negative", "folded", "encodings", "signatures", "headers", "chunked"],
)
def test_odd_framing_stores_nothing(hooks: Hooks, book: Client, head: bytes, status: int) -> None:
    """A proxy and the dispatcher could see two different requests, or one could fill the memory."""
    with socket.create_connection(hooks.address, timeout=20) as sock:
        sock.sendall(b"POST /hooks/deploy HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n2\r\n{}\r\n0\r\n\r\n")
        assert str(status).encode() == sock.makefile("rb").readline().split(b" ")[1]
    assert [] == jobs(book)


def test_chunks_without_a_length_are_bounded_as_they_come(hooks: Hooks, book: Client) -> None:
    """A body that says nothing of its length could fill the memory."""
    with socket.create_connection(hooks.address, timeout=20) as sock:
        sock.sendall(b"POST /hooks/deploy HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        sock.sendall((b"8000\r\n" + b"x" * 0x8000 + b"\r\n") * 9)
        assert b"413" == sock.makefile("rb").readline().split(b" ")[1]
    assert [] == jobs(book)
