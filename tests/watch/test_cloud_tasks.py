"""Cloud Tasks: a name is the deduplication, and nobody but a task of ours is executed."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from herdbook.base.clock import TickClock
from herdbook.base.errors import Unauthorized, Unavailable
from herdbook.watch.cloud_tasks import CloudTasksQueue, Execute, Identity, job_of
from herdbook.watch.queue import Job, Put

URL, ACCOUNT, QUEUE = "https://watch.example/execute", "dispatch@acme.iam.example", "projects/p/locations/l/queues/watch"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Tasks:
    """As documented: a name that exists is a 409."""

    def __init__(self) -> None:
        self.tasks: dict[str, Any] = {}
        self.status = 200

    def ask(self, method: str, path: str, body: Any) -> tuple[int, bytes]:
        assert ("POST", f"/v2/{QUEUE}/tasks") == (method, path)
        if body["task"]["name"] in self.tasks:
            return 409, b'{"error": {"status": "ALREADY_EXISTS"}}'
        if self.status == 200:
            self.tasks[body["task"]["name"]] = body["task"]
        return self.status, b"{}"


def queue_of(tasks: Tasks, clock: TickClock) -> CloudTasksQueue:
    return CloudTasksQueue(tasks.ask, queue=QUEUE, execute_url=URL, service_account=ACCOUNT, clock=clock)


def token(key: Any = KEY, **changed: Any) -> str:
    now = int(time.time())
    claims = {
        "iss": "https://accounts.google.com",
        "aud": URL,
        "email": ACCOUNT,
        "email_verified": True,
        "iat": now,
        "exp": now + 3600,  # as long as Google's, and longer than a slow run of all tests
    }
    return jwt.encode({name: value for name, value in {**claims, **changed}.items() if value is not None}, key, algorithm="RS256")


UNSIGNED = jwt.encode({"iss": "https://accounts.google.com", "aud": URL, "email": ACCOUNT}, "", algorithm="none")


def identity() -> Identity:
    return Identity(audience=URL, service_account=ACCOUNT, key_of=lambda token: KEY.public_key())


def test_a_named_task_is_put_once_and_carries_its_job() -> None:
    """One deploy would be two tasks, or the execute role would not know what to do."""
    tasks, job = Tasks(), Job(key="deploy-1", body={"kind": "deploy"})
    queue = queue_of(tasks, TickClock())
    assert [True, False] == [queue.put(job).created, queue.put(job).created]
    [task] = tasks.tasks.values()
    request = task["httpRequest"]
    assert {"serviceAccountEmail": ACCOUNT, "audience": URL} == request["oidcToken"]
    assert job == job_of(base64.b64decode(request["body"]))


def test_an_alert_has_its_half_hour_and_again_does_not_wait() -> None:
    """A second outage would be taken for the first one, for as long as a name is remembered."""
    tasks, clock = Tasks(), TickClock()
    queue, alert = queue_of(tasks, clock), Job(key="diagnosis-api", body={}, window_seconds=1800)
    assert [True, False] == [queue.put(alert).created, queue.put(alert).created]
    assert queue.put(Job(key="diagnosis-api", body={}, window_seconds=1800, again=True)).created
    clock.tick(seconds=1800)
    assert queue.put(alert).created


def test_a_refusal_is_said() -> None:
    """A deploy would be answered as accepted, and never watched."""
    tasks = Tasks()
    tasks.status = 503
    with pytest.raises(Unavailable):
        queue_of(tasks, TickClock()).put(Job(key="deploy-1", body={}))


def test_a_task_of_ours_is_let_in() -> None:
    """Nothing would ever be executed."""
    identity().check(f"Bearer {token()}")


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Bearer",
        "Bearer x.y.z",
        f"Basic {token()}",
        f"Bearer {token(OTHER)}",
        f"Bearer {token(iss='https://evil.example')}",
        f"Bearer {token(aud='https://watch.example/other')}",
        f"Bearer {token(email='somebody@acme.iam.example')}",
        f"Bearer {token(email_verified=False)}",
        f"Bearer {token(email_verified='true')}",
        f"Bearer {token(exp=int(time.time()) - 3600)}",
        f"Bearer {token(exp=None)}",
        f"Bearer {UNSIGNED}",
    ],
)
def test_anybody_else_is_not(given: str) -> None:
    """Whoever finds the address could have boxes made."""
    with pytest.raises(Unauthorized):
        identity().check(given)


class Worked:
    def __init__(self, jobs: list[Job]) -> None:
        self.jobs, self.done = jobs, 0

    def put(self, job: Job) -> Put:
        self.jobs.append(job)
        return Put("job-1", created=True)

    def once(self) -> bool:
        self.done += 1
        return self.done <= len(self.jobs)


@pytest.mark.parametrize("authorization, status", [(f"Bearer {token()}", 200), ("Bearer x", 401)])
def test_execute_works_the_job_off_before_it_answers(authorization: str, status: int) -> None:
    """Cloud Tasks would believe that it was done, or a stranger would start a box."""
    import asyncio

    sent: list[dict[str, Any]] = []
    worked = Worked([])
    body = json.dumps(
        {"key": "deploy-1", "body": {}, "delivery": None, "window_seconds": None, "again": False, "budget_seconds": 900}
    ).encode()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"method": "POST", "path": "/execute", "headers": [(b"authorization", authorization.encode())]}
    asyncio.run(Execute(identity(), worked, worked)(scope, receive, send))
    assert (status, 1 if status == 200 else 0) == (sent[0]["status"], len(worked.jobs))
