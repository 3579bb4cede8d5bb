"""The `herdbook` command, and the one place where the rooms are put together.

A command's module is imported when it is chosen, so that help and versions cost nothing. Whatever goes wrong ends as a sentence,
or with --json as an object, and an exit code: no traceback reaches a person who did not ask for it.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from herdbook.base import settings
from herdbook.base.version import VERSION
from herdbook.surfaces.cli import parser, problems
from herdbook.surfaces.cli.invocation import Door, Invocation
from herdbook.surfaces.cli.terminal import Terminal

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class Command:
    """A command: where it lives, what it is for, and which verbs it speaks."""

    name: str
    module: str
    summary: str
    group: str
    verbs: tuple[str, ...] = ()
    shared: tuple[str, ...] = parser.SHARED  # which of the options every command knows make sense here
    examples: str = ""  # for its help, where its module has none


START, LOOP, BACK, RUN = "start here", "the loop", "looking back", "running it"
LOCAL: Final = ("json", "record")
EXPORTING: Final = ("runs", "artefact_keep", "artefact_runs")
GATEWAY_SHARED: Final = ("json", "url", "record")

# Commands that may start the record they are told to use. The others ask, and asking makes no record where somebody named one.
STARTERS: Final = frozenset(
    {"init", "import", "spans", "watch", "run", "mcp", "write", "dead-end", "demo", "fanout", "serve", "key", "tenant"}
)

SERVE_EXAMPLES: Final = """\
example:
  $ herdbook serve                                  # on this machine only, for everybody who can reach it
  $ herdbook serve --host 0.0.0.0 --key-file key    # for other machines, who must send the key
  $ HERDBOOK_URL=http://127.0.0.1:8765 herdbook brief acme/ci

It stops on ctrl-C or SIGTERM, after finishing what it has accepted. With --json its one line is {"url": ...}."""

COMMANDS: Final = {
    command.name: command
    for command in (
        Command(
            "demo", "herdbook.surfaces.demo.command", "two boxes, one record: see the second beat the first", START, (), LOCAL
        ),
        Command("init", "herdbook.surfaces.cli.commands.init", "start a record on this machine", START),
        Command(
            "run",
            "herdbook.surfaces.cli.commands.run",
            "a command inside the loop: briefed, and told from its exit code",
            START,
            ("brief", "record_action", "write", "commit_outcome", "attest"),
            ("url", "record", "agent", "session"),
        ),
        Command(
            "brief",
            "herdbook.surfaces.cli.commands.brief",
            "what is known about a path, for a task",
            LOOP,
            ("brief", "start_session"),
        ),
        Command("search", "herdbook.surfaces.cli.commands.search", "entries whose text matches", LOOP, ("search",)),
        Command("read", "herdbook.surfaces.cli.commands.read", "one entry in full", LOOP, ("read",)),
        Command("write", "herdbook.surfaces.cli.commands.write", "the next version of an entry, with its why", LOOP, ("write",)),
        Command("dead-end", "herdbook.surfaces.cli.commands.dead_end", "what was tried and did not work", LOOP, ("write",)),
        Command("action", "herdbook.surfaces.cli.commands.action", "record one tool call of a run", LOOP, ("record_action",)),
        Command("attempt", "herdbook.surfaces.cli.commands.attempt", "how one try within a run went", LOOP, ("attempt",)),
        Command(
            "outcome",
            "herdbook.surfaces.cli.commands.outcome",
            "how a run ended: moves trust",
            LOOP,
            ("commit_outcome", "end_session"),
        ),
        Command(
            "attest", "herdbook.surfaces.cli.commands.attest", "vouch for an outcome from outside the box", LOOP, ("attest",)
        ),
        Command(
            "revise",
            "herdbook.surfaces.cli.commands.revise",
            "an outcome was something else after all",
            LOOP,
            ("revise_outcome",),
        ),
        Command(
            "note",
            "herdbook.surfaces.cli.commands.note",
            "a person's note beside an entry",
            LOOP,
            ("write", "start_session", "read", "end_session"),
        ),
        Command("ls", "herdbook.surfaces.cli.commands.ls", "paths and the entries at them", BACK, ("list",)),
        Command("history", "herdbook.surfaces.cli.commands.history", "every version of an entry", BACK, ("history",)),
        Command("diff", "herdbook.surfaces.cli.commands.diff", "what changed between two versions", BACK, ("diff",)),
        Command(
            "contradictions",
            "herdbook.surfaces.cli.commands.contradictions",
            "entries that set one thing differently",
            BACK,
            ("contradictions",),
        ),
        Command("why", "herdbook.surfaces.cli.commands.why", "every move of an entry's trust", BACK, ("why",)),
        Command("runs", "herdbook.surfaces.cli.commands.runs", "how runs ended, the newest first", BACK, ("outcomes",)),
        Command("trace", "herdbook.surfaces.cli.commands.trace", "a run, reconstructed", BACK, ("trace",)),
        Command("watch", "herdbook.surfaces.cli.commands.watch", "watch deploys and alerts from fresh boxes", RUN),
        Command(
            "tune",
            "herdbook.surfaces.cli.commands.tune",
            "how ranking, credit and experiments work at a path",
            RUN,
            ("tune", "tuning"),
        ),
        Command(
            "retrain", "herdbook.surfaces.cli.commands.retrain", "fit a ranker to what came of what was shown", RUN, ("retrain",)
        ),
        Command(
            "ranker", "herdbook.surfaces.cli.commands.ranker", "the rankers there are", RUN, ("rankers", "promote", "rollback")
        ),
        Command("calibrate", "herdbook.surfaces.cli.commands.calibrate", "a path's own numbers", RUN, ("calibrate", "rollback")),
        Command(
            "models",
            "herdbook.surfaces.cli.commands.models",
            "models of your own: which answers under which name, and what it did",
            RUN,
            ("model_route", "model_promote", "model_rollback", "model_routes", "artefact_list", "artefact_keep", "artefact_runs"),
        ),
        Command("prove", "herdbook.surfaces.cli.commands.prove", "what the record is worth, with intervals", BACK, ("prove",)),
        Command(
            "import", "herdbook.surfaces.cli.commands.import_", "notes kept elsewhere, as unproven entries", BACK, ("write",)
        ),
        Command(
            "erase",
            "herdbook.surfaces.cli.commands.erase",
            "whom the record should tell nobody of",
            BACK,
            ("erase_preview", "erase", "erasures"),
        ),
        Command(
            "artefacts",
            "herdbook.surfaces.cli.commands.artefacts",
            "the datasets and models there are",
            BACK,
            ("artefact_list", "artefact_set"),
        ),
        Command(
            "export",
            "herdbook.surfaces.cli.commands.export",
            "a training set out of the runs",
            BACK,
            EXPORTING,
        ),
        Command("bench", "herdbook.surfaces.cli.commands.bench", "the benches of the repository", BACK, (), ()),
        Command("spans", "herdbook.surfaces.cli.commands.spans", "OpenTelemetry spans, as actions", BACK, ("record_spans",)),
        Command("connect", "herdbook.surfaces.hooks.connect", "put an agent, or git, inside the loop", START, (), ("json",)),
        Command("hook", "herdbook.surfaces.hooks.command", "what an agent's hooks run", RUN, (), ("url", "record", "agent")),
        Command(
            "mcp",
            "herdbook.surfaces.mcp.command",
            "the verbs as tools for an agent that speaks MCP",
            RUN,
            (),
            ("url", "record", "agent", "session"),
        ),
        Command("db", "herdbook.surfaces.cli.commands.db", "make a PostgreSQL record, and bring it up to date", RUN, (), LOCAL),
        Command("backup", "herdbook.surfaces.cli.commands.backup", "copy the whole record into a file", RUN, (), LOCAL),
        Command("restore", "herdbook.surfaces.cli.commands.restore", "put such a copy back", RUN, (), LOCAL),
        Command("embed", "herdbook.surfaces.cli.commands.embed", "make entries findable by meaning", RUN, ("embed",)),
        Command("serve", "herdbook.surfaces.rest.command", "answer over HTTP", RUN, (), LOCAL, SERVE_EXAMPLES),
        Command(
            "box",
            "herdbook.surfaces.cli.commands.box",
            "the boxes there are; clear away dead ones",
            RUN,
            ("box_list", "box_close"),
        ),
        Command(
            "gateway",
            "herdbook.surfaces.cli.commands.gateway",
            "keep credentials out of boxes",
            RUN,
            (),
            GATEWAY_SHARED,
        ),
        Command(
            "key",
            "herdbook.surfaces.cli.commands.key",
            "access keys: make, list, end, replace",
            RUN,
            ("key_create", "key_list", "key_revoke", "key_rotate"),
        ),
        Command("audit", "herdbook.surfaces.cli.commands.audit", "who did what, and what came of it", BACK, ("audit",)),
        Command(
            "tenant",
            "herdbook.surfaces.cli.commands.tenant",
            "tenants of a server, and their first keys",
            RUN,
            ("tenant_create", "tenant_list", "tenant_limit", "tenant_admit"),
        ),
        Command("fanout", "herdbook.surfaces.cli.commands.fanout", "many boxes at one task, dead ends shared", RUN, (), LOCAL),
        Command("status", "herdbook.surfaces.cli.commands.status", "counts, seals and settings of the record", RUN, ("status",)),
        Command("doctor", "herdbook.surfaces.cli.commands.doctor", "is all well, and if not, what to do", RUN, ("status",)),
    )
}

# Verbs no command speaks, each with the reason.
WITHOUT_COMMAND: Final = {
    "record_context": "what an agent was given is recorded by the program that gave it, through the client",
    "box_open": "a box's row is written by the host that is about to create the box, never by hand",
    "changes": "who follows the record is a program: it asks again and again, or follows /v1/stream",
    "box_pass": "a pass is made by the host that put the box there, and given to that box alone",
    "box_check": "a pass is checked by the gateway it is shown to",
    "box_promote": "a box wins by what its host saw: fanout says so",
    "box_runs": "fanout asks for them, to tell how each ended",
    "box_beat": "a lease is kept by the process that holds it",
    "exposures": "whole runs with every number the ranking saw: read by programs that learn from them, through the client",
    "export_training_data": "`herdbook export training` writes the whole set; this is a look at it, for agents and programs",
    "model_call": "the server keeps each call that its models answer",
    "job_put": "a job is put by whoever has verified what it is about: `herdbook watch serve`",
    "job_take": "a job is taken by the worker that is about to do it",
    "job_beat": "a job's lease is kept by the worker that holds it",
    "job_done": "a job is ended by the worker that did it",
    "job_reap": "a worker does it whenever it looks for a job",
    "job_list": "`herdbook watch status` shows jobs with what became of them",
}

THE_LOOP: Final = """\
the loop, in five lines:
  herdbook write acme/ci tz '{"env": {"TZ": "UTC"}}' --why "the date tests compare against UTC midnight" --session monday
  herdbook brief acme/ci --task "make the tests pass" --session tuesday
  herdbook attempt failure --session tuesday --used tz --note "3 of 4 pass"
  herdbook outcome success --session tuesday --used tz --task-input "make the tests pass"
  herdbook why acme/ci tz

One run writes down what it found. The next one is told, best first; says of each try how it went, so that what misled is
charged; and says how it ended, which moves the trust of what it used. The last line shows every such move."""


def main(argv: list[str] | None = None) -> int:
    """Run one command line; the exit code is the answer to whoever scripted it."""
    arguments = sys.argv[1:] if argv is None else argv
    survive_any_text()
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments  # what is behind it is another program's
    terminal = Terminal(as_json="--json" in ours)
    try:
        code = dispatch(arguments, terminal)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return problems.INTERRUPTED
    except SystemExit as leaving:  # argparse, after --help
        return int(leaving.code or 0)
    except BrokenPipeError:
        hush()
        return problems.PIPE_CLOSED
    except Exception as problem:  # because the person at the terminal is owed a sentence, whatever went wrong
        return ended(problem, terminal)
    return code


def dispatch(arguments: list[str], terminal: Terminal) -> int:
    before, name, behind = parser.split(arguments)
    if name is None:
        return without_command(before, terminal)
    if name == "help":
        before, name, behind = parser.split([*behind, "--help"])
        return dispatch([name, *before, *behind], terminal) if name else without_command([], terminal)
    if name not in COMMANDS:
        raise problems.Usage(f"there is no command {name[:40]!r}{suggestion(name)} (see herdbook --help)")
    command = COMMANDS[name]
    module = importlib.import_module(command.module)
    reader = parser.command_parser(name, summary=command.summary)
    module.add_arguments(reader)
    parser.finish(reader, shared=command.shared, examples=getattr(module, "EXAMPLES", command.examples))
    args = parser.read(reader, [*before, *behind])
    invocation = Invocation(args, settings.load(), terminal, open_door, starts=name in STARTERS)
    try:
        return WIRED[name](invocation) if name in WIRED else cast(int, module.run(invocation))
    finally:
        invocation.close()


def open_door(chosen: settings.Settings) -> Door:
    """The record: in this process, or behind the server the settings name."""
    if chosen.url:
        # A transport has no spool: a person at a terminal is told of an outage, and decides.
        from herdbook.client import HttpTransport

        return HttpTransport(chosen.url, key_for(chosen))
    from herdbook.service.opening import open_local

    return open_local(chosen.record, chosen, channel="cli")


def serve(invocation: Invocation) -> int:
    """The record over HTTP: the service, handed to the surface that speaks it."""
    from herdbook.service.learning.embedding import warm
    from herdbook.service.opening import local_identity, open_service
    from herdbook.surfaces.mcp.http import McpOverHttp
    from herdbook.surfaces.rest import command
    from herdbook.surfaces.web.app import Web

    started = invocation.record_is_missing()
    service = open_service(invocation.settings)
    try:
        if started:
            invocation.announce_new_record()
        warm(service)
        chosen = invocation.settings
        return command.run(
            invocation.args,
            service,
            key=chosen.key,
            identity=local_identity(),
            mcp=McpOverHttp,
            web=Web,
            upstreams=chosen.upstreams,
        )
    finally:
        service.close()


def mcp(invocation: Invocation) -> int:
    """The tools over standard input and output, handed whatever answers verbs."""
    from herdbook.surfaces.mcp import command

    command.needed()
    invocation.opener = open_for_agent
    door = invocation.opened(begins_a_run=True)
    chosen = invocation.settings
    return command.run(invocation.args, door, agent=chosen.agent, session=chosen.session, home=chosen.home)


def open_for_agent(chosen: settings.Settings) -> Door:
    """The record for an agent on this machine: what it writes is an agent's, and it vouches for nothing."""
    if chosen.url:
        return open_door(chosen)
    from herdbook.service.callers import agent_caller
    from herdbook.service.local import LocalTransport
    from herdbook.service.opening import local_identity, open_service

    return LocalTransport(open_service(chosen), agent_caller(local_identity()))


def demo(invocation: Invocation) -> int:
    """The demo, handed the record and a way to put each box on it."""
    from herdbook.surfaces.demo import command
    from herdbook.wiring import BoxWiring

    invocation.refuse_server()
    wiring = BoxWiring(invocation.settings)
    try:
        return command.run(wiring, invocation.args)
    finally:
        wiring.close()


def watch(invocation: Invocation) -> int:
    """The watcher; its worker is handed the record and a way to put each box on it."""
    from herdbook.surfaces.cli import watching
    from herdbook.surfaces.cli.commands import watch as command

    if invocation.args.act not in ("work", "execute"):
        return command.run(invocation)
    invocation.refuse_server()
    from herdbook.wiring import BoxWiring

    wiring = BoxWiring(invocation.settings)
    try:
        return watching.work(invocation, wiring)
    finally:
        wiring.close()


def fanout(invocation: Invocation) -> int:
    """Attempts in boxes, handed the record and a way to put each box on it."""
    from herdbook.surfaces.cli.commands import fanout as command
    from herdbook.wiring import BoxWiring

    invocation.refuse_server()
    wiring = BoxWiring(invocation.settings)
    try:
        return command.run(invocation, wiring)
    finally:
        wiring.close()


# Commands of other surfaces, which are handed what they need of one another here.
WIRED: Final[dict[str, Callable[[Invocation], int]]] = {
    "serve": serve,
    "mcp": mcp,
    "watch": watch,
    "demo": demo,
    "fanout": fanout,
}


def key_for(chosen: settings.Settings) -> str | None:
    """A key kept in settings.toml belongs to the server named there, and goes to no other."""
    kept = chosen.sources.get("key") == settings.FILE_NAME
    return None if kept and chosen.sources.get("url") != settings.FILE_NAME else chosen.key


def without_command(options: list[str], terminal: Terminal) -> int:
    """`herdbook` alone, --help and --version."""
    unknown = [each for each in options if each not in ("-h", "--help", "--version", "--json")]
    if unknown:
        raise problems.Usage(f"{unknown[0][:40]!r} needs a command (see herdbook --help)")
    if "--version" in options:
        found = versions()
        terminal.show(
            found,
            [f"herdbook {found['herdbook']} (schema {found['schema']}, Python {found['python']}, SQLite {found['sqlite']})"],
        )
    else:
        terminal.show({"commands": {name: command.summary for name, command in COMMANDS.items()}}, overview())
    return problems.OK


def versions() -> dict[str, Any]:
    from herdbook.record.store import sqlite

    python = ".".join(map(str, sys.version_info[:3]))
    return {"herdbook": VERSION, "schema": sqlite.SCHEMA, "python": python, "sqlite": sqlite_version()}


def sqlite_version() -> str:
    """Asked of the library itself; nothing but the store may speak to a database."""
    return str(importlib.import_module("sqlite3").sqlite_version)


def overview() -> list[str]:
    lines = [
        "herdbook: the record that outlives disposable agent environments",
        "",
        "usage: herdbook COMMAND [options]",
        "",
        THE_LOOP,
    ]
    for group in (START, LOOP, BACK, RUN):
        lines += ["", f"{group}:"]
        lines += [f"  {each.name:<15}{each.summary}" for each in COMMANDS.values() if each.group == group]
    lines += ["", "herdbook COMMAND --help shows its options and an example; --json prints one JSON value; herdbook --version."]
    lines += ["", "exit codes:", *(f"  {code:<4}{meaning}" for code, meaning in problems.EXIT_CODES.items())]
    return lines


def suggestion(name: str) -> str:
    from herdbook.surfaces.cli.entries import nearest

    similar = nearest(name, list(COMMANDS), count=1)
    return f": did you mean {similar[0]}?" if similar else ""


def ended(problem: Exception, terminal: Terminal) -> int:
    """What is said about a failure, foreseen or not."""
    told = problems.refusal(problem)
    try:
        if told is not None:
            return problems.tell(told, terminal)
        return problems.tell_unforeseen(problem, terminal)
    except BrokenPipeError:
        hush()
        return problems.PIPE_CLOSED
    finally:
        if os.environ.get("HERDBOOK_DEBUG", "") not in ("", "0"):
            traceback.print_exception(problem)


def survive_any_text() -> None:
    """A terminal that cannot show a character gets its escape instead of a failure."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def hush() -> None:
    """Nobody reads any more: what is still buffered goes nowhere, and the interpreter's own flush stays quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
