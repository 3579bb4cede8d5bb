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
from typing import Any, Final, Protocol

from herdbook.base.errors import NotFound
from herdbook.base.settings import Settings, address
from herdbook.base.settings import place as settings_place
from herdbook.client import ID_FIELD, new_id
from herdbook.surfaces.cli.problems import Usage, code_of, refusal
from herdbook.surfaces.cli.terminal import Answer, Terminal


class Door(Protocol):
    """What answers verbs: the record in this process, or a server."""

    def call(self, verb: str, fields: dict[str, Any]) -> dict[str, Any]: ...

    def close(self) -> None: ...


Opener = Callable[[Settings], Door]

# What belongs to a run that must be there: that nothing is found by such a verb says that the run is not.
OF_A_RUN: Final = frozenset({"record_action", "attempt", "commit_outcome", "end_session"})


@dataclass(frozen=True, slots=True)
class Run:
    """The session a command belongs to."""

    session: str
    fresh: bool  # made for this one command: its name must be said, or its outcome can never be told


class Invocation:
    """What a command is handed. `starts` says that this command may start the record it is told to use."""

    def __init__(
        self, args: argparse.Namespace, settings: Settings, terminal: Terminal, opener: Opener, *, starts: bool = True
    ) -> None:
        self.args = args
        self.settings = with_flags(settings, args)
        self.terminal = terminal
        self.opener = opener
        self.starts = starts
        self.door: Door | None = None
        self.closers: list[Callable[[], None]] = []

    @property
    def remote(self) -> bool:
        return self.settings.url is not None

    def refuse_server(self) -> None:
        """For a command that puts boxes on the record itself: with a server's address it would silently use another record."""
        if self.remote:
            raise Usage(
                "this command makes boxes and needs the record itself, not a server that has it: "
                "name the file or the PostgreSQL database with --record, or leave out HERDBOOK_URL (and `url` in settings.toml)"
            )

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
        door = self.opened(begins_a_run=verb == "start_session")
        try:
            return door.call(verb, fields)
        except Exception as problem:  # because the two transports have two error classes; all but a missing run go on
            told = refusal(problem) if verb in OF_A_RUN else None
            if told is None or code_of(told) != "not_found":
                raise
            raise no_such_run(fields["session"]) from problem

    def opened(self, *, announce: bool = True, begins_a_run: bool = False) -> Door:
        """The record, opened at the first question; that this started one is said.

        A record that is missing where somebody said it is was mistyped, so asking it is refused and makes none. Asking where
        nobody said anything is answered as by an empty record, of which nothing is left; a run needs one that stays.
        """
        if self.door is None:
            if not self.record_is_missing():
                self.door = self.opener(self.settings)
            elif not self.starts and self.record_is_named:
                raise NotFound(f"there is no record at {place(self.settings)}: {how_to_start(self.settings)}")
            elif self.starts or begins_a_run:
                self.door = self.opener(self.settings)
                if announce:
                    self.announce_new_record()
            else:
                self.door = self.opener(self.nowhere())
                self.terminal.remark(f"there is no record yet at {place(self.settings)}: herdbook init starts it")
        return self.door

    def nowhere(self) -> Settings:
        """The same settings over a folder that goes with this command."""
        import tempfile  # here, because it costs what a whole command may cost

        folder = tempfile.TemporaryDirectory(prefix="herdbook-")
        self.closers.append(folder.cleanup)
        return replace(self.settings, record=Path(folder.name) / "record.db", seal_key_file=Path(folder.name) / "seal.key")

    @property
    def leaves_nothing(self) -> bool:
        """Whether the record that was asked goes with this command."""
        return bool(self.closers)

    @property
    def record_is_named(self) -> bool:
        """Whether somebody said where the record is."""
        return self.settings.sources.get("record") is not None

    def record_is_missing(self) -> bool:
        """Whether its file is not there; whether a database has a record in it, only opening it tells."""
        file = self.settings.record_file
        return not self.remote and file is not None and not file.exists()

    def announce_new_record(self) -> None:
        self.terminal.remark(f"there was no record at {place(self.settings)}: a new, empty one was started")

    def close(self) -> None:
        if self.door is not None:
            self.door.close()
        while self.closers:
            self.closers.pop()()

    def show(self, answer: object, lines: Iterable[str]) -> int:
        """Print the answer and be done."""
        self.terminal.show(answer, lines)
        return 0

    def show_of_run(self, answer: object, lines: Iterable[str], run: Run | None) -> int:
        """Print the answer; beside it the name of a run that was made for this command, with the next step."""
        self.terminal.show(answer, lines)
        if run is not None and run.fresh:
            session = shlex.quote(run.session)
            how = f'herdbook outcome success --session {session} --task-input "…"'
            self.terminal.remark(f"this was run {session}. How did it go?  {how}")
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
            chosen |= {"record": settings_place(args.record), "url": None}
    except ValueError as problem:
        raise Usage(f"{'--url' if args.url is not None else '--record'} {problem}") from problem
    said = {name: "command line" for name, value in chosen.items() if value is not None}
    kept = {name: source for name, source in settings.sources.items() if name not in chosen}
    return replace(settings, **chosen, sources={**kept, **said})


def is_conflict(problem: Exception) -> bool:
    told = refusal(problem)
    return told is not None and code_of(told) == "request_conflict"


def login_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no variable names the user and the user has no account, as in many containers
        return "cli"


def no_such_run(session: str) -> NotFound:
    how = f"herdbook brief PATH --session {shlex.quote(session)}"
    return NotFound(f"there is no run {session!r} of yours: start it with: {how}")


def how_to_start(settings: Settings) -> str:
    """A sentence's end: the command that starts the record these settings name."""
    named = ["--record", str(settings.record)] if settings.sources.get("record") == "command line" else []
    return f"correct the path, or start one there with: {shlex.join(['herdbook', 'init', *named])}"


def place(settings: Settings) -> str:
    """Where the record is, for people."""
    return settings.url or (shown_path(settings.record_file) if settings.record_file else str(settings.record))


def shown_path(path: Path) -> str:
    """A path with the home directory as `~`."""
    try:
        inside = path.relative_to(Path.home())
        return f"~/{inside}" if inside.parts else "~"
    except (ValueError, RuntimeError):
        return str(path)


def next_page(command: str, args: argparse.Namespace, *, after: str) -> str:
    """The command for the next page, with what was said for this one."""
    said = {f"--{name}": getattr(args, name, None) for name in ("url", "record", "type", "limit")} | {"--after": after}
    options = [word for option, value in said.items() if value is not None for word in (option, str(value))]
    return shlex.join(["herdbook", command, *([args.entity] if args.entity else []), *options])
