"""The boxes there are, and the end of those nobody keeps."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from herdbook.base import limits
from herdbook.surfaces.cli.entries import when
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.parser import whole_number
from herdbook.surfaces.cli.problems import Usage
from herdbook.surfaces.cli.terminal import Answer, clipped, line, table

if TYPE_CHECKING:
    from herdbook.boxes.provider import Provider
    from herdbook.boxes.reaper import Reaped

EXAMPLES = """\
example:
  $ herdbook box ls --live
  $ herdbook box reap      # end what nobody keeps: dead owners, leases that ran out, rows without a box

herdbook box rm BOX ends one by its name. A box that is gone is gone; what it learned is in the record."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "List boxes, clear away those nobody keeps, or destroy one. reap and rm act on this machine's boxes."
    parser.add_argument("act", metavar="ACT", choices=("ls", "reap", "rm"), help="ls, reap or rm")
    parser.add_argument("box", metavar="BOX", nargs="?", help="the box to destroy, for rm")
    parser.add_argument("--label", metavar="LABEL", help="only boxes with this label")
    parser.add_argument("--live", action="store_true", help="for ls: leave out those that are closed")
    parser.add_argument("--limit", metavar="N", type=whole_number, help="for ls: at most this many (100)")


def run(invocation: Invocation) -> int:
    args = invocation.args
    if (args.act == "rm") != (args.box is not None):
        raise Usage("rm takes the name of one box, ls and reap take none (see herdbook box --help)")
    return {"ls": listed, "reap": reaped, "rm": removed}[args.act](invocation)


def listed(invocation: Invocation) -> int:
    args = invocation.args
    answer = invocation.ask("box_list", label=args.label, live=args.live or None, limit=args.limit)
    return invocation.show(answer, list_lines(answer))


def list_lines(answer: Answer) -> Iterator[str]:
    boxes = answer.get("boxes") or []
    if not boxes:
        yield "There are no boxes."
    yield from table((box_row(each) for each in boxes), indent="")


def box_row(each: Answer) -> list[str]:
    state = line(each.get("state", ""))
    if state == "open" and not each.get("live", True):
        state = "lease ran out"
    until = f"closed {when(each['closed_at'])}" if each.get("closed_at") else f"lease until {when(each.get('lease_until'))}"
    made_by = f"{line(each.get('provider', ''))} ({line(each.get('isolation', ''))})"
    detail = clipped(each.get("detail") or "", 60)
    return [line(each.get("box", "")), line(each.get("label", "")), made_by, state, when(each.get("opened_at")), until, detail]


class ClientBook:
    """The boxes' four verbs, asked through this invocation."""

    def __init__(self, invocation: Invocation) -> None:
        self.ask = invocation.ask

    def box_open(self, **fields: Any) -> Mapping[str, Any]:
        return self.ask("box_open", **fields)

    def box_beat(self, **fields: Any) -> Mapping[str, Any]:
        return self.ask("box_beat", **fields)

    def box_close(self, **fields: Any) -> Mapping[str, Any]:
        return self.ask("box_close", **fields)

    def box_list(self, **fields: Any) -> Mapping[str, Any]:
        return self.ask("box_list", **fields)


def reaped(invocation: Invocation) -> int:
    """One pass of the reaper over every label that a row or a provider knows."""
    from herdbook.boxes.reaper import reap

    book = ClientBook(invocation)
    gone: list[Reaped] = []
    for provider in local_providers(invocation):
        gone += [each for label in labels(invocation, provider) for each in reap(book, provider, label)]
    stuck = [each for each in gone if each.problem]
    lines = [f"{line(each.box)}: {line(each.why)}{', but ' + line(each.problem) if each.problem else ''}" for each in gone]
    if not lines:
        kept = invocation.ask("box_list", label=invocation.args.label, live=True, limit=1)["boxes"]
        lines = ["Every box is kept by somebody." if kept else "Nothing to reap: no box is live."]
    invocation.show({"reaped": [asdict(each) for each in gone]}, lines)
    return 1 if stuck else 0


def labels(invocation: Invocation, provider: Provider) -> list[str]:
    if invocation.args.label:
        return [invocation.args.label]
    rows = invocation.ask("box_list", live=True, limit=limits.PAGE_MAX)["boxes"]
    return sorted({row["label"] for row in rows if row["provider"] == provider.name} | {box.label for box in provider.list()})


def removed(invocation: Invocation) -> int:
    """Destroy one box wherever it is on this machine, then close its row. Doing it twice is doing it once."""
    box = invocation.args.box
    for provider in local_providers(invocation):
        provider.destroy(box)
    answer = invocation.ask("box_close", box=box, detail="removed by hand")
    return invocation.show(answer, [f"{line(box)} is gone"])


def local_providers(invocation: Invocation) -> list[Provider]:
    from herdbook.boxes.providers import in_use

    return in_use(invocation.settings.boxes)
