"""`python -m bench fleet`: live through simulated fleets and say what each policy was worth.

Kinds are scenario files, by name or path. A seed is one world for all policies, so that their differences are paired.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from bench.fleet import report, scenario
from bench.fleet.fleet import POLICIES, Fleet, lived_through
from bench.fleet.scenario import Scenario
from bench.servers import Unavailable

SEEDS_DEFAULT = "1:3"


def main(arguments: Sequence[str]) -> int:
    """0 once everything that can run here has run; 2 for what is not understood."""
    parser = argparse.ArgumentParser(prog="python -m bench fleet", description=__doc__)
    parser.add_argument(
        "--kinds", default="", help=f"scenarios, comma apart: files, or {', '.join(scenario.shipped())} (default: all)"
    )
    parser.add_argument(
        "--scenario", type=Path, action="append", default=[], metavar="FILE", help="a scenario file of your own; repeatable"
    )
    parser.add_argument("--seeds", default=SEEDS_DEFAULT, help=f"worlds: one number, or first:last (default {SEEDS_DEFAULT})")
    parser.add_argument("--policies", default="", help=f"comma apart: {', '.join(POLICIES)} (default: all)")
    parser.add_argument("--runs", type=int, help="of each entity, instead of what the scenario says")
    parser.add_argument(
        "--embed", choices=("auto", "off"), default="auto", help="find by meaning, where an embedder is installed"
    )
    parser.add_argument("--jobs", type=int, default=1, help="fleets at the same time (default 1)")
    parser.add_argument("--svg", type=Path, metavar="DIRECTORY", help="draw each kind's curves there")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args(arguments)
    try:
        kinds = [changed(each, chosen.runs) for each in scenario.chosen([*listed(chosen.kinds), *map(str, chosen.scenario)])]
        policies, seeds = policies_of(listed(chosen.policies)), seeds_of(chosen.seeds)
    except ValueError as problem:
        parser.error(str(problem))
    began = time.monotonic()
    fleets, failed = live_all(kinds, policies, seeds, embed=chosen.embed, jobs=chosen.jobs)
    if chosen.json:
        print(json.dumps(report.as_object(fleets, failed), indent=2))
    else:
        print(report.table(fleets, {each.name: each.says for each in kinds}))
        for policy, reason in failed.items():
            print(f"{policy} did not run: {reason}")
    for kind in kinds if chosen.svg else ():
        chosen.svg.mkdir(parents=True, exist_ok=True)
        (chosen.svg / f"{kind.name}.svg").write_text(report.svg(fleets, kind.name), encoding="utf-8")
    print(f"{len(fleets)} fleets in {time.monotonic() - began:.0f} s", file=sys.stderr)
    return 0


def live_all(
    kinds: Sequence[Scenario], policies: Sequence[str], seeds: Sequence[int], *, embed: str, jobs: int
) -> tuple[list[Fleet], dict[str, str]]:
    """Every fleet, and the policies that cannot run here with the reason."""
    work = [(kind, seed, policy, embed) for kind in kinds for policy in policies for seed in seeds]
    failed: dict[str, str] = {}
    fleets: list[Fleet] = []
    if jobs > 1:
        with ProcessPoolExecutor(jobs) as pool:
            lives = list(pool.map(attempted, work))
    else:
        lives = [attempted(each) for each in work]
    for (_, _, policy, _), life in zip(work, lives, strict=True):
        if isinstance(life, Fleet):
            fleets.append(life)
        else:
            failed[policy] = life
    return fleets, failed


def attempted(work: tuple[Scenario, int, str, str]) -> Fleet | str:
    """The fleet, or why there is none."""
    kind, seed, policy, embed = work
    try:
        return lived_through(kind, seed, policy, embed)
    except Unavailable as reason:
        return str(reason)


def changed(kind: Scenario, runs: int | None) -> Scenario:
    if runs is None:
        return kind
    from msgspec.structs import replace

    if runs < 1:
        raise ValueError("a fleet lives for at least one run")
    return replace(kind, runs=runs)


def listed(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def policies_of(names: list[str]) -> list[str]:
    unknown = [name for name in names if name not in POLICIES]
    if unknown:
        raise ValueError(f"there is no policy {unknown[0]!r}: they are {', '.join(POLICIES)}")
    return names or list(POLICIES)


def seeds_of(text: str) -> list[int]:
    first, _, last = text.partition(":")
    if not first.isdigit() or (last and not last.isdigit()):
        raise ValueError(f"{text!r} names no seeds: give a number, or first:last")
    seeds = list(range(int(first), int(last or first) + 1))
    if not seeds:
        raise ValueError(f"{text!r} names no seeds: the first is above the last")
    return seeds
