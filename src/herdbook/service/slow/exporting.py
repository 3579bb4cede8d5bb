"""A look at the training set that the runs would make, small enough for one answer: secrets are out, what is left out is said.

Whole sets are written by `herdbook export training`, from the same runs, by the same rules.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from herdbook.base import limits, strict_json, text
from herdbook.service import asking
from herdbook.service.callers import Caller
from herdbook.service.requests import Runs
from herdbook.service.slow import requests

if TYPE_CHECKING:
    from herdbook.service.door import Service


def export_training_data(service: Service, caller: Caller, request: requests.ExportTrainingData) -> dict[str, Any]:
    """Rows of the set, in the order they would be written, until `limit` or the answer's size is reached."""
    from herdbook.slowloop.export.dataset import SPLITS, Choices, export  # here: it costs every other verb its start

    pages = Pages(service, caller)
    choices = Choices(
        kind=request.kind,
        entity=None if request.entity is None else text.entity_path(request.entity),
        attested_only=request.attested,
        holdout=0.0,
    )
    with tempfile.TemporaryDirectory(prefix="herdbook-export-") as folder:
        exported = export(pages.ask, Path(folder) / "set", choices)
        file = exported.folder / f"{SPLITS[0]}.jsonl"
        rows = bounded(file, limit=request.limit) if exported.rows else []
    told = {name: exported.manifest[name] for name in ("runs", "used_runs", "scrubbed", "left_out")}
    return {
        "kind": request.kind,
        "entity": choices.entity,
        "rows": rows,
        "rows_left_out": exported.rows - len(rows),
        "more_runs_left_out": pages.cut,
        **told,
    }


def bounded(file: Path, *, limit: int) -> list[Any]:
    """The first rows that fit."""
    rows, left = [], limits.EXPORTED_ANSWER_BYTES_MAX
    with file.open("rb") as lines:
        for line in islice(lines, limit):
            left -= len(line)
            if left < 0:
                break
            rows.append(strict_json.loads(line.decode("utf-8")))
    return rows


class Pages:
    """The record's runs, page by page, up to as many as any verb looks back over."""

    def __init__(self, service: Service, caller: Caller) -> None:
        self.service, self.caller = service, caller
        self.runs = 0
        self.cut = False

    def ask(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        page = asking.runs(self.service, self.caller, Runs(**fields))
        self.runs += len(page["runs"])
        self.cut = self.runs >= limits.LEARNT_RUNS_MAX and page["next"] is not None
        return page | {"next": None} if self.cut else page
