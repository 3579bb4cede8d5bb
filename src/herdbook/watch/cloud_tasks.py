"""Google Cloud Tasks as the queue: a named task is the deduplication, and only a task with Google's word for it is executed.

The dispatcher puts; the execute role, which may make boxes, checks the token, takes the job into the record's own queue, where
leases and fencing are, and works it off before it answers: what is not answered with a 2xx, Cloud Tasks sends again.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import http.client
import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final, Protocol

from herdbook.base.clock import Clock
from herdbook.base.errors import HerdbookError, InvalidRequest, NotFound, Unauthorized, Unavailable
from herdbook.client import HerdbookError as Refused
from herdbook.watch.dispatch import Receive, Scope, Send, as_dict, reply, whole
from herdbook.watch.queue import Job, Put, Queue

LOG = logging.getLogger("herdbook.watch")
ISSUERS: Final = ("https://accounts.google.com", "accounts.google.com")
KEYS_URL: Final = "https://www.googleapis.com/oauth2/v3/certs"
LEEWAY_SECONDS: Final = 10
DISPATCH_DEADLINE: Final = "1800s"
CLOUD_TASKS: Final = "cloudtasks.googleapis.com"
METADATA: Final = "metadata.google.internal"
TOKEN_PATH: Final = "/computeMetadata/v1/instance/service-accounts/default/token"

Ask = Callable[[str, str, Any], tuple[int, bytes]]  # method, path and JSON body, to cloudtasks.googleapis.com with its credential


class Workers(Protocol):
    """Works one job off; whether there was one."""

    def once(self) -> bool: ...


class CloudTasksQueue:
    """Puts jobs as HTTP tasks. A name cannot be used again for a day or more, so an alert's name has its half hour in it."""

    def __init__(self, ask: Ask, *, queue: str, execute_url: str, service_account: str, clock: Clock) -> None:
        self.ask, self.queue, self.execute_url, self.account, self.clock = ask, queue, execute_url, service_account, clock

    def put(self, job: Job) -> Put:
        name = f"{self.queue}/tasks/{self.name_of(job)}"
        request = {
            "url": self.execute_url,
            "httpMethod": "POST",
            "headers": {"Content-Type": "application/json"},
            "body": base64.b64encode(json.dumps(asdict(job)).encode()).decode(),
            "oidcToken": {"serviceAccountEmail": self.account, "audience": self.execute_url},
        }
        task = {"name": name, "httpRequest": request, "dispatchDeadline": DISPATCH_DEADLINE}
        status, data = self.ask("POST", f"/v2/{self.queue}/tasks", {"task": task})
        if status == 409:
            return Put(name, created=False)
        if not 200 <= status < 300:
            raise Unavailable(f"Cloud Tasks answered {status}: {data[:200].decode(errors='replace')}; the sender may try again")
        return Put(name, created=True)

    def name_of(self, job: Job) -> str:
        """A digest: names that follow one another would slow Cloud Tasks down."""
        now = self.clock.now() // 1_000_000
        window = "" if job.window_seconds is None else str(now // job.window_seconds)
        again = str(now) if job.again else ""
        return hashlib.sha256(json.dumps([job.key, window, again]).encode()).hexdigest()


class Identity:
    """Checks that a request is a Cloud Task of ours: Google's signature, our URL as audience, our account, not yet expired."""

    def __init__(self, *, audience: str, service_account: str, key_of: Callable[[str], Any] | None = None) -> None:
        self.audience, self.account = audience, service_account
        self.key_of = key_of or google_key()

    def check(self, authorization: str) -> None:
        """Raises Unauthorized, whatever was wrong."""
        import jwt  # an extra

        scheme, _, token = authorization.partition(" ")
        try:
            claims = jwt.decode(
                token,
                self.key_of(token),
                algorithms=["RS256"],
                audience=self.audience,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iat", "aud", "iss", "email"]},
            )
        except (jwt.PyJWTError, ValueError) as problem:
            LOG.info("a task's token was refused: %s", type(problem).__name__)
            raise Unauthorized("this is no task of ours: nothing was executed") from problem
        ours = claims["iss"] in ISSUERS and claims["email"] == self.account and claims.get("email_verified") is True
        if scheme.lower() != "bearer" or not ours:
            raise Unauthorized("this is no task of ours: nothing was executed")


def google_key() -> Callable[[str], Any]:
    """Google's public key for a token, fetched and kept by the library."""
    try:
        from jwt import PyJWKClient
    except ImportError as problem:
        raise InvalidRequest("Cloud Tasks need an extra: pip install 'herdbook[cloud-tasks]'") from problem
    keys = PyJWKClient(KEYS_URL, cache_keys=True)
    return lambda token: keys.get_signing_key_from_jwt(token).key


class Execute:
    """`POST /execute`: one task, worked off before it is answered."""

    def __init__(self, identity: Identity, queue: Queue, workers: Workers) -> None:
        self.identity, self.queue, self.workers = identity, queue, workers
        self.turn = threading.Lock()  # a worker does one job at a time

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if (scope["method"], scope["path"]) != ("POST", "/execute"):
                raise NotFound("only POST /execute is answered here")
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            self.identity.check(headers.get("authorization", ""))
            job = job_of(await whole(receive))
            await asyncio.to_thread(self.execute, job)
            await reply(send, 200, {"status": "done", "key": job.key})
        except (HerdbookError, Refused) as problem:
            await reply(send, problem.status, as_dict(problem))

    def execute(self, job: Job) -> None:
        """Into the record's queue, where a second delivery finds the first, and then whatever waits there."""
        with self.turn:
            self.queue.put(job)
            while self.workers.once():
                pass


def job_of(body: bytes) -> Job:
    try:
        return Job(**json.loads(body))
    except (ValueError, TypeError) as problem:
        raise InvalidRequest("this is not a job that was put here") from problem


def google_ask() -> Ask:
    """Calls Cloud Tasks as the service account that this runs as: the token is the platform's, and no key lies on a disk."""
    kept: dict[str, Any] = {"token": "", "until": 0.0}

    def token() -> str:
        if time.monotonic() >= kept["until"]:
            status, data = asked(METADATA, "GET", TOKEN_PATH, None, {"Metadata-Flavor": "Google"})
            if status != 200:
                raise Unavailable(f"the metadata server answered {status}: run this as a service account that may put tasks")
            found = json.loads(data)
            kept.update(token=found["access_token"], until=time.monotonic() + max(0, int(found["expires_in"]) - 60))
        return str(kept["token"])

    def ask(method: str, path: str, body: Any) -> tuple[int, bytes]:
        return asked(CLOUD_TASKS, method, path, body, {"Authorization": f"Bearer {token()}"})

    return ask


def asked(host: str, method: str, path: str, body: Any, headers: dict[str, str]) -> tuple[int, bytes]:
    kind = http.client.HTTPConnection if host == METADATA else http.client.HTTPSConnection
    connection = kind(host, timeout=10)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        return answer.status, answer.read(1024 * 1024)
    except (OSError, http.client.HTTPException) as problem:
        raise Unavailable(f"no answer from {host}: {problem}") from problem
    finally:
        connection.close()
