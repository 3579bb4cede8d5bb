"""A command inside the loop, without a line of code: briefed before it starts, and its outcome told from its exit code.

It never stands in the way: where the record is away, that is said and the command runs all the same. What it prints is the
command's own, and it ends with the command's exit code; all that herdbook says is on standard error.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from herdbook.base.errors import HerdbookError as Refusal
from herdbook.base.redaction import looks_secret, plain, redacted
from herdbook.client import Client, HerdbookError, environment
from herdbook.surfaces.cli import passthrough
from herdbook.surfaces.cli.inputs import text_of
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.learning import Attempt, Attempts, lessons, symptoms
from herdbook.surfaces.cli.parser import number
from herdbook.surfaces.cli.passthrough import Ended
from herdbook.surfaces.cli.terminal import Answer, clipped

BRIEF_SECONDS: Final = 2.0
TELL_SECONDS: Final = 5.0
TAIL_CHARS_MAX: Final = 8_000
EXAMPLES: Final = """\
example:
  $ herdbook run --entity acme/ci -- pytest -q
  $ TZ=UTC herdbook run --entity acme/ci --learn -- pytest -q    # it failed without TZ: that is kept as an entry

What is known and stands is set for the command, and shown first; what you set yourself is yours. With a key that may attest,
or a record on this machine, the exit code is attested: that gives entries their standing. Exit code: the command's own
(127: not found, 126: cannot be run, 128 + n: ended by signal n)."""


@dataclass(frozen=True, slots=True)
class Merge:
    """What the record adds to the command's environment."""

    applied: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, Answer] = field(default_factory=dict)  # by variable: the entry it comes from
    kept: Mapping[str, str] = field(default_factory=dict)  # set by the person, though the record says otherwise
    left_out: Sequence[Answer] = ()

    @property
    def used(self) -> list[Answer]:
        """The entries that were acted on, each once, by the version that was read."""
        found = {(each["entity"], each["key"]): each for each in self.sources.values()}
        return [{name: each[name] for name in ("entity", "key", "version")} for each in found.values()]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run COMMAND with what is known at the path, and tell how it went: the variables of entries that stand\n"
        "are set, its output and exit code are recorded with secrets taken out, and its outcome moves the trust\n"
        "of what was set."
    )
    parser.add_argument("--entity", metavar="PATH", required=True, help="the path the command belongs to, such as acme/ci")
    parser.add_argument("--task", metavar="TEXT", help="what the command is for (the command itself)")
    parser.add_argument("--override", action="store_true", help="let the record win over variables you have set")
    parser.add_argument(
        "--allow", metavar="NAME", nargs=1, action="extend", default=[], help="set NAME too, though it decides what programs run"
    )
    parser.add_argument("--learn", action="store_true", help="where it passes after failing, keep the variable that did it")
    parser.add_argument(
        "--deadline", metavar="SECONDS", type=number, default=BRIEF_SECONDS, help="wait so long for the briefing (2)"
    )
    parser.add_argument("command", metavar="-- COMMAND", nargs="+", help="what to run, with its arguments")


def run(invocation: Invocation) -> int:
    args = invocation.args
    argv: list[str] = args.command
    task = shown(argv) if args.task is None else text_of(args.task, what="task")
    client = connected(invocation, entity=args.entity, task=task)
    briefing = briefed(client, invocation, args.entity, task)
    merge = merged(briefing, os.environ, override=args.override, allow=args.allow)
    for sentence in about(merge):
        invocation.terminal.remark(sentence)
    env = {**os.environ, **merge.applied}
    if client is not None:
        env["HERDBOOK_SESSION"] = client.session
    ended = passthrough.run(argv, env=env)
    tail = clean_tail(ended)
    learned = learn(invocation, argv, env, ended, tail) if args.learn and ended.started else []
    if client is None:
        invocation.terminal.remark(f"exit {ended.exit_code}: not recorded, since there is no record to tell")
    else:
        with telling(invocation):
            told(invocation, client, Finished(argv, task, merge, ended, tail, learned))
        client.close()
    return ended.exit_code


# --- before ---


def connected(invocation: Invocation, *, entity: str, task: str) -> Client | None:
    """A client with a spool, or None where the record on this machine cannot be opened: the command runs without it."""
    try:
        door = invocation.opened(begins_a_run=True)
    except (Refusal, HerdbookError) as problem:
        if getattr(problem, "status", 500) in (400, 404):  # a mistake in how we were called, not an outage
            raise
        invocation.terminal.remark(f"unavailable: {problem}; running without the record")
        return None
    spool = ""
    if invocation.remote:
        with suppress(OSError):
            invocation.settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            spool = str(invocation.settings.spool)
    return Client(
        door, agent=invocation.agent, session=invocation.settings.session, entity=entity, task=task, spool=spool,
        timeout_seconds=max(TELL_SECONDS, invocation.args.deadline),
    )  # fmt: skip


def briefed(client: Client | None, invocation: Invocation, entity: str, task: str) -> Answer:
    """What is known; empty, and said to be unavailable, where the record cannot say."""
    if client is None:
        return {}
    try:
        answer = client.brief(entity, task=task, deadline_seconds=invocation.args.deadline)
    except HerdbookError as problem:
        if not problem.away and problem.status < 500:
            raise
        invocation.terminal.remark(f"unavailable: {problem}; running without a briefing")
        return {}
    dead_ends = len(answer.get("dead_ends") or [])
    count = len(answer.get("entries") or []) + len(answer.get("contested") or []) + dead_ends
    known = f"{count} known, {dead_ends} of them dead ends" if dead_ends else f"{count or 'nothing'} known"
    invocation.terminal.remark(f"{answer.get('entity', entity)}: {known}")
    return answer


def merged(briefing: Answer, environ: Mapping[str, str], *, override: bool, allow: Sequence[str]) -> Merge:
    """The acting set's variables over nothing the person has set, unless they say so."""
    wanted, left_out = environment(briefing, allow=allow)
    kept = {} if override else {name: value for name, value in wanted.items() if environ.get(name, value) != value}
    applied = {name: value for name, value in wanted.items() if name not in kept and environ.get(name) != value}
    sources = {name: entry for name, entry in sources_of(briefing) if name in applied}
    return Merge(applied, sources, kept, left_out)


def sources_of(briefing: Answer) -> Iterator[tuple[str, Answer]]:
    """(variable, entry) of the acting set, the entry ranked first last, so that a dict keeps it."""
    for entry in reversed(briefing.get("entries") or []):
        if entry.get("acting") is True and entry.get("worked") is not False and isinstance(entry["value"], dict):
            found = entry["value"].get("env")
            for name in found if isinstance(found, dict) else ():
                yield name, entry


def about(merge: Merge) -> Iterator[str]:
    """What is about to be set, where each comes from, and what is not set and why."""
    for name, value in merge.applied.items():
        entry = merge.sources[name]
        why = f": {entry['why']}" if entry.get("why") else ""
        yield clipped(f"set {name}={hidden(name, value)}  ({entry['key']} v{entry['version']}, {entry['standing']}{why})", 240)
    for name, value in merge.kept.items():
        yield f"kept your {name}; the record says {hidden(name, value)} (--override takes it)"
    for one in merge.left_out:
        yield clipped(f"left out {one['name'] or 'env'} of {one['key']}: {one['reason']}", 240)


def hidden(name: str, value: str) -> str:
    return "[redacted]" if looks_secret(name, value) else shlex.quote(value)


# --- after ---


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that has ended, with all that is to be told of it."""

    argv: list[str]
    task: str
    merge: Merge
    ended: Ended
    tail: str
    learned: list[Answer]

    @property
    def outcome(self) -> str | None:
        """What its exit code says; nothing where it never ran or somebody stopped it."""
        if not self.ended.started or self.ended.stopped_by:
            return None
        return "success" if self.ended.exit_code == 0 else "failure"

    @property
    def observed(self) -> list[str]:
        return list(symptoms(self.tail)) if self.outcome == "failure" else []

    @property
    def used(self) -> list[Answer]:
        """What was set, where it passed. A red run does not say which of them it was, if any: it charges those alone whose
        own condition has occurred again although they were set."""
        if self.outcome == "success":
            return self.merge.used
        returned = {
            (each["entity"], each["key"]) for each in self.merge.sources.values() if each.get("applies_when") in self.observed
        }
        return [each for each in self.merge.used if (each["entity"], each["key"]) in returned]


def told(invocation: Invocation, client: Client, run: Finished) -> None:
    """The action, what was learned, the outcome, and the attestation where this credential may give one."""
    client.action("run", action_of(run.argv), result_of(run), ok=None if run.outcome is None else run.outcome == "success")
    say = invocation.terminal.remark
    seconds = f"{run.ended.seconds:.1f} s"
    if run.outcome is None:
        why = f"stopped by {run.ended.stopped_by}" if run.ended.started else f"{clipped(run.argv[0])} could not be started"
        say(f"exit {run.ended.exit_code} after {seconds}: {why}, so no outcome is recorded")
        return
    for lesson in run.learned:
        written = client.write(**lesson)
        say(f"learned {lesson['key']}: {lesson['why']}" + ("" if not written.get("spooled") else " (kept in the spool)"))
    answer = client.commit_outcome(
        run.outcome, task_input=run.task, used=run.used, observed=run.observed or None, verified_by="exit_code"
    )
    if answer.get("spooled"):
        say(f"exit {run.ended.exit_code} after {seconds}: {run.outcome}; unavailable: {answer['because']}")
        say(f"the outcome {answer['ref']} is kept in the spool, and sent with the next command that gets through")
        return
    attested, changed = attestation(client, answer, run.ended.exit_code)
    say(f"exit {run.ended.exit_code} after {seconds}: {run.outcome}, {attested}; the whole run: herdbook trace {answer['ref']}")
    for move in answer.get("moved") or []:
        say(f"{move['key']} v{move['version']}: confidence {move['before']:.3f} -> {move['after']:.3f}")
    for one in changed:
        say(f"{one['key']} v{one['version']}: {one['before']} -> {one['after']}")


def attestation(client: Client, outcome: Answer, exit_code: int) -> tuple[str, list[Answer]]:
    """We started the command and saw its exit code, so we attest it; a credential without that scope leaves it a claim."""
    try:
        answer = client.attest(outcome["ref"], exit_code=exit_code, session=client.session)
    except HerdbookError as problem:
        if problem.code != "forbidden" and not problem.away:
            raise
        why = "unavailable" if problem.away else "this credential may not attest"
        return f"claimed, not attested ({why})", []
    return "attested by its exit code", list(answer.get("standing") or [])


@contextmanager
def telling(invocation: Invocation) -> Iterator[None]:
    """Whatever goes wrong while telling is said, and never takes the place of the command's own exit code."""
    try:
        yield
    except (HerdbookError, Refusal, OSError) as problem:
        invocation.terminal.remark(f"not recorded: {problem}")


def shown(argv: Sequence[str]) -> str:
    return redacted(shlex.join(argv), os.environ).text[:2_000]


def action_of(argv: Sequence[str]) -> Answer:
    return {"command": shown(argv), "directory": os.path.basename(os.getcwd())}


def result_of(run: Finished) -> Answer:
    found: Answer = {"exit_code": run.ended.exit_code, "seconds": round(run.ended.seconds, 3), "output_tail": run.tail}
    return found | ({"stopped_by": run.ended.stopped_by} if run.ended.stopped_by else {})


def clean_tail(ended: Ended) -> str:
    return redacted(plain(ended.tail), os.environ).text[-TAIL_CHARS_MAX:]


# --- learning ---


def learn(invocation: Invocation, argv: Sequence[str], env: Mapping[str, str], ended: Ended, tail: str) -> list[Answer]:
    """What this run shows beside the failed ones before it; a failed run is kept for the next to be compared with."""
    entity: str = invocation.args.entity
    try:
        attempts = Attempts(invocation.settings.home / "attempts.json")
        if ended.stopped_by:
            return []
        if ended.exit_code != 0:
            attempts.failed(entity, argv, Attempt(attempts.digests(env), symptoms(tail), ended.exit_code))
            return []
        before = attempts.before(entity, argv)
        found = lessons(Attempt(attempts.digests(env), (), 0), before)
        attempts.passed(entity, argv)
    except OSError as problem:
        invocation.terminal.remark(f"nothing can be learned: {problem}")
        return []
    if before and not found:
        invocation.terminal.remark("it passed after failing, but no single variable made the difference: nothing was learned")
    return [entry for lesson in found if (entry := proposal(invocation, argv, env, lesson))]


def proposal(invocation: Invocation, argv: Sequence[str], env: Mapping[str, str], lesson: Any) -> Answer | None:
    """A lesson as an entry; a credential, or a variable that decides what programs run, is named and not written down."""
    value = env[lesson.name]
    entry = {"entity": invocation.args.entity, "value": {"env": {lesson.name: value}}, "key": f"env.{lesson.name}"}
    probe = {"entries": [{**entry, "acting": True, "worked": None}]}
    reasons = [one["reason"] for one in environment(probe)[1]]
    if looks_secret(lesson.name, value) or reasons:
        reason = reasons[0] if reasons else "it looks like a credential"
        invocation.terminal.remark(f"{lesson.name} made the difference, but is not written down: {reason}")
        return None
    failed = f"`{shown(argv)[:200]}` failed (exit {lesson.exit_code}) without it: {lesson.put_right}"
    return {**entry, "why": f"{failed}. It is gone with {lesson.name}={value[:200]}", "applies_when": lesson.put_right}
