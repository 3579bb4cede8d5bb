"""One run, reconstructed: what it was asked, what it read and in which version, what it did, and what happened next."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from herdbook.surfaces.cli.entries import clock, counted, decimal, indented, move_rows, name, verdict, when, where
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.terminal import Answer, Terminal, clipped, compact, line, prose, table

EXAMPLES = """\
example:
  $ herdbook write acme/ci tz '"UTC"' --why "the date tests compare against UTC midnight" --session monday
  $ herdbook brief acme/ci --session tuesday
  $ herdbook outcome success --session tuesday --ref ci-4711 --used tz --task-input "make the tests pass"
  $ herdbook trace ci-4711             # by the ref of an outcome
  $ herdbook trace tuesday --json      # by the name of a run"""

TASK_LINES_MAX = 20
SEALS = {
    "verified": "verified",
    "none": "none yet, since no outcome has been told",
    "unverified": "unverified, since the seal key is away; herdbook doctor says where it should be",
}


WITH_ENTRIES = ("reads", "attempts", "writes", "outcomes")


class Event(NamedTuple):
    """Something that happened in the run."""

    at: str
    title: str
    details: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Reconstruct a run in order: task, reads by version, actions, writes, outcome, and who vouched for it."
    parser.add_argument("ref", metavar="REF", help="the ref of an outcome, or the name of a session")


def run(invocation: Invocation) -> int:
    answer = invocation.ask("trace", ref=invocation.args.ref)
    return invocation.show(answer, lines(answer, invocation.terminal))


def lines(answer: Answer, terminal: Terminal) -> Iterator[str]:
    yield from heading(answer, terminal)
    yield ""
    for event in sorted(events(short(answer), terminal), key=lambda each: each.at):
        yield f"{terminal.paint(clock(event.at), 'dim')}  {event.title}"
        yield from (f"              {each}" for each in event.details)
    yield ""
    yield from ending(answer, terminal)


def short(answer: Answer) -> Answer:
    """The answer with the run's own path left out of every line; its heading names it once."""
    own = answer.get("entity") or ""
    return {**answer, **{kind: [local(each, own) for each in answer.get(kind) or []] for kind in WITH_ENTRIES}}


def local(each: Any, own: str) -> Any:
    """An entry named without its path where that is the run's own, and so for the entries within a step."""
    if not isinstance(each, dict):
        return each
    inner = {name: [local(entry, own) for entry in each[name] or []] for name in ("moved", "used") if name in each}
    return {**each, **inner, "entity": "" if each.get("entity") == own else each.get("entity")}


def heading(answer: Answer, terminal: Terminal) -> Iterator[str]:
    """Who ran, where, when, and what for."""
    yield terminal.paint(f"run {line(answer.get('session', ''))}", "bold")
    isolation = line(answer.get("isolation") or "isolation unknown")
    place = f"in box {line(answer['box'])} ({isolation})" if answer.get("box") else "in no box"
    yield f"  {line(answer.get('agent') or '?')} as {line(answer.get('identity') or '?')}, {place}"
    ended = when(answer["ended_at"]) if answer.get("ended_at") else "not ended"
    yield f"  {when(answer.get('started_at'))} – {ended}" + (f", about {line(answer['entity'])}" if answer.get("entity") else "")
    task = prose(task_of(answer)).strip().split("\n")
    yield f"  task: {task[0] or 'none was given'}"
    yield from (f"        {each}" for each in task[1:TASK_LINES_MAX])
    if len(task) > TASK_LINES_MAX:
        yield f"        … {counted(len(task) - TASK_LINES_MAX, 'more line')}, see --json"


def task_of(answer: Answer) -> str:
    """What the run was for: said when it began, or else with one of its outcomes."""
    told = [answer.get("task"), *(each.get("task_input") for each in answer.get("outcomes") or [])]
    return next((str(each) for each in told if each), "")


def ending(answer: Answer, terminal: Terminal) -> Iterator[str]:
    missing = [line(each) for each in answer.get("missing") or []]
    lacking = f", missing {', '.join(missing)}" if missing else ""
    yield "trainable: yes" if answer.get("trainable") else f"trainable: no{lacking}"
    seal = line(answer.get("seal") or "unverified")
    yield f"seal: {SEALS[seal]}" if seal in SEALS else terminal.paint(f"seal: {seal}; run herdbook doctor", "red")


def events(answer: Answer, terminal: Terminal) -> Iterator[Event]:
    yield from reads(answer.get("reads") or [])
    for each in answer.get("contexts") or []:
        yield Event(at(each), f"given   {line(each.get('name', ''))}", [clipped(each.get("text", ""))])
    for each in answer.get("actions") or []:
        title = f"did     {line(each.get('tool', ''))}{went(each.get('ok'), terminal)}"
        yield Event(at(each), title, shown(each, "args", "result"))
    for each in answer.get("attempts") or []:
        result = line(each.get("result", ""))
        details = [f"used {used(each['used'])}"] if each.get("used") else []
        yield Event(at(each), f"tried   {verdict(result, terminal)}", [*details, *said(each, "note")])
    for each in answer.get("writes") or []:
        details = [compact(each["value"])] if "value" in each else []
        yield Event(str(each.get("written_at") or ""), f"wrote   {name(each)}", [*details, *said(each, "why")])
    for each in answer.get("outcomes") or []:
        yield from outcome(each, terminal)


def reads(given: list[Answer]) -> Iterator[Event]:
    """What was shown together is one event; each line has the rank and the standing it had then."""
    together = itemgetter_or("at", "how")
    for (moment, how), group in groupby(sorted(given, key=together), key=together):
        rows = [read_row(each) for each in sorted(group, key=lambda each: each.get("rank") or 0)]
        count = "1 entry" if len(rows) == 1 else f"{len(rows)} entries"
        yield Event(moment, f"read    {count} by {line(how)}", table(rows, indent=""))


def itemgetter_or(*names: str) -> Any:
    return lambda each: tuple(str(each.get(field) or "") for field in names)


def read_row(each: Answer) -> list[str]:
    rank = each.get("rank")
    then = line(each.get("standing") or each.get("standing_then") or "")
    confidence = each.get("confidence")
    sure = f"{then} {decimal(confidence)}" if confidence is not None else then
    held = "" if each.get("served", True) else f"held back (probability {decimal(each.get('probability'))})"
    return [f"#{rank}" if rank is not None else "", *where(each), sure, held]


def outcome(each: Answer, terminal: Terminal) -> Iterator[Event]:
    """What was said, who vouched for it, and what it was revised to, each at its own time."""
    ref = line(each.get("ref", ""))
    title = f"ended   {verdict(line(each.get('type', '')), terminal)}  {ref}"
    yield Event(at(each), title, table(move_rows(each.get("moved") or []), indent=""))
    for vouched in each.get("attestations") or []:
        code = f", exit code {vouched['exit_code']}" if vouched.get("exit_code") is not None else ""
        result = verdict(line(vouched.get("result", "")), terminal)
        title = f"vouched {result}  {ref} by {line(vouched.get('by') or '?')}{code}"
        yield Event(at(vouched), title, said(vouched, "note"))
    for revised in each.get("revisions") or []:
        title = f"revised {ref} to {verdict(line(revised.get('type', '')), terminal)}"
        yield Event(at(revised), title, said(revised, "why"))


def at(each: Answer) -> str:
    return str(each.get("at") or "")


def shown(each: Answer, *fields: str) -> list[str]:
    return [f"{field}: {compact(each[field])}" for field in fields if each.get(field) is not None]


def said(each: Answer, field: str) -> list[str]:
    return [f"{field}: {indented(each[field])}"] if each.get(field) else []


def went(ok: object, terminal: Terminal) -> str:
    return "" if ok is None else f"  {terminal.paint('ok', 'green') if ok else terminal.paint('failed', 'red')}"


def used(entries: list[Any]) -> str:
    return ", ".join(name(each) if isinstance(each, dict) else line(each) for each in entries)
