"""One pass over the record's runs: each becomes a draft in a spill file, or a counted reason why not.

What stays in the process is a few numbers a run, so that a million runs fit; the drafts themselves are read back from the spill.
"""

from __future__ import annotations

import tempfile
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from herdbook.base import clock
from herdbook.slowloop.export import drafts
from herdbook.slowloop.export.drafts import Draft
from herdbook.slowloop.export.scrub import Scrubber
from herdbook.slowloop.export.tools import ToolsSeen

PAGE_RUNS: Final = 500
NAMED_MAX: Final = 5  # of each reason, so that somebody can go and look

Page = Mapping[str, Any]
AskPage = Callable[[Mapping[str, Any]], Page]


class LeftOut:
    """What could not be used: how many for each reason, and the first few by name."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.names: dict[str, list[str]] = {}
        self.last: dict[str, str] = {}

    def add(self, reason: str, session: str) -> None:
        """A run counts once for a reason; several rows of one come one after the other."""
        if self.last.get(reason) == session:
            return
        self.last[reason] = session
        self.counts[reason] += 1
        names = self.names.setdefault(reason, [])
        if len(names) < NAMED_MAX:
            names.append(session)

    def as_dict(self) -> dict[str, Any]:
        return {reason: {"runs": count, "named": self.names[reason]} for reason, count in sorted(self.counts.items())}


class Collected:
    """The drafts of one snapshot, and of each its task, time and result. Close it to drop the spill."""

    def __init__(self, folder: Path) -> None:
        self.spill = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - it lives as long as this does
        self.offsets = array("Q", [0])
        self.tasks = array("Q")
        self.times = array("q")
        self.successes = array("b")
        self.tools = ToolsSeen()
        self.left_out = LeftOut()
        self.runs = 0
        self.failed_calls = 0
        self.encoder = msgspec.msgpack.Encoder()
        self.decoder = msgspec.msgpack.Decoder(Draft)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self.spill.close()

    def __len__(self) -> int:
        return len(self.tasks)

    def add(self, draft: Draft) -> None:
        data = self.encoder.encode(draft)
        self.spill.write(data)
        self.offsets.append(self.offsets[-1] + len(data))
        self.tasks.append(int(draft.task, 16))
        self.times.append(clock.from_iso(draft.at))
        self.successes.append(draft.success)
        self.failed_calls += len(draft.failed) if draft.success else 0
        for step in draft.calls:
            for call in step["tool_calls"]:
                self.tools.see(draft.entity, call["function"]["name"], call["function"]["arguments"])

    def draft(self, number: int) -> Draft:
        """One draft again."""
        start, end = self.offsets[number], self.offsets[number + 1]
        self.spill.seek(start)
        return self.decoder.decode(self.spill.read(end - start))

    def all(self) -> Iterator[Draft]:
        """All of them, in the order of their sessions' names."""
        return (self.draft(number) for number in range(len(self)))


def pages(ask: AskPage, fields: Mapping[str, Any]) -> Iterator[Page]:
    """Every page of one snapshot."""
    page = ask(fields)
    yield page
    while page["next"] is not None:
        page = ask({**fields, "after": page["next"], "snapshot": page["snapshot"], "until": page["until"]})
        yield page


def collect(
    runs: Iterable[Mapping[str, Any]],
    into: Collected,
    *,
    scrubber: Scrubber | None,
    attested_only: bool,
    drop_secrets: bool,
) -> None:
    """Fill `into`. Without a scrubber texts stay as they are; with `drop_secrets` a run that held one is left out instead."""
    for run in runs:
        into.runs += 1
        found = drafts.draft(run, attested_only=attested_only)
        if isinstance(found, Draft) and scrubber is not None:
            found, counts = scrubber.draft(found)
            if counts and drop_secrets:
                found = "secret_found"
        if isinstance(found, Draft):
            into.add(found)
        else:
            into.left_out.add(found, run["session"])


def checked(ask: AskPage, *, entity: str | None, attested_only: bool) -> dict[str, Any]:
    """How many runs could teach, and for each reason how many could not; the first few by name."""
    left_out, usable, runs = LeftOut(), Counter[bool](), 0
    for page in pages(ask, page_fields(entity)):
        for run in page["runs"]:
            runs += 1
            reason = drafts.refusal(run, attested_only=attested_only)
            if reason is None:
                usable[run["outcomes"][-1]["effective_type"] == "success"] += 1
            else:
                left_out.add(reason, run["session"])
    told = {"successes": usable[True], "failures": usable[False], "left_out": left_out.as_dict()}
    return {"runs": runs, "usable": usable.total(), **told}


def page_fields(entity: str | None) -> dict[str, Any]:
    """What the first page is asked with."""
    return {"limit": PAGE_RUNS} | ({} if entity is None else {"entity": entity})
