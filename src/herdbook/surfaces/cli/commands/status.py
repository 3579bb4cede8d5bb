"""How the record is: its schema, counts, seals, and the settings in force with what they give up."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from herdbook.surfaces.cli.invocation import Invocation, place
from herdbook.surfaces.cli.terminal import Answer, compact, line, table

EXAMPLES = """\
example:
  $ herdbook status
  $ herdbook status --json

Whether all is well is doctor's to say; status only reports."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "How the record is: schema, counts, seals, and the settings in force."


def run(invocation: Invocation) -> int:
    answer = dict(invocation.ask("status"))
    if invocation.leaves_nothing:
        answer["record"] = {**answer["record"], "file": str(invocation.settings.record), "bytes": 0}
    settings = [{"name": each.setting.name, "value": each.value, "source": each.source} for each in invocation.settings]
    return invocation.show({**answer, "settings": settings}, lines(answer, invocation))


def lines(answer: Answer, invocation: Invocation) -> Iterator[str]:
    yield f"record: {line(place(invocation.settings))}"
    facts = {**(answer.get("record") or {}), **{name: value for name, value in answer.items() if name != "record"}}
    yield from table([line(name), shown(value)] for name, value in facts.items())
    yield "settings:"
    yield from table([each.setting.name, line(each.value) or "–", each.source] for each in invocation.settings)


def shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{line(name)} {shown(member)}" for name, member in value.items())
    if isinstance(value, list):
        return ", ".join(map(shown, value)) or "none"
    return line(value) if isinstance(value, str) else compact(value)
