"""What came out, as a table with 95 % intervals over seeds, as a curve, and as one object for a program."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from bench.fleet import fleet
from bench.fleet.fleet import Fleet

BARS = "▁▂▃▄▅▆▇█"
POINTS = 20
# Two-sided 95 % quantiles of Student's t by degrees of freedom; beyond, the normal one.
T = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09, 2.09)
OURS = "herdbook"
COLOURS = ("#c33", "#888", "#e90", "#07a", "#283", "#91a", "#333", "#0aa", "#a52")


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over seeds and half the width of its 95 % interval; no width from a single seed."""

    mean: float
    half: float | None
    seeds: int

    def __str__(self) -> str:
        return f"{self.mean:.2f}" + ("" if self.half is None else f"±{self.half:.2f}")


def figure(values: Sequence[float | None]) -> Figure | None:
    """Of what could be measured; None if nothing could."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    if len(known) == 1:
        return Figure(known[0], None, 1)
    quantile = T[len(known) - 2] if len(known) - 2 < len(T) else 1.96
    return Figure(fmean(known), quantile * stdev(known) / math.sqrt(len(known)), len(known))


def regret(fleet_: Fleet, oracle: Fleet | None, upto: int | None = None) -> float | None:
    """Cost above the perfect order's in the same world, summed and per entity, over so many runs of each."""
    if oracle is None:
        return None
    pairs = zip(fleet_.lived, fleet_.costs, oracle.costs, strict=True)
    entities = len({each.entity for each in fleet_.lived})
    return sum(ours - best for each, ours, best in pairs if upto is None or each.nth <= upto) / entities


def times_oracle(fleet_: Fleet, oracle: Fleet | None, upto: int) -> float | None:
    """Cumulative cost over the perfect order's, after so many runs of each entity; None if there were not so many."""
    if oracle is None or max(each.nth for each in fleet_.lived) < upto:
        return None

    def spent(one: Fleet) -> int:
        return sum(cost for each, cost in zip(one.lived, one.costs, strict=True) if each.nth <= upto)

    return spent(fleet_) / spent(oracle)


Measure = Callable[[Fleet, Fleet | None], float | None]
MEASURES: dict[str, Measure] = {
    "attempts": lambda one, _: fleet.attempts_per_run(one),
    "failed": lambda one, _: fleet.failed_runs(one),
    "regret": regret,
    "x25": lambda one, best: times_oracle(one, best, 25),
    "x100": lambda one, best: times_oracle(one, best, 100),
    "auc60": lambda one, _: fleet.auc(one, 60),
    "auc200": lambda one, _: fleet.auc(one, 200),
    "drift": lambda one, _: fleet.neutral_drift(one, max(one.worth, default=0)),
    "harmful": lambda one, _: fleet.harmful_rate(one),
    "recover": lambda one, _: fleet.runs_to_recover(one),
    "tokens": lambda one, _: fleet.tokens_per_briefing(one),
}
MEANINGS = """\
attempts  a run, of those lived       failed   share of runs            regret   cost above the perfect order's, an entity
x25 x100  cost over the perfect order's after so many runs an entity (a failed run costs one more than it was allowed attempts)
auc60/200 helpful notes thought more of than neutral ones, after so many runs an entity        drift  |opinion| of neutral notes
harmful   share of runs that acted on a note that does harm    recover  runs until right after a change    tokens  a briefing"""


TARGETS: dict[str, tuple[str, float, str]] = {  # policy, bound, which way: what is held to be good enough
    "x25": (OURS, 1.6, "at most"),
    "x100": (OURS, 1.25, "at most"),
    "recover": (OURS, 5.0, "at most"),
    "harmful": (OURS, 0.01, "at most"),
    "drift": (OURS, 0.05, "at most"),
    "auc60": (f"{OURS}-holdback", 0.90, "at least"),
    "auc200": (f"{OURS}-holdback", 0.95, "at least"),
}


def targets(rows: dict[str, dict[str, Figure | None]]) -> list[str]:
    """What is asked of ours, one line a measure that this kind has: met by the mean over seeds, or missed."""
    found = []
    for name, (policy, bound, way) in TARGETS.items():
        value = rows.get(policy, {}).get(name)
        if value is not None:
            met = value.mean <= bound if way == "at most" else value.mean >= bound
            found.append(f"  {policy} {name} {value}, asked {way} {bound:.2f}: {'met' if met else 'MISSED'}")
    return found


def figures(fleets: Sequence[Fleet]) -> dict[str, dict[str, dict[str, Figure | None]]]:
    """kind, policy, measure."""
    best = {(each.kind, each.seed): each for each in fleets if each.policy == "oracle"}
    found: dict[str, dict[str, dict[str, Figure | None]]] = {}
    for kind, policy in dict.fromkeys((each.kind, each.policy) for each in fleets):
        mine = [each for each in fleets if (each.kind, each.policy) == (kind, policy)]
        row = {name: figure([measure(one, best.get((kind, one.seed))) for one in mine]) for name, measure in MEASURES.items()}
        found.setdefault(kind, {})[policy] = row
    return found


def table(fleets: Sequence[Fleet], says: dict[str, str]) -> str:
    """Every kind with a row a policy, its curve, and whether ours is better than each of the others."""
    lines = []
    for kind, rows in figures(fleets).items():
        used = [name for name in MEASURES if any(row[name] for row in rows.values())]
        lines += [
            "",
            f"{kind}: {says[kind]}",
            f"{'policy':18}" + "".join(f"{name:>13}" for name in used) + "  cost a run, over time",
        ]
        curves = {policy: mean_curve(fleets, kind, policy) for policy in rows}
        top = max((value for each in curves.values() for value in each), default=1.0)
        for policy, row in rows.items():
            cells = "".join(f"{row[name] or '–'!s:>13}" for name in used)
            lines.append(f"{policy:18}{cells}  {sparkline(curves[policy], top)}")
        lines += verdicts(fleets, kind) + targets(rows)
    return "\n".join([*lines, "", MEANINGS])


def verdicts(fleets: Sequence[Fleet], kind: str) -> list[str]:
    """Ours against every other policy: the difference in cost a run in the same worlds, and what its interval allows to say."""
    mine = {each.seed: fmean(each.costs) for each in fleets if (each.kind, each.policy) == (kind, OURS)}
    found = []
    for policy in dict.fromkeys(each.policy for each in fleets if each.kind == kind and each.policy not in (OURS, "oracle")):
        theirs = {each.seed: fmean(each.costs) for each in fleets if (each.kind, each.policy) == (kind, policy)}
        gap = figure([theirs[seed] - mine[seed] for seed in theirs if seed in mine])
        if gap is None:
            continue
        unsure = gap.half is None or abs(gap.mean) <= gap.half
        word = "cannot be told from" if unsure else "better than" if gap.mean > 0 else "WORSE than"
        found.append(
            f"  {OURS} is {word} {policy}: {gap.mean:+.2f}" + ("" if gap.half is None else f"±{gap.half:.2f}") + " a run"
        )
    return found


def mean_curve(fleets: Sequence[Fleet], kind: str, policy: str) -> list[float]:
    curves = [fleet.curve(each, POINTS) for each in fleets if (each.kind, each.policy) == (kind, policy)]
    return [fmean(values) for values in zip(*curves, strict=True)]


def sparkline(values: Sequence[float], top: float) -> str:
    """From nothing to `top`."""
    return "".join(BARS[min(len(BARS) - 1, int(value / top * (len(BARS) - 1) + 0.5))] for value in values)


def svg(fleets: Sequence[Fleet], kind: str) -> str:
    """The curves of one kind: cost a run as an entity's runs go by. Every line is labelled at its end, in its colour."""
    policies = list(dict.fromkeys(each.policy for each in fleets if each.kind == kind))
    curves = {policy: mean_curve(fleets, kind, policy) for policy in policies}
    top = max(max(values) for values in curves.values())
    width, height, left, right, foot = 720, 360, 44, 120, 30
    across = (width - left - right) / max(1, max(map(len, curves.values())) - 1)

    def y(value: float) -> float:
        return height - foot - (height - foot - 12) * value / top

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">']
    parts.append(f"<title>{kind}: cost a run, in attempts, over the runs of an entity</title>")
    parts += [
        f'<path d="M{left} {y(tick):.1f}H{width - right}" stroke="#ddd"/><text x="8" y="{y(tick) + 4:.1f}">{tick}</text>'
        for tick in range(int(top) + 1)
    ]
    ends = sorted((y(values[-1]), policy) for policy, values in curves.items())
    heights: dict[str, float] = {}
    for at, policy in ends:
        heights[policy] = max(at, max(heights.values(), default=-99.0) + 12)
    for number, (policy, values) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(f"{left + at * across:.1f},{y(value):.1f}" for at, value in enumerate(values))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{2.5 if policy == OURS else 1.5}"/>'
        )
        parts.append(f'<text x="{width - right + 6}" y="{heights[policy] + 4:.1f}" fill="{colour}">{policy}</text>')
    parts.append(f'<text x="{left}" y="{height - 8}">first runs of an entity</text>')
    parts.append(f'<text x="{width - right - 60}" y="{height - 8}">its last runs</text></svg>')
    return "\n".join(parts) + "\n"


def as_object(fleets: Sequence[Fleet], failed: dict[str, str]) -> dict[str, Any]:
    """Everything, for a program to read."""
    found = {
        kind: {
            policy: {
                name: None if value is None else {"mean": value.mean, "half": value.half, "seeds": value.seeds}
                for name, value in row.items()
            }
            | {"curve": mean_curve(fleets, kind, policy)}
            for policy, row in rows.items()
        }
        for kind, rows in figures(fleets).items()
    }
    return {"kinds": found, "not_run": failed}
