"""`python -m bench [NAME ...]`: measure what herdbook claims about its speed, print a table, and fail if a claim does not hold.

Progress goes to stderr, the table or `--json`'s one object to stdout. The records are written under a temporary directory, which
has to lie on a disk: where fsync costs nothing, durable writes prove nothing.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sqlite3
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.timing import Claim, NotMeasured, Result, Scale, seconds_each

BENCHES = (
    "startup",
    "writes",
    "reads",
    "outcomes",
    "briefing",
    "paths",
    "growth",
    "contention",
    "rest",
    "hooks",
    "gateway",
    "on_postgres",
    "capacity",
    "boxes",
    "fanout",
    "export",
)


def main(arguments: Sequence[str]) -> int:
    """Exit code: 0 all claims hold, 1 one does not or could not be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("benches", nargs="*", metavar="NAME", help=f"which to run: {', '.join(BENCHES)} (default: all)")
    parser.add_argument("--passes", type=int, default=11, help="turns of each side (default 11)")
    parser.add_argument("--entries", type=int, help="entries in the large record (default 100,000)")
    parser.add_argument("--full", action="store_true", help="1,000,000 entries, and twice the passes")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each contention load (default 10)")
    parser.add_argument("--directory", type=Path, help="where to put the records (default: the system's temporary directory)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args(arguments)
    unknown = sorted(set(chosen.benches) - set(BENCHES))
    if unknown or chosen.passes < 1:
        parser.error(f"no such bench: {', '.join(unknown)}" if unknown else "at least one pass")
    scale = Scale(
        passes=chosen.passes * (2 if chosen.full else 1),
        entries=chosen.entries or (1_000_000 if chosen.full else 100_000),
        seconds=chosen.seconds,
        say=lambda words: print(words, file=sys.stderr, flush=True),
    )
    tempfile.tempdir = str(chosen.directory) if chosen.directory else None
    with tempfile.TemporaryDirectory(prefix="bench-home-") as home:
        for name in [name for name in os.environ if name.startswith("HERDBOOK_")]:
            del os.environ[name]
        os.environ["HERDBOOK_HOME"] = home  # nobody's own record, key or settings are touched
        machine = about_this_machine(Path(home))
        results = measure(chosen.benches or BENCHES, scale)
    print(json.dumps(as_object(machine, results), indent=2) if chosen.json else table(machine, results))
    return 0 if all(isinstance(result, Claim) and result.holds for result in results) else 1


def measure(benches: Sequence[str], scale: Scale) -> list[Result]:
    """Every bench in turn."""
    results: list[Result] = []
    for name in benches:
        began = time.monotonic()
        scale.say(f"{name} ...")
        for result in claims_of(name, scale):
            results.append(result)
            scale.say(f"  {line(result)}")
        scale.say(f"{name}: {time.monotonic() - began:.0f} s")
    return results


def claims_of(name: str, scale: Scale) -> Iterator[Result]:
    """What one bench claims. One that breaks is a claim not measured, and fails the run at its end."""
    try:
        yield from importlib.import_module(f"bench.{name}").claims(scale)
    except Exception as problem:  # because the other figures still count, and some took minutes
        scale.say(traceback.format_exc())
        yield NotMeasured(name, f"broken: {type(problem).__name__}: {problem}")


def about_this_machine(home: Path) -> dict[str, Any]:
    """What the absolute figures depend on."""
    with (home / "fsync").open("wb") as file:

        def write_and_sync(_: int) -> None:
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())

        sync_us = seconds_each(write_and_sync, 200) * 1e6
    return {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "fsync_us": round(sync_us),
    }


def as_object(machine: dict[str, Any], results: Sequence[Result]) -> dict[str, Any]:
    """The whole run for a program to read."""
    return {
        "machine": machine,
        "claims": [
            {
                "name": result.name,
                "says": result.says,
                "holds": result.holds,
                "noisy": result.noisy,
                "min": min(result.samples),
                "median": result.median,
                "max": max(result.samples),
                "bound": result.bound,
                "sense": result.sense,
                "unit": result.unit,
                "detail": dict(result.detail),
            }
            for result in results
            if isinstance(result, Claim)
        ],
        "not_measured": {result.name: result.reason for result in results if not isinstance(result, Claim)},
    }


def table(machine: dict[str, Any], results: Sequence[Result]) -> str:
    """The whole run for a person to read."""
    facts = ", ".join(f"{name} {value}" for name, value in machine.items())
    head = f"{'claim':26} {'min':>9} {'median':>9} {'max':>9}   {'bound':19} verdict"
    return "\n".join([facts, "", head, *(line(result) for result in results)])


def line(result: Result) -> str:
    """One claim, its spread, its bound, the verdict, and the absolute figures behind it."""
    if not isinstance(result, Claim):
        return f"{result.name:26} not measured: {result.reason}"
    spread = " ".join(f"{value:9.2f}" for value in (min(result.samples), result.median, max(result.samples)))
    bound = f"{result.sense} {result.bound:g} {result.unit}"
    figures = ", ".join(f"{name} {value:.4g}" for name, value in result.detail.items())
    verdict = ("holds" if result.holds else "FAILS") + (", noisy" if result.noisy else "")
    return f"{result.name:26} {spread}   {bound:19} {verdict:13}  {result.says}" + (f" ({figures})" if figures else "")
