"""The record's four box verbs over a directory of files, so that a killed process leaves behind exactly what it wrote."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class FileBook:
    """Any number of processes may use one directory."""

    def __init__(self, place: Path, *, now: Callable[[], float] = time.time) -> None:
        self.place, self.now = place, now
        self.beats = 0
        place.mkdir(parents=True, exist_ok=True)

    def box_open(
        self, *, box: str, provider: str, isolation: str, label: str, owner: str, lease_seconds: int, **more: Any
    ) -> dict[str, Any]:
        row = {"box": box, "provider": provider, "isolation": isolation, "label": label, "owner": owner}
        return self._write({**row, "state": "open", "detail": None, "lease_until": self.now() + lease_seconds})

    def box_beat(self, *, box: str, lease_seconds: int, claim: str | None = None) -> dict[str, Any]:
        row = self.row(box)
        self.beats += 1
        return self._write({**row, "lease_until": self.now() + lease_seconds}) if row["state"] == "open" else row

    def box_close(self, *, box: str, detail: str | None) -> dict[str, Any]:
        row = self.row(box)
        return self._write({**row, "state": "closed", "detail": detail}) if row["state"] == "open" else row

    def box_list(self, *, label: str | None, live: bool, limit: int) -> dict[str, Any]:
        rows = [self.row(path.stem) for path in sorted(self.place.glob("*.json"))]
        wanted = [row for row in rows if label in (None, row["label"]) and (row["state"] == "open" or not live)]
        return {"boxes": [{**row, "live": row["state"] == "open" and row["lease_until"] > self.now()} for row in wanted[:limit]]}

    def row(self, box: str) -> dict[str, Any]:
        row: dict[str, Any] = json.loads((self.place / f"{box}.json").read_text())
        return row

    def _write(self, row: dict[str, Any]) -> dict[str, Any]:
        fresh = self.place / f"{row['box']}.{os.getpid()}.{threading.get_ident()}"
        fresh.write_text(json.dumps(row))
        fresh.replace(self.place / f"{row['box']}.json")
        return row
