"""What an agent's hooks run: `herdbook hook AGENT`, with the event on standard input.

It ends within its deadline whatever happens, with exit code 0, and prints only what the agent takes: a hook must never stand in
an agent's way. A record that is away is said to be away; beside that stands the last good briefing, said to be old.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Protocol

from herdbook.base import current_run
from herdbook.base.redaction import keepable, redacted
from herdbook.base.repository import entity_of
from herdbook.base.settings import Settings
from herdbook.client import Client
from herdbook.surfaces.hooks.events import READERS, Event, shown

PAYLOAD_BYTES_MAX: Final = 4 * 1024 * 1024
RESULT_CHARS_MAX: Final = 2_000
CACHED_DAYS_MAX: Final = 30
EXAMPLES: Final = """\
example:
  $ echo '{"hook_event_name": "SessionStart", "session_id": "s1", "cwd": "."}' | herdbook hook claude-code --entity acme/ci

herdbook connect AGENT writes such lines into the agent's own configuration."""


class Door(Protocol):
    def call(self, verb: str, fields: dict[str, Any]) -> dict[str, Any]: ...

    def close(self) -> None: ...


class Invoked(Protocol):
    """A command line, as it was read."""

    args: argparse.Namespace
    settings: Settings
    opener: Callable[[Settings], Door]


@dataclass(frozen=True, slots=True)
class Setup:
    """What a hook is handed: a way to the record, and where to keep what must outlive it."""

    open_door: Callable[[], Door]
    home: Path
    spool: Path | None
    agent: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "What an agent's hooks run: an event on standard input, a briefing on standard output where one is due."
    parser.add_argument(
        "of", metavar="AGENT", choices=[*READERS, "git"], help=f"whose event it is: {', '.join([*READERS, 'git'])}"
    )
    parser.add_argument("event", metavar="EVENT", nargs="?", help="the event's name, where the agent's payload does not say it")
    parser.add_argument("--entity", metavar="PATH", help="the path it is about (the repository's owner/name)")
    parser.add_argument("--tokens", metavar="N", type=int, default=1_500, help="the budget of a briefing (1500)")
    parser.add_argument("--deadline", metavar="SECONDS", type=float, default=2.0, help="how long an agent may be held up (2)")


def run(invocation: Invoked) -> int:
    chosen = invocation.settings
    spool = chosen.spool if chosen.url else None
    return answer(invocation.args, Setup(lambda: door_for(invocation), chosen.home, spool, chosen.agent))


def door_for(invocation: Invoked) -> Door:
    """The record for an agent on this machine: what it tells is an agent's, and vouches for nothing."""
    if invocation.settings.url:
        return invocation.opener(invocation.settings)
    from herdbook.service.callers import agent_caller
    from herdbook.service.local import LocalTransport
    from herdbook.service.opening import local_identity, open_service

    return LocalTransport(open_service(invocation.settings), agent_caller(local_identity(), channel="hook"))


def answer(args: argparse.Namespace, setup: Setup) -> int:
    """Do what the event asks for in a thread of its own, and leave in time, with whatever there is."""
    hook = Hook(args, setup)
    worker = threading.Thread(target=hook.work, daemon=True)
    worker.start()
    worker.join(args.deadline)
    output = hook.output if hook.done else hook.late()
    if hook.problem:
        sys.stderr.write(f"herdbook: {hook.problem}\n")
    if output:
        sys.stdout.write(output + "\n")
    sys.stdout.flush()
    sys.stderr.flush()
    if worker.is_alive():
        os._exit(0)  # a thread that hangs in the system's own calls would hold up the interpreter's end
    return 0


class Hook:
    """One event on its way."""

    def __init__(self, args: argparse.Namespace, setup: Setup) -> None:
        self.args, self.setup = args, setup
        self.event: Event | None = None
        self.output, self.problem, self.done = "", "", False

    def work(self) -> None:
        try:
            self.event = self.read()
            if self.event is not None:
                self.output = self.act(self.event)
        except Exception as problem:  # because no failure of ours may become the agent's
            self.problem = f"unavailable: {problem}"
            self.output = self.unavailable(str(problem))
        self.done = True

    def read(self) -> Event | None:
        if self.args.of == "git":
            return Event("tool", "", os.getcwd(), tool="git commit", args={"commit": self.args.event}, ok=True)
        data = sys.stdin.buffer.read(PAYLOAD_BYTES_MAX)
        try:
            payload = json.loads(data.decode("utf-8", "replace"))
        except ValueError:
            payload = None
        if not isinstance(payload, dict):
            self.problem = "this hook was given no event"
            return None
        named = {"event": self.args.event, **payload} if self.args.event else payload
        return READERS[self.args.of](named)

    @property
    def folder(self) -> str:
        return (self.event.folder if self.event else "") or os.getcwd()

    @property
    def entity(self) -> str:
        return self.args.entity or entity_of(self.folder)

    def act(self, event: Event) -> str:
        """Tell the record, and give back what the agent is to be shown."""
        home, folder = self.setup.home, self.folder
        known = current_run.current(home, folder)
        session = named_session(self.args.of, event.session) or str(known.get("session", ""))
        if not session:
            return ""  # a commit outside of any run
        known = {**(known if known.get("session") == session else {}), "session": session}
        known["task"] = event.task or known.get("task")
        if event.checks:  # what has to be known when the run ends: the last check of the work, and how it went
            known["check"] = [event.command[:500], event.ok]
        try:
            return self.told(event, session, known)
        finally:  # also while the record is away, so that the outcome can be told once it is back
            if event.kind == "end":
                current_run.forget(home, folder)
            else:
                current_run.remember(home, folder, known)

    def told(self, event: Event, session: str, known: dict[str, Any]) -> str:
        settling = event.kind in ("stop", "end")
        if event.kind == "prompt" or (settling and not known.get("begun")):
            return ""  # a task is kept for the outcome; a run that did nothing is none
        spool = str(self.setup.spool) if self.setup.spool else ""
        client = Client(
            self.setup.open_door(), agent=self.setup.agent or self.args.of, session=session, entity=self.entity,
            task=known.get("task"), spool=spool, timeout_seconds=self.args.deadline * 0.6,
        )  # fmt: skip
        client.begun = bool(known.get("begun"))
        if event.kind == "start":
            output = self.briefed(client)
            known["begun"] = True
            return output
        if event.kind == "tool":
            client.action(event.tool or "tool", clean(event.args), clean(event.result), ok=event.ok)
            known["begun"] = True
        if settling:
            self.settled(client, known)
        if event.kind == "end":
            client.end_session()
        return ""

    def briefed(self, client: Client) -> str:
        answer = client.brief(self.entity, task=client.task, tokens=self.args.tokens, deadline_seconds=self.args.deadline * 0.6)
        text = str(answer["markdown"]) if answer["known"] else f"herdbook: nothing is known about {self.entity} yet."
        current_run.save(self.cache(), {"at": time.time(), "text": text})
        return shown(self.args.of, text)

    def settled(self, client: Client, known: dict[str, Any]) -> None:
        """The outcome, from the last check that ran: not from what the agent thinks of itself. Without a check there is none."""
        if not known.get("check"):
            return
        command, went_well = known["check"]
        kind, ref = "success" if went_well else "failure", f"hook-{client.session}"[:128]
        if known.get("outcome") is None:
            by = redacted(f"{self.args.of}: {command}").text[:120]
            client.commit_outcome(kind, task_input=known.get("task"), ref=ref, verified_by=by)
        elif known["outcome"] != kind:
            client.revise_outcome(ref, kind, why=f"a later check: {redacted(command).text[:200]}")
        known["outcome"] = kind

    # --- when the record is away ---

    def late(self) -> str:
        self.problem = f"unavailable: no answer within {self.args.deadline:g} seconds"
        return self.unavailable(f"no answer within {self.args.deadline:g} seconds")

    def unavailable(self, why: str) -> str:
        """For an agent that waits for its briefing: that there is none, and the last one there was."""
        if self.event is None or self.event.kind != "start":
            return ""
        text = f"herdbook: the record is unavailable ({why}). This does not mean that nothing is known about {self.entity}."
        cached = current_run.load(self.cache())
        age_hours = (time.time() - float(cached.get("at", 0))) / 3600
        if cached and age_hours < CACHED_DAYS_MAX * 24:
            text += f"\nThe last briefing, {age_hours:.1f} hours old, so it may be out of date:\n\n{cached['text']}"
        return shown(self.args.of, text)

    def cache(self) -> Path:
        return self.setup.home / "briefings" / f"{sha256(self.entity.encode()).hexdigest()[:20]}.json"


def named_session(agent: str, session: str) -> str:
    """The run's name: the agent's own, made fit for a name."""
    fit = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_.") else "-" for letter in session)
    return f"{agent}-{fit}"[:120] if fit else ""


def clean(value: Any) -> Any:
    return keepable(value, chars_max=RESULT_CHARS_MAX, environ=os.environ).value
