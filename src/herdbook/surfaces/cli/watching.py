"""The acts of `herdbook watch`: each opens the record, has the watcher do it, and shows what came of it."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from herdbook.base import files
from herdbook.base.clock import SystemClock
from herdbook.base.errors import InvalidRequest
from herdbook.client import Client
from herdbook.surfaces.cli.entries import move_rows
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.problems import Usage
from herdbook.surfaces.cli.terminal import clipped, line, table

if TYPE_CHECKING:
    from herdbook.watch.config import Config
    from herdbook.watch.queue import Queue
    from herdbook.watch.worker import Worker


class Wiring(Protocol):
    """What the composition root hands to a worker."""

    @property
    def boxes_dir(self) -> Path: ...

    def open_record(self) -> Client: ...

    def open_socket(self, box: str) -> tuple[str, Callable[[], None]]: ...


def init(invocation: Invocation) -> int:
    from herdbook.watch import principal

    directory = invocation.args.directory
    written = principal.init(directory)
    config = "" if directory == Path("oncall") else f" --config {line(str(directory / 'watch.toml'))}"
    following = [
        "Next:",
        f"  say in {line(str(directory / 'watch.toml'))} what is watched",
        f"  python -m pytest {line(str(directory / 'test_gates.py'))}",
        f"  herdbook watch serve{config}     # takes hooks; their secrets are in the variables that it names",
        f"  herdbook watch work{config}      # makes boxes and watches",
    ]
    return invocation.show({"written": [str(path) for path in written]}, [*(f"wrote {path}" for path in written), "", *following])


def classify(invocation: Invocation) -> int:
    from herdbook.watch.classify import classify_from_logs
    from herdbook.watch.findings import Line

    name = invocation.args.file
    text = sys.stdin.read() if name == "-" else text_of(name)
    found = classify_from_logs([Line(each) for each in text.splitlines()])
    doubts = [f"  it may also be {each}" for each in found.signals.ambiguous_with]
    lines = [
        found.label,
        *(f"  {line(each)}" for each in found.signals.lines),
        *doubts,
        *(f"  {each}" for each in found.signals.states),
    ]
    return invocation.show({"label": found.label, "signals": asdict(found.signals)}, lines)


NAME: Final = re.compile(r"[\w.-]{1,200}")
LOG_BYTES_MAX: Final = 64 * 1024 * 1024


def text_of(name: str) -> str:
    return files.read(Path(name), what="the file of logs", bytes_max=LOG_BYTES_MAX).decode(errors="replace")


def serve(invocation: Invocation) -> int:
    """Take hooks until a signal; what was accepted is a job before the process ends."""
    from herdbook.base.http_edge import Edge, EdgeLimits
    from herdbook.base.http_serve import bind_tcp
    from herdbook.base.http_serve import serve as serve_until_signalled
    from herdbook.watch.config import load
    from herdbook.watch.dispatch import BODY_BYTES_MAX, Dispatch

    args = invocation.args
    logging.basicConfig(stream=sys.stderr, level="WARNING", format="%(asctime)s %(levelname)s %(name)s %(message)s")
    config = load(args.config)
    secrets = secrets_of(config, os.environ)
    book = Client(invocation.opened(), session="")
    app = Dispatch(config, book, queue_of(config, book), secrets=secrets, clock=SystemClock())
    sock = bind_tcp(args.host, args.port)
    host, port = sock.getsockname()[:2]
    url = f"http://{host}:{port}"
    line = json.dumps({"url": url}) if args.json else f"taking hooks on {url}"
    edge = Edge(app, limits=EdgeLimits(body_bytes=BODY_BYTES_MAX))
    serve_until_signalled(edge, sock, state={}, on_ready=lambda: print(line, flush=True), on_stop=app.close)
    return 0


def queue_of(config: Config, book: Client) -> Queue:
    """The record's own queue, or Google's where that is set up."""
    from herdbook.watch.queue import RecordQueue

    if config.cloud_tasks is None:
        return RecordQueue(book)
    from herdbook.watch.cloud_tasks import CloudTasksQueue, google_ask

    tasks = config.cloud_tasks
    return CloudTasksQueue(
        google_ask(), queue=tasks.queue, execute_url=tasks.execute_url, service_account=tasks.service_account, clock=SystemClock()
    )


def secrets_of(config: Config, environ: Mapping[str, str]) -> dict[str, bytes]:
    """Each hook's secret out of its variable. One that is named and not set is refused: it would be a hook that nobody guards."""
    missing = [f"{variable} (for {hook})" for hook, variable in config.hooks.items() if not environ.get(variable)]
    if missing:
        raise InvalidRequest(f"the secret {missing[0]} is not set: set it, or take the hook out of watch.toml")
    if not config.hooks:
        raise InvalidRequest("watch.toml sets up no hook: name at least one under [hooks]")
    return {hook: environ[variable].encode(errors="surrogateescape") for hook, variable in config.hooks.items()}


def work(invocation: Invocation, wiring: Wiring) -> int:
    """Do jobs until a signal, or until none waits; the one that is under way is left to the next attempt."""
    with working(invocation, wiring) as worker:
        if invocation.args.act == "execute":
            return execute(invocation, worker)
        stopped = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())
        if not invocation.args.once:
            made_by = worker.boxes.provider
            said = {"provider": made_by.name, "isolation": made_by.isolation}
            lines = [f"waiting for jobs; boxes by {made_by.name} ({made_by.isolation}); end it with Ctrl-C"]
            invocation.show(said, lines)
            sys.stdout.flush()
            worker.run(stopped, idle_seconds=invocation.args.idle_seconds)
            return 0
        worker.boxes.reap()
        taken = 0
        while not stopped.is_set() and worker.once():
            taken += 1
    return invocation.show({"taken": taken}, [f"took {taken}: herdbook watch status" if taken else "no job waits"])


@contextmanager
def working(invocation: Invocation, wiring: Wiring) -> Iterator[Worker]:
    """A worker over this record, with the gates that the settings name."""
    from herdbook.boxes.providers import choose
    from herdbook.watch.boxes import Boxes
    from herdbook.watch.config import load
    from herdbook.watch.principal import load_gate
    from herdbook.watch.worker import Worker

    args = invocation.args
    logging.basicConfig(stream=sys.stderr, level="WARNING", format="%(asctime)s %(levelname)s %(name)s %(message)s")
    config = load(args.config)
    gate = load_gate(config.gates)
    provider = choose(args.provider, state_dir=wiring.boxes_dir)
    book = wiring.open_record()
    boxes = Boxes(book, provider, wiring.open_socket, minimum=provider.isolation)
    try:
        yield Worker(f"{os.uname().nodename}-{os.getpid()}", config, book, boxes, gate)
    finally:  # a convenience: what is left the reaper ends
        boxes.close()


def execute(invocation: Invocation, worker: Worker) -> int:
    """Take Cloud Tasks until a signal, each worked off before it is answered."""
    from herdbook.base.http_edge import Edge, EdgeLimits
    from herdbook.base.http_serve import bind_tcp
    from herdbook.base.http_serve import serve as serve_until_signalled
    from herdbook.watch.cloud_tasks import Execute, Identity
    from herdbook.watch.dispatch import BODY_BYTES_MAX

    tasks = worker.config.cloud_tasks
    if tasks is None:
        raise InvalidRequest("watch.toml has no [cloud_tasks]: without one, `herdbook watch work` does the jobs")
    identity = Identity(audience=tasks.execute_url, service_account=tasks.service_account)
    sock = bind_tcp(invocation.args.host, invocation.args.port)
    url = f"http://{invocation.args.host}:{sock.getsockname()[1]}/execute"
    edge = Edge(Execute(identity, worker.queue, worker), limits=EdgeLimits(body_bytes=BODY_BYTES_MAX))
    worker.boxes.reap()
    serve_until_signalled(
        edge, sock, state={}, on_ready=lambda: print(f"taking tasks on {url}", flush=True), on_stop=nothing_to_stop
    )
    return 0


async def nothing_to_stop() -> None:
    """The worker is closed by whoever made it."""


def status(invocation: Invocation) -> int:
    from herdbook.watch.queue import NAME

    jobs = invocation.ask("job_list", queue=NAME, limit=invocation.args.limit)["jobs"]
    rows = [job_row(job) for job in jobs]
    return invocation.show({"jobs": jobs}, table(rows, indent="") if rows else ["No deploy or alert was told yet."])


def job_row(job: Mapping[str, Any]) -> list[str]:
    result = job["result"] or {}
    verdicts = result.get("verdicts") or []
    unwatched = [f"{name} was not watched: {why}" for name, why in (result.get("unreadable") or {}).items()]
    what = "quiet" if result.get("quiet") else "; ".join([*(f"{v['service']} {v['label']}" for v in verdicts), *unwatched])
    reasons = "; ".join(f"{'draft' if each['allowed'] else 'no draft'}: {each['reason']}" for each in verdicts)
    again = f"{job['repeats']} more" if job["repeats"] else ""
    step = f"attempt {job['attempt']}" if job["state"] == "running" else ""
    failed = (job["progress"] or {}).get("failed")
    said = what or "; ".join(filter(None, [step, result.get("why"), failed and f"the last one failed: {failed}"]))
    return [line(job["key"]), job["state"], clipped(line(said), 160), again, clipped(line(reasons), 120)]


def why(invocation: Invocation) -> int:
    from herdbook.watch import human

    book = Client(invocation.opened(), session="")
    found = human.why_of(book, newest(book, invocation.args.watch))
    return invocation.show(found, why_lines(found))


def why_lines(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"{line(found['task'] or '')}  (box {line(found['box'] or 'none')}, {found['isolation']})"
    yield "read, before anything else:" if found["reads"] else "read, before anything else: nothing was known"
    yield from table(
        [f"  {line(each['entity'])}", line(each["key"]), f"version {each['version']}", each["how"]] for each in found["reads"]
    )
    yield "then did:"
    yield from table(
        [f"  {each['tool']}", line(about(each["args"])), clipped(line(json.dumps(each["result"], ensure_ascii=False)), 140)]
        for each in found["actions"]
    )
    yield "wrote:"
    yield from table(
        [f"  {line(each['key'])}", f"version {each['version']}", clipped(line(each["why"] or ""), 100)] for each in found["wrote"]
    )
    for name, reason in found["result"].get("unreadable", {}).items():
        yield f"{line(name)} was not watched: {line(reason)}"
    for each in found["result"].get("verdicts", []):
        yield f"{each['service']}: {'a draft was allowed' if each['allowed'] else 'no draft'}: {line(each['reason'])}"
        yield from (f"  rests on {line(name)}" for name in [*each["entries"], *each["outcomes"]])
    ended = [f"{each['effective_type']} ({'attested' if each['attested'] else 'claimed'})" for each in found["outcomes"]]
    key = line(found["result"]["key"])
    yield (
        f"outcome: {', '.join(ended)}"
        if ended
        else f"outcome: open; herdbook watch resolve {key} OUTCOME --why '...' says how it ended"
    )


def about(args: Any) -> str:
    """The service or repository that a step was about."""
    told = args if isinstance(args, dict) else {}
    return str(told.get("service") or told.get("repository") or "")


def newest(book: Client, name: str) -> Mapping[str, Any]:
    """By its key first, which is asked for by itself; a beginning of one only among the newest."""
    from herdbook.base.limits import PAGE_MAX
    from herdbook.watch import human
    from herdbook.watch.alerts import SHA_CHARS
    from herdbook.watch.queue import RecordQueue

    queue = RecordQueue(book)
    keys = [name, f"deploy-{name[:SHA_CHARS]}"] if NAME.fullmatch(name) else []
    jobs = [job for key in keys for job in queue.jobs(limit=PAGE_MAX, key=key)]
    return human.watch_of(jobs or queue.jobs(limit=PAGE_MAX), name)


def dispute(invocation: Invocation) -> int:
    from herdbook.watch import human

    book = Client(invocation.opened(), session="")
    told = human.dispute(sitting(invocation), newest(book, invocation.args.watch), why=invocation.args.why)
    return invocation.show(told, moved_lines("disputed", told))


def name_class(invocation: Invocation) -> int:
    from herdbook.watch import human
    from herdbook.watch.config import load

    args = invocation.args
    fixes = dict(each.split("=", 1) for each in args.fix if "=" in each)
    if len(fixes) != len(args.fix):
        raise Usage("--fix is PATH=FILE: where it belongs in the repository, and the file that holds it")
    fix = {path: text_of(file) for path, file in fixes.items()}
    told = human.name_class(
        sitting(invocation),
        load(args.config).entity,
        args.key,
        label=args.label,
        patterns=args.pattern,
        why=args.why,
        fix=fix,
        of=args.of,
    )
    return invocation.show(
        told, [f"{line(told['key'])} version {told['version']}, {told['standing']}: the next briefing carries it"]
    )


def resolve(invocation: Invocation) -> int:
    from herdbook.watch import human
    from herdbook.watch.config import load

    args = invocation.args
    book = Client(invocation.opened(), session="")
    found = open_watch(book, args.key) if args.ref is None else None
    if found is not None:
        told = human.settle(sitting(invocation), book, found, args.outcome, why=args.why)
        told["watch"] = found["key"]
    else:
        told = human.resolve(sitting(invocation), load(args.config).entity, args.key, args.outcome, why=args.why, ref=args.ref)
    return invocation.show(told, moved_lines(args.outcome, told))


def open_watch(book: Client, name: str) -> Mapping[str, Any] | None:
    """The watch that goes by this name, if it is still open."""
    from herdbook.base.errors import NotFound
    from herdbook.watch import human

    try:
        found = newest(book, name)
    except NotFound:
        return None
    return found if human.is_open(book, found) else None


def moved_lines(word: str, told: Mapping[str, Any]) -> Iterator[str]:
    yield f"{word}: {line(told['ref'])}"
    yield from table(move_rows(told["moved"]))


def sitting(invocation: Invocation) -> Callable[[str], Client]:
    """A person's own session over this invocation's record."""
    return lambda task: Client(invocation.opened(), agent=invocation.agent, task=task)


ACTS: dict[str, Callable[[Invocation], int]] = {
    "init": init,
    "classify": classify,
    "serve": serve,
    "status": status,
    "why": why,
    "dispute": dispute,
    "class": name_class,
    "resolve": resolve,
}
