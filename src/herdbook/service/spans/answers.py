"""What the verb of spans answers."""

from __future__ import annotations

from typing import TypedDict


class SpansRecorded(TypedDict):
    """What came of each span."""

    spans: int
    recorded: int  # new actions and those that were sent before
    sessions: list[str]  # the runs they belong to
    left_out: dict[str, int]  # reason: how many spans
    attributes_left_out: int  # of the spans that were recorded
    redacted: int  # secrets that were taken out
    shortened: int  # arguments and results that were cut
