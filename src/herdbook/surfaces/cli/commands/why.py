"""Every move of an entry's trust: the outcome behind it, whose run it was, and when that run had read the entry."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from herdbook.surfaces.cli.entries import counted, decimal, is_attempt, move, signed, standing, when
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.terminal import Answer, Terminal, clipped, line, table

EXAMPLES = """\
example:
  $ herdbook write acme/ci tz '"UTC"' --why "the date tests compare against UTC midnight" --session monday
  $ herdbook brief acme/ci --session tuesday
  $ herdbook outcome success --session tuesday --ref ci-4711 --used tz --task-input "make the tests pass"
  $ herdbook why acme/ci tz

Trust belongs to a claim: versions that say the same thing share it, and a changed value starts over."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Every move of trust of an entry, with the outcome that moved it and who had read it."
    parser.add_argument("entity", metavar="ENTITY", help="a path such as acme/checkout/tests")
    parser.add_argument("key", metavar="KEY", help="the entry's key")


def run(invocation: Invocation) -> int:
    answer = invocation.ask("why", entity=invocation.args.entity, key=invocation.args.key)
    return invocation.show(answer, lines(answer, invocation.terminal))


def lines(answer: Answer, terminal: Terminal) -> Iterator[str]:
    claims = answer.get("claims") or []
    yield f"{line(answer.get('entity', ''))}  {line(answer.get('key', ''))}: {counted(len(claims), 'claim')}"
    for claim in claims:
        yield from claim_lines(claim, terminal)


def claim_lines(claim: Answer, terminal: Terminal) -> Iterator[str]:
    versions = ", ".join(f"v{number}" for number in claim.get("versions") or [])
    numbers = f"confidence {decimal(claim.get('confidence'), 3)}, evidence {signed(claim.get('evidence'))}"
    yield ""
    yield f"{terminal.paint(versions or 'no version', 'bold')}: {standing(claim, terminal)}, {numbers}"
    yield f"  began at {decimal(claim.get('initial'), 3)}"
    moves = claim.get("moves") or []
    yield from table(move_row(each) for each in moves)
    if not moves:
        yield "  no outcome has moved it"


def move_row(each: Answer) -> list[str]:
    vouched = "attested" if each.get("attested") else ""
    told = f"run ended in {line(each.get('type', ''))}" if is_attempt(each) else line(each.get("type", ""))
    if each.get("effective_type") not in (None, each.get("type")):
        told += f", now {line(each['effective_type'])}"
    return [
        when(each.get("at")),
        move(each),
        f"{told} {line(each.get('ref', ''))}",
        vouched,
        " · ".join(part for part in (who(each), reading(each)) if part),
    ]


def who(each: Answer) -> str:
    parts = [f"by {line(each.get('agent') or each['identity'])}"] if each.get("agent") or each.get("identity") else []
    parts += [f"in {line(each['box'])}"] if each.get("box") else []
    parts += [f"run {line(each['session'])}"] if each.get("session") else []
    return " ".join(parts)


def reading(each: Answer) -> str:
    """How the run came to it: `v2 used, read 2026-01-01 10:00:03Z`; of a revision, its reason."""
    how = "tried" if is_attempt(each) else line(each.get("how") or "")
    parts = [f"v{each['version']}" if each.get("version") else "", how]
    shown = " ".join(part for part in parts if part)
    if each.get("read_at"):
        shown += f", read {when(each['read_at'])}"
    return f"{shown}: {clipped(each['why'])}" if each.get("why") else shown
