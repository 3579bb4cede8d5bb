"""A dataset made known to the record it came from: what it is, and which runs it has rows from, so that they are found again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

PAGE_RUNS: Final = 2_000  # names are up to 128 characters, and a page has to fit in a request

Call = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]


class Registrar:
    """Tells the record through its verbs, here or on a server; `artefact` is then the dataset's id there."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.artefact: str | None = None

    def __call__(self, name: str, manifest: dict[str, Any], runs: Iterator[str], card: str) -> None:
        told = {"kind": "dataset", "name": name, "hash": manifest["sha256"], "lineage": lineage(manifest), "card": card}
        self.artefact = self.call("artefact_keep", told | {"metrics": metrics(manifest)})["artefact"]
        while page := list(islice(runs, PAGE_RUNS)):
            self.call("artefact_runs", {"artefact": self.artefact, "runs": list(dict.fromkeys(page))})


def lineage(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """How to make it again, and what its files must be."""
    names = ("id", "snapshot", "until", "choices", "rows_sha256", "splits", "herdbook")
    return {name: manifest[name] for name in names}


def metrics(manifest: Mapping[str, Any]) -> dict[str, Any]:
    counts = {reason: told["runs"] for reason, told in manifest["left_out"].items()}
    rows = sum(split["rows"] for split in manifest["splits"].values())
    return {"rows": rows, "runs": manifest["runs"], "used_runs": manifest["used_runs"], "left_out": counts}
