"""`herdbook watch serve`: checks who calls, decides whether it is looked at already, puts a job, and answers. Nothing else.

It holds the hooks' secrets and a key that may read and put jobs: it can neither take one nor make a box. Whether a deploy is
known is decided by what the record answers, never by a status code: a record may say `not_found` with a 200.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from herdbook.base import strict_json
from herdbook.base.clock import Clock
from herdbook.base.errors import HerdbookError, InvalidRequest, NotFound
from herdbook.base.http_edge import Internal, MethodNotAllowed
from herdbook.client import Client
from herdbook.client import HerdbookError as Refused
from herdbook.watch import alerts, hooks
from herdbook.watch.config import Config
from herdbook.watch.queue import ALERT_WINDOW_SECONDS, Job, Put, Queue

LOG = logging.getLogger("herdbook.watch")
BODY_BYTES_MAX: Final = 256 * 1024
THREADS: Final = 16
COMPONENTS_MAX: Final = 100  # of one delivery: a storm of alerts must not be a storm of boxes

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Dispatch:
    """The application behind the HTTP edge, which has bounded headers and bodies before it is asked."""

    def __init__(self, config: Config, book: Client, queue: Queue, *, secrets: Mapping[str, bytes], clock: Clock) -> None:
        self.config, self.book, self.queue = config, book, queue
        self.secrets, self.clock = secrets, clock
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="herdbook-dispatch")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            status, answer = await self.answer(scope, receive)
        except (HerdbookError, Refused) as problem:
            status, answer = problem.status, as_dict(problem)
        except Exception:  # because a sender is owed an answer, and the log the traceback
            LOG.exception("a hook failed")
            status, answer = 500, Internal().as_dict()
        await reply(send, status, answer)

    async def answer(self, scope: Scope, receive: Receive) -> tuple[int, dict[str, Any]]:
        hook = hook_of(scope["path"])
        if hook == "health":
            return 200, {"status": "ok"}
        if scope["method"] != "POST":
            raise MethodNotAllowed("hooks are sent with POST")
        secret = self.secrets.get(hook)
        if secret is None:
            raise NotFound(f"the hook {hook!r} is not set up here: name its secret in watch.toml and set that variable")
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        body = await whole(receive)
        hooks.verify(hook, secret, body, headers)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.threads, self.dispatched, hook, body)

    def dispatched(self, hook: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """From verified bytes to jobs: each new one is a 202, what is looked at already a 200."""
        payload = strict_json.loads(body)
        jobs = [self.deploy_job(payload, body)] if hook == "deploy" else self.alert_jobs(hook, payload, body)
        if not jobs:
            return 200, {"status": "acknowledged", "jobs": []}
        told = [self.put(job) for job in jobs[:COMPONENTS_MAX]]
        created = any(each["created"] for each in told)
        answer = {"status": "accepted" if created else "duplicate", "job": told[0]["job"], "jobs": told}
        if len(jobs) > COMPONENTS_MAX:
            LOG.warning("a delivery of %s named %d components: the first %d are looked at", hook, len(jobs), COMPONENTS_MAX)
            answer["left_out"] = len(jobs) - COMPONENTS_MAX
        return (202 if created else 200), answer

    def deploy_job(self, payload: Any, signed: bytes) -> Job:
        hook = alerts.deploy(payload)
        named_by = hook.repositories.get(self.config.naming_repository)
        if named_by is None:
            raise InvalidRequest(f"this deploy does not name {self.config.naming_repository}, whose commit is a deploy's name")
        return Job(
            key=f"deploy-{named_by['after'][: alerts.SHA_CHARS]}",
            body=hook.body(),
            delivery=alerts.digest("deploy", signed.decode()) if hook.again else None,  # played back it asks for no other look
            again=hook.again,
            budget_seconds=self.config.deploy.budget_seconds,
        )

    def alert_jobs(self, hook: str, payload: Any, signed: bytes) -> list[Job]:
        """One for each component, however many of its alerts came at once. What was signed and has no id is its own id."""
        by_component = {each.component: each for each in reversed(alerts.PARSERS[hook](payload))}
        own = signed.decode() if hook in hooks.SIGNED else ""
        return [
            Job(
                key=f"diagnosis-{component}",
                body=each.body(),
                delivery=each.delivery or (alerts.digest(hook, own, component) if own else None),
                window_seconds=ALERT_WINDOW_SECONDS,
                again=each.again,
                budget_seconds=self.config.deploy.budget_seconds,
            )
            for component, each in reversed(by_component.items())
        ]

    def put(self, job: Job) -> dict[str, Any]:
        if job.window_seconds is None and not job.again and is_known(self.look(job.key), job.key):
            return {"job": None, "key": job.key, "created": False, "because": f"{job.key} is in the record"}
        put: Put = self.queue.put(job)
        return {"job": put.job, "key": job.key, "created": put.created, "repeats": put.repeats}

    def look(self, key: str) -> Any:
        """What the record says of this entry; its refusal is an answer, its silence is not."""
        try:
            return self.book.call("read", {"entity": self.config.entity, "key": key})
        except (HerdbookError, Refused) as problem:
            if problem.code == "not_found":
                return None
            raise

    async def close(self) -> None:
        self.threads.shutdown(wait=True)


def is_known(answer: Any, key: str) -> bool:
    """Only an entry of that key with a version is one: anything else that comes with a 200 is not."""
    return isinstance(answer, dict) and answer.get("key") == key and isinstance(answer.get("version"), int)


def hook_of(path: str) -> str:
    parts = path.strip("/").split("/")
    if parts == ["health"]:
        return "health"
    if parts == ["hooks", "deploy"]:
        return "deploy"
    if len(parts) == 3 and parts[:2] == ["hooks", "alert"] and parts[2] in alerts.PARSERS:
        return parts[2]
    raise NotFound(f"hooks are POST /hooks/deploy and /hooks/alert/ with one of {', '.join(alerts.PARSERS)}")


async def whole(receive: Receive) -> bytes:
    """The body, which the edge has bounded; one that breaks off is nobody's."""
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise InvalidRequest("the body broke off")
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def reply(send: Send, status: int, answer: dict[str, Any]) -> None:
    data = json.dumps(answer).encode()  # in ASCII: what is refused may be no text at all
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})


def as_dict(problem: HerdbookError | Refused) -> dict[str, Any]:
    if isinstance(problem, HerdbookError):
        return problem.as_dict()
    return {"error": {"code": problem.code, "message": problem.message, "retry": problem.retry}}
