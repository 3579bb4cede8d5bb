"""Where jobs wait: in the record's own store, through the verbs. Another queue only has to be able to take a job in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

from herdbook.client import Client

NAME: Final = "watch"
ALERT_WINDOW_SECONDS: Final = 1800


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Something to be looked at: `key` makes two of them one."""

    key: str
    body: dict[str, Any]
    delivery: str | None = None
    window_seconds: int | None = None
    again: bool = False
    budget_seconds: int = 900


@dataclass(frozen=True, slots=True)
class Put:
    """What became of it."""

    job: str
    created: bool
    repeats: int = 0


class Queue(Protocol):
    """Takes jobs in: at least once, one for each key."""

    def put(self, job: Job) -> Put: ...


class RecordQueue:
    """The lease table behind `job_put`, `job_take`, `job_beat`, `job_done`. Threads may share one."""

    def __init__(self, book: Client) -> None:
        self.book = book

    def put(self, job: Job) -> Put:
        fields = {
            "queue": NAME,
            "key": job.key,
            "body": job.body,
            "delivery": job.delivery,
            "window_seconds": job.window_seconds,
            "again": job.again or None,
            "budget_seconds": job.budget_seconds,
        }
        answer = self.book.call("job_put", fields)
        return Put(answer["job"], answer["created"], answer["repeats"])

    def take(self, worker: str, *, lease_seconds: int) -> dict[str, Any] | None:
        """The oldest job that nobody holds. Jobs that killed every worker are given up first."""
        self.book.call("job_reap", {"queue": NAME})
        taken: dict[str, Any] | None = self.book.call(
            "job_take", {"queue": NAME, "worker": worker, "lease_seconds": lease_seconds}
        )["job"]
        return taken

    def beat(self, job: dict[str, Any], *, lease_seconds: int, progress: Any = None) -> None:
        self.book.call("job_beat", {**held(job), "lease_seconds": lease_seconds, "progress": progress})

    def done(self, job: dict[str, Any], *, ok: bool, result: Any) -> None:
        self.book.call("job_done", {**held(job), "ok": ok, "result": result})

    def jobs(self, *, limit: int = 50, key: str | None = None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.book.call("job_list", {"queue": NAME, "limit": limit, "key": key})["jobs"]
        return found


def held(job: dict[str, Any]) -> dict[str, Any]:
    return {"job": job["job"], "worker": job["worker"], "attempt": job["attempt"]}
