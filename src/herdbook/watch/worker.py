"""The worker: takes a job, has it watched from a fresh box, asks the gates, tells people, ends it. Only it makes boxes.

Each step's result is kept with the job before the next begins, so that a worker which dies is taken over where it stopped: what
was watched is not watched again. Boxes are the reaper's in the end, whatever happens here.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from herdbook.base.errors import HerdbookError, Unavailable
from herdbook.base.limits import PAGE_MAX
from herdbook.client import Client
from herdbook.client import HerdbookError as Refused
from herdbook.watch import evidence, history, notify, pull_request, told
from herdbook.watch.boxes import ACTOR, ERRAND, ERRAND_SECONDS_MAX, Boxes, Put
from herdbook.watch.config import Config, Service
from herdbook.watch.feeding import Feeding
from herdbook.watch.principal import Gate
from herdbook.watch.queue import Job, RecordQueue

LOG = logging.getLogger("herdbook.watch")
LEASE_SECONDS: Final = 60
REAP_SECONDS: Final = 60
RETRY_SECONDS: Final = 10
NOTIFY_RETRY_SECONDS: Final = 60  # then four times as long: a chat may be away for an hour
NOTIFY_BUDGET_SECONDS: Final = 4 * 3600
ALERT_LOOKBACK_SECONDS: Final = 900
DEPLOY_LOOKBACK_SECONDS: Final = 60  # the hook may come a little after the release
BOX_EXTRA_SECONDS: Final = 240  # for the agent, the comparison and the writes
EARLIER_MAX: Final = PAGE_MAX  # the newest jobs: a watch that was left open before those waits for a person

Step = Callable[[str], None]


class Worker:
    """One job at a time."""

    def __init__(
        self,
        name: str,
        config: Config,
        book: Client,
        boxes: Boxes,
        gate: Gate,
        *,
        on_step: Step = lambda step: None,  # for whoever wants to see, or to pull the plug
        now: Callable[[], float] = time.time,
        lease_seconds: int = LEASE_SECONDS,
    ) -> None:
        self.base, self.config, self.book, self.boxes, self.gate = name, config, book, boxes, gate
        self.failures = 0
        self.queue = RecordQueue(book)
        self.on_step, self.now, self.lease_seconds = on_step, now, lease_seconds

    def run(self, stopped: threading.Event, *, idle_seconds: float = 2.0) -> None:
        """Until stopped: reap, take, work. A job that fails is said, and left to the next attempt."""
        reaped = 0.0
        while not stopped.is_set():
            if self.now() - reaped >= REAP_SECONDS:
                reaped = self.now()
                self.reap()
            if not self.once():
                stopped.wait(idle_seconds)

    def reap(self) -> None:
        try:
            self.boxes.reap()
        except (HerdbookError, Refused, OSError) as problem:
            LOG.warning("nothing could be reaped, the next turn tries again: %s", problem)

    @property
    def name(self) -> str:
        """Another one after each failure: a job that failed is not this one's any more, and comes back when its lease is over."""
        return f"{self.base}-{self.failures}"

    def once(self) -> bool:
        """One job, if there is one."""
        try:
            job = self.queue.take(self.name, lease_seconds=self.lease_seconds)
        except (HerdbookError, Refused, OSError) as problem:
            LOG.warning("no job could be taken: %s", problem)
            return False
        if job is None:
            return False
        try:
            self.on_step("taken")
            self.work(job)
        except (HerdbookError, Refused, OSError) as problem:
            self.let_go(job, problem)
        except Exception as problem:  # because one job's fault must not end the watching of all the others
            LOG.exception("%s failed in a way that nobody foresaw", job["key"])
            self.let_go(job, problem)
        return True

    def let_go(self, job: dict[str, Any], problem: Exception) -> None:
        """Leave a job to its next attempt, later the oftener it failed. What was reached stays with it."""
        told = job["body"]["kind"] == "notify"
        later = NOTIFY_RETRY_SECONDS * 4 ** (job["attempt"] - 1) if told else RETRY_SECONDS * job["attempt"]
        LOG.warning("%s was not finished and will be tried again in %d s: %s", job["key"], later, problem)
        with suppress(HerdbookError, Refused, OSError):  # because somebody else may have it by now
            self.queue.beat(job, lease_seconds=later, progress={**(job["progress"] or {}), "failed": str(problem)[:500]})
        self.failures += 1

    def work(self, job: dict[str, Any]) -> None:
        run = Run(self, job)
        with Beating(self.queue, job, lease_seconds=self.lease_seconds, on_lost=run.lost):
            run.tell_only() if job["body"]["kind"] == "notify" else run.watch()


class Run:
    """One job, step by step."""

    def __init__(self, worker: Worker, job: dict[str, Any]) -> None:
        self.worker, self.job, self.config, self.book = worker, job, worker.config, worker.book
        self.progress: dict[str, Any] = {name: kept for name, kept in (job["progress"] or {}).items() if name != "failed"}
        job["progress"] = self.progress  # how far it came, for whoever lets it go
        self.ref = f"watch-{job['job']}"

    def watch(self) -> None:
        finding = self.step("finding", self.watched)
        self.step("attested", lambda: self.attest(finding))
        verdicts = self.step("verdicts", lambda: [self.judged(finding, each) for each in finding["findings"]])
        drafts = self.step("drafts", lambda: self.drafted(finding, verdicts))
        told = self.step("told", lambda: self.tell(finding, verdicts, drafts))
        result = self.result(finding, verdicts, drafts, told)
        result["settled"] = self.step("resolved", lambda: self.resolve_earlier(result))
        self.book.call("end_session", {"session": finding["session"]})
        self.worker.queue.done(self.job, ok=True, result=result)
        self.worker.on_step("done")

    def step(self, name: str, work: Callable[[], Any]) -> Any:
        """A step's result: from an earlier attempt, or now and kept before anything follows from it."""
        if name not in self.progress:
            self.worker.on_step(f"before {name}")
            self.progress[name] = work()
            self.worker.on_step(f"after {name}")
            self.keep()
            self.worker.on_step(f"kept {name}")
        return self.progress[name]

    def keep(self) -> None:
        self.worker.queue.beat(self.job, lease_seconds=self.worker.lease_seconds, progress=self.progress)

    def lost(self) -> None:
        """Somebody else has the job: what this one still watches is ended, so that nothing is watched twice."""
        if "box" in self.progress and "finding" not in self.progress:
            self.worker.boxes.destroy(ACTOR, self.progress["box"])

    # --- the box ---

    def watched(self) -> dict[str, Any]:
        """From a fresh box to its finding. The box's name is kept before it is made, so that a next attempt can end it."""
        if "box" in self.progress:
            self.worker.boxes.destroy(ACTOR, self.progress["box"])
            if (left := self.left_behind()) is not None:
                return left
        box = f"{ACTOR}-{self.job['job'][-12:]}-{self.job['attempt']}"
        self.progress["box"] = box
        self.keep()
        self.worker.on_step("before box")
        services = self.services()
        task = self.task(services)
        deadline = self.job["budget_seconds"] - ERRAND_SECONDS_MAX
        event, code = self.worker.boxes.run(
            ACTOR,
            box,
            "herdbook.watch.actor.main",
            task,
            seconds=min(self.config.deploy.watch_seconds + BOX_EXTRA_SECONDS, max(deadline, 30)),
            on_start=lambda put: self.fed(services, put, since=self.worker.now() - task["lookback_seconds"]),
        )
        return {**told.finding(event, session=task["session"]), "box": box, "exit_code": code}

    def left_behind(self) -> dict[str, Any] | None:
        """The finding of an attempt that died after its box had committed a quiet watch: its outcome is in the record."""
        try:
            trace = self.book.trace(self.ref)
        except (HerdbookError, Refused) as problem:
            if problem.code == "not_found":
                return None
            raise
        [outcome] = [each for each in trace["outcomes"] if each["ref"] == self.ref]
        kept = outcome["artifacts"] | {"session": trace["session"], "findings": [], "unreadable": {}}
        return {**told.finding(kept, session=trace["session"]), "box": trace["box"], "exit_code": None}

    def fed(self, services: Mapping[str, Service], put: Put, *, since: float) -> Callable[[], None]:
        self.worker.on_step("in box")
        feeding = Feeding(services, put, since=since, poll_seconds=self.config.deploy.poll_seconds)
        feeding.__enter__()
        return feeding.__exit__

    def services(self) -> dict[str, Service]:
        """What this job is about, of what is set up; a deploy that names nothing is about everything."""
        body, known = self.job["body"], self.config.services
        if body["kind"] == "alert":
            return {name: each for name, each in known.items() if name.lower() == body["component"]}
        return {name: known[name] for name in body["services"] or known if name in known}

    def unknown(self, services: Mapping[str, Service]) -> list[str]:
        """What nobody set up a source for: it is said to be unwatched, never quiet."""
        body = self.job["body"]
        if body["kind"] == "alert":
            return [] if services else [body["component"]]
        return sorted(set(body["services"]) - set(services)) or ([] if services else ["every service"])

    def task(self, services: Mapping[str, Service]) -> dict[str, Any]:
        body, deploy = self.job["body"], self.config.deploy
        is_deploy = body["kind"] == "deploy"
        return {
            "kind": body["kind"],
            "key": self.job["key"],
            "entity": self.config.entity,
            "session": f"{self.ref}-{self.job['attempt']}",
            "ref": self.ref,
            "task_input": task_input(self.job, services),
            "repositories": body["repositories"] if is_deploy else {},
            "alert": None if is_deploy else body,
            "component": None if is_deploy else body["component"],
            "promotion": deploy.promotion,
            "github": self.config.connections.get("github", ""),
            "model": self.config.connections.get("model", ""),
            "agent": list(self.config.agent),
            "unknown": self.unknown(services),
            "services": {name: {"source": each.source, "options": dict(each.options)} for name, each in services.items()},
            "watch_seconds": deploy.watch_seconds,
            "poll_seconds": deploy.poll_seconds,
            "lookback_seconds": DEPLOY_LOOKBACK_SECONDS if is_deploy else ALERT_LOOKBACK_SECONDS,
        }

    def attest(self, finding: dict[str, Any]) -> bool:
        """A quiet watch's outcome is the box's claim until its host says that it saw it end well."""
        if not finding["quiet"] or finding["exit_code"] is None:
            return False
        self.book.attest(self.ref, exit_code=finding["exit_code"], box=finding["box"], note="seen by the watch's worker")
        return True

    # --- the gates, and what follows ---

    def judged(self, finding: dict[str, Any], each: dict[str, Any]) -> dict[str, Any]:
        """The gate's verdict on the record's own history, kept in the trace of the run it is about."""
        matched = history.class_of(self.book, each["class"])
        acted = history.instances_of(self.book, matched)
        verdict = self.worker.gate(each["label"], history.signals_of(each["signals"]), matched, acted)
        told = verdict.as_dict()
        asked = {"label": each["label"], "class": each["class"], "history": [f"{one.ref} {one.outcome}" for one in acted]}
        self.note(finding["session"], "should_draft_pr", asked, told, ok=told["allowed"])
        return {
            "service": each["service"],
            "label": each["label"],
            "class": matched.key if matched else None,
            "entry": each["class"],
            "incident": each["incident"],
            "evidence": each["signals"].get("lines", [])[:3],
            **told,
        }

    def note(self, session: str, tool: str, args: Any, result: Any, *, ok: bool) -> None:
        """A step outside the box, in the trace of the run it is about; said again by a next attempt in the same words, once."""
        said = {"session": session, "tool": tool, "args": args, "result": result, "ok": ok}
        digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:32]
        self.book.call("record_action", {**said, "request_id": f"watch-{digest}"})

    def drafted(self, finding: dict[str, Any], verdicts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """A draft for each verdict that allows one; that none could be opened is said, and fails nothing."""
        drafts = []
        for each, verdict in zip(finding["findings"], verdicts, strict=True):
            if verdict["allowed"]:
                matched = history.class_of(self.book, each["class"])
                connection = self.config.connections.get("drafts")
                if matched is None or connection is None:
                    drafts.append({"service": each["service"], "why": "no connection for drafts is set up in watch.toml"})
                    continue
                asked = pull_request.draft(
                    each,
                    verdict,
                    matched,
                    job=self.job,
                    repository=self.config.deploy.repository,
                    base=self.config.deploy.base,
                    reads=self.reads(finding),
                    changed=finding["changed"].get(self.config.deploy.repository, []),
                )
                drafts.append({"service": each["service"], **self.errand("draft", connection, asked)})
        return drafts

    def reads(self, finding: dict[str, Any]) -> list[str]:
        """What the actor was served, by version."""
        trace = self.book.trace(finding["session"])
        return [
            f"{each['entity']} {each['key']} version {each['version']} ({each['how']})"
            for each in trace["reads"]
            if each["served"]
        ]

    def tell(self, finding: dict[str, Any], verdicts: list[dict[str, Any]], drafts: list[dict[str, Any]]) -> dict[str, Any]:
        """People hear of what is not quiet. What they could not be told is put back into the queue."""
        if finding["quiet"] and not finding["unreadable"]:
            return {"ok": True, "why": "quiet"}
        text = notify.message(self.job["key"], self.config.entity, finding, verdicts, drafts)
        told = self.say(text)
        if not told["ok"] and self.config.connections.get("slack"):
            self.worker.queue.put(
                Job(key=f"notify-{self.job['job']}", body={"kind": "notify", "text": text}, budget_seconds=NOTIFY_BUDGET_SECONDS)
            )
        self.note(finding["session"], "notify", {"text": text}, told, ok=told["ok"])
        return told

    def say(self, text: str) -> dict[str, Any]:
        connection = self.config.connections.get("slack")
        if connection is None:
            return {"ok": False, "why": "no connection to Slack is set up in watch.toml"}
        return {"ok": False, **self.errand("notify", connection, {"text": text})}

    def errand(self, name: str, connection: str, more: Mapping[str, Any]) -> dict[str, Any]:
        """Something that leaves the house, from a box that is made for it. A failure is an answer."""
        box = f"{ERRAND}-{name}-{self.job['job'][-12:]}-{self.job['attempt']}"
        self.worker.boxes.destroy(ERRAND, box)
        task = {**more, "errand": name, "connection": connection}
        try:
            event, _ = self.worker.boxes.run(ERRAND, box, "herdbook.watch.actor.errand", task, seconds=ERRAND_SECONDS_MAX)
        except (HerdbookError, Refused, OSError) as problem:
            return {"ok": False, "why": str(problem)[:500]}
        return {key: value for key, value in event.items() if key != "event"}

    def tell_only(self) -> None:
        """A message that did not get through before; if it still does not, the next attempt tries."""
        told = self.say(self.job["body"]["text"])
        if not told["ok"]:
            raise Unavailable(f"people could not be told: {told['why']}")
        self.worker.queue.done(self.job, ok=True, result=told)

    # --- the end, and what it says about earlier ones ---

    def result(self, finding: dict[str, Any], verdicts: list[Any], drafts: list[Any], told: dict[str, Any]) -> dict[str, Any]:
        body = self.job["body"]
        services = sorted(self.services()) or self.unknown({})
        kept = ("session", "quiet", "pages", "seconds", "written", "unreadable", "reverts", "commits", "box")
        return {
            "key": self.job["key"],
            "kind": body["kind"],
            "ref": self.ref,
            "services": services,
            "verdicts": verdicts,
            "drafts": drafts,
            "told": told,
            **{name: finding[name] for name in kept},
        }

    def resolve_earlier(self, result: dict[str, Any]) -> list[dict[str, str]]:
        """Open watches that this one settles: the outcome is committed to their run, and attested, by what was seen here."""
        settled = []
        known = set()  # what later ones have settled needs no second word
        for job in self.worker.queue.jobs(limit=EARLIER_MAX):
            earlier = job["result"]
            if job["job"] == self.job["job"] or job["state"] != "done" or not earlier:
                continue
            known |= {each["ref"] for each in earlier.get("settled") or ()}
            if earlier.get("quiet", True) or earlier["ref"] in known:
                continue
            found = evidence.resolved(earlier, result)
            if found is not None and self.commit(earlier, found):
                settled.append({"ref": earlier["ref"], "key": earlier["key"], "outcome": found.outcome, "why": found.why})
        return settled

    def commit(self, earlier: dict[str, Any], found: evidence.Resolution) -> bool:
        """Whether it was still open."""
        try:
            self.book.call("commit_outcome", evidence.ending(earlier, found.outcome, why=found.why, by=self.job["key"]))
        except (HerdbookError, Refused) as problem:
            if problem.code == "request_conflict":
                return False
            raise
        self.book.attest(earlier["ref"], result="success" if found.outcome == "success" else "failure", note=found.why)
        return True


class Beating:
    """Keeps a job's lease while it is worked on."""

    def __init__(self, queue: RecordQueue, job: dict[str, Any], *, lease_seconds: int, on_lost: Callable[[], None]) -> None:
        self.queue, self.job, self.lease_seconds, self.on_lost = queue, job, lease_seconds, on_lost
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.beat, name="herdbook-job-lease", daemon=True)

    def __enter__(self) -> Beating:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.thread.join()

    def beat(self) -> None:
        while not self.stopped.wait(self.lease_seconds / 3):
            try:
                self.queue.beat(self.job, lease_seconds=self.lease_seconds)
            except (HerdbookError, Refused, OSError) as problem:
                LOG.warning("the lease of %s could not be kept: %s", self.job["job"], problem)
                if getattr(problem, "code", "") == "conflict":
                    self.on_lost()
                    return


def task_input(job: dict[str, Any], services: Mapping[str, Service]) -> str:
    body, names = job["body"], ", ".join(sorted(services)) or "no service"
    if body["kind"] == "deploy":
        shas = "; ".join(f"{name} {each['before'][:12]}..{each['after'][:12]}" for name, each in body["repositories"].items())
        return f"watch {job['key']} ({shas}) on {names}"
    return f"diagnose {body['component']}: {body['title']} ({body['source']})"
