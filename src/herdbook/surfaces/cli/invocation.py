"""One run of one command: its arguments, the settings, the record behind it, and the run (session) it belongs to.

The record is opened only when a command first asks it something, so that help, mistakes and versions stay quick.
"""

from __future__ import annotations

import argparse
import getpass
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from herdbook.base.settings import Settings, absolute, address
from herdbook.client import ID_FIELD, new_id
from herdbook.surfaces.cli.problems import Usage, code_of, refusal
from herdbook.surfaces.cli.terminal import Answer, Terminal, line


class Door(Protocol):
    """What answers verbs: the record in this process, or a server."""

    def call(self, verb: str, fields: dict[str, Any]) -> dict[str, Any]: ...

    def close(self) -> None: ...


Opener = Callable[[Settings], Door]


@dataclass(frozen=True, slots=True)
class Run:
    """The session a command belongs to."""

    session: str
    fresh: bool  # made for this one command: its name must be said, or its outcome can never be told


class Invocation:
    """What a command is handed."""

    def __init__(self, args: argparse.Namespace, settings: Settings, terminal: Terminal, opener: Opener) -> None:
        self.args = args
        self.settings = with_flags(settings, args)
        self.terminal = terminal
        self.opener = opener
        self.door: Door | None = None

    @property
    def remote(self) -> bool:
        return self.settings.url is not None

    @property
    def agent(self) -> str:
        return self.settings.agent or login_name()

    def ask(self, verb: str, always: Mapping[str, Any] | None = None, /, **optional: Any) -> Answer:
        """Ask or tell the record. What is in `always` is sent as it is; an optional field that is None is not sent.

        What is told gets its id here, before the first try, so that a lost answer can be asked for again.
        """
        fields = {**(always or {}), **{name: value for name, value in optional.items() if value is not None}}
        if verb in ID_FIELD:
            fields.setdefault(ID_FIELD[verb], new_id("o" if verb == "commit_outcome" else "r"))
        return self.opened().call(verb, fields)

    def opened(self, *, announce: bool = True) -> Door:
        """The record, opened at the first question. That this started a new one is said: a mistyped path must not look empty."""
        if self.door is None:
            started = self.record_is_missing()
            self.door = self.opener(self.settings)
            if started and announce:
                self.announce_new_record()
        return self.door

    def record_is_missing(self) -> bool:
        return not self.remote and not self.settings.record.exists()

    def announce_new_record(self) -> None:
        self.terminal.remark(f"there was no record at {shown_path(self.settings.record)}: a new, empty one was started")

    def close(self) -> None:
        if self.door is not None:
            self.door.close()

    def show(self, answer: object, lines: Iterable[str]) -> int:
        """Print the answer and be done."""
        self.terminal.show(answer, lines)
        return 0

    def run(self, *, entity: str | None = None, task: str | None = None) -> Run | None:
        """The session this belongs to, started if need be; None with --no-session."""
        if self.args.no_session:
            return None
        named = self.settings.session
        try:
            answer = self.ask("start_session", agent=self.agent, session=named, entity=entity, task=task)
        except Exception as problem:  # because the two transports have two error classes; all but a run of another agent go on
            if named is None or self.settings.agent is not None or not is_conflict(problem):
                raise
            # Nobody said who is asking, so the run keeps the agent it began with; whether it is the caller's, the verb will say.
            return Run(named, fresh=False)
        if named and not answer.get("existed", True):
            self.terminal.remark(f"the run {named} starts here")
        return Run(str(answer["session"]), fresh=named is None)

    def named_session(self) -> str:
        """The session an outcome or action belongs to: it must be said, since a fresh one would have read nothing."""
        if self.settings.session is None or self.args.no_session:
            raise Usage("say which run this belongs to: --session NAME, or HERDBOOK_SESSION; brief and read print its name")
        return self.settings.session


def with_flags(settings: Settings, args: argparse.Namespace) -> Settings:
    """The settings after the command's own flags, which win. A flag that names a place wins over the other place's variable."""
    if args.url is not None and args.record is not None:
        raise Usage("--url and --record are two places: give one")
    chosen: dict[str, Any] = {name: getattr(args, name) for name in ("agent", "session") if getattr(args, name) is not None}
    try:
        if args.url is not None:
            chosen["url"] = address(args.url)
        if args.record is not None:
            chosen |= {"record": absolute(args.record), "url": None}
    except ValueError as problem:
        raise Usage(f"{'--url' if args.url is not None else '--record'} {problem}") from problem
    return replace(settings, **chosen, sources={**settings.sources, **dict.fromkeys(chosen, "command line")})


def is_conflict(problem: Exception) -> bool:
    told = refusal(problem)
    return told is not None and code_of(told) == "request_conflict"


def login_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no variable names the user and the user has no account, as in many containers
        return "cli"


def footer(run: Run | None) -> list[str]:
    """The name of a run made for this command, with the next step; nothing for a run the person named."""
    if run is None or not run.fresh:
        return []
    session = shlex.quote(line(run.session))
    return ["", f'this was run {session}. How did it go?  herdbook outcome success --session {session} --task-input "…"']


def place(settings: Settings) -> str:
    """Where the record is, for people."""
    return settings.url or shown_path(settings.record)


def shown_path(path: Path) -> str:
    """A path with the home directory as `~`."""
    try:
        return "~/" + str(path.relative_to(Path.home()))
    except (ValueError, RuntimeError):
        return str(path)
