"""Whether a tuned model may be served: agreement with held-out acts against every baseline, with intervals. Pure.

The unit is the task, since the acts of one task are alike: intervals are percentile bootstraps over tasks (Efron 1979), with the
seed in the report. A model may be promoted only if it beats each baseline with an interval above 0 on enough tasks, and does not
agree more with what failed: `refusals` says why not. What is measured is agreement with logged decisions, not success at tasks.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from herdbook.slowloop.models.acts import Act, Function

TASKS_MIN: Final = 30
RESAMPLES: Final = 2_000
LEVEL: Final = 0.95
FAILED_SHARE_MAX: Final = 0.1  # of answers that a rival's server could not make

MODEL: Final = "model"
BASE: Final = "base"
RIVALS: Final = {
    BASE: "the base model",
    "majority": "always the most common call",
    "replay": "looking up the nearest past decision",
}

Calls = Sequence[Function | None]  # what somebody would have called, act by act


class Interval(NamedTuple):
    """A mean over tasks, and where it lies with 95 %."""

    mean: float
    low: float
    high: float


def judge(acts: Sequence[Act], calls: Mapping[str, Calls], *, seed: int) -> dict[str, Any]:
    """How `MODEL` did, and every other name in `calls`; the differences, act for act, with their intervals over tasks."""
    good = [number for number, act in enumerate(acts) if act.good]
    bad = [number for number, act in enumerate(acts) if not act.good]
    exact = {name: [same(call, act.call) for call, act in zip(found, acts, strict=True)] for name, found in calls.items()}

    def more(other: str, numbers: Sequence[int]) -> dict[str, float]:
        differences = [float(a) - float(b) for a, b in zip(exact[MODEL], exact[other], strict=True)]
        return over_tasks(acts, numbers, differences, seed=seed)._asdict()

    others = [name for name in calls if name != MODEL]
    return {
        "tasks": len({acts[number].task for number in good}),
        "good_acts": len(good),
        "bad_acts": len(bad),
        "seed": seed,
        "scores": {name: scores(acts, found, exact[name], good=good, bad=bad, seed=seed) for name, found in calls.items()},
        "gains": {other: more(other, good) for other in others},
        "agrees_more_with_failures": more(BASE, bad) if bad else None,
    }


def refusals(report: Mapping[str, Any]) -> list[str]:
    """Why a model with this report may not be promoted, each in a sentence; empty where it may."""
    reasons = []
    tasks = report.get("tasks", 0)
    if tasks < TASKS_MIN:
        reasons.append(f"it was examined on {tasks} held-out tasks, and it takes {TASKS_MIN} to tell")
    for name, called in RIVALS.items():
        gain = report.get("gains", {}).get(name)
        if gain is None:
            reasons.append(f"it was not compared with {called}")
        elif not gain["low"] > 0:  # also for a number that is none
            said = f"{gain['mean']:+.3f}, 95 % from {gain['low']:+.3f} to {gain['high']:+.3f}"
            reasons.append(f"it is not shown to be better than {called} at the calls of successful runs ({said})")
    lost = report.get("failed_answers", {}).get(BASE, 0)
    if lost > FAILED_SHARE_MAX * (report.get("good_acts", 0) + report.get("bad_acts", 0)):
        reasons.append(f"the base model's server failed at {lost} answers, so it is not known how good that model is")
    more = report.get("agrees_more_with_failures")
    if more is not None and not more["mean"] <= 0:
        said = f"{more['mean']:+.3f} over {report['bad_acts']} of them"
        reasons.append(f"it agrees more than {RIVALS[BASE]} with calls of failed runs ({said})")
    return reasons


def same(call: Function | None, right: Function) -> bool:
    """The same tool with the same arguments; 1 and 1.0 are one number."""
    return call is not None and call["name"] == right["name"] and call["arguments"] == right["arguments"]


def scores(
    acts: Sequence[Act], calls: Calls, exact: Sequence[bool], *, good: Sequence[int], bad: Sequence[int], seed: int
) -> dict[str, Any]:
    """How somebody did: valid calls, the next tool, its arguments, and agreement weighed by outcome."""

    def share(numbers: Sequence[int], holds: Sequence[float]) -> dict[str, float] | None:
        return over_tasks(acts, numbers, holds, seed=seed)._asdict() if numbers else None

    valid = [float(call is not None) for call in calls]
    tool = [float(call is not None and call["name"] == act.call["name"]) for call, act in zip(calls, acts, strict=True)]
    arguments = [arguments_right(call, act.call) for call, act in zip(calls, acts, strict=True)]
    wholly = [float(hit) for hit in exact]
    agreed, failed = share(good, wholly), share(bad, wholly)
    return {
        "valid_call": share(good, valid),
        "next_tool": share(good, tool),
        "arguments": share(good, arguments),
        "exact_call": agreed,
        "agrees_with_failures": failed,
        "outcome_weighted": None if agreed is None else agreed["mean"] - (failed["mean"] if failed else 0.0),
    }


def arguments_right(call: Function | None, right: Function) -> float:
    """The share of the right call's arguments that were given as they were; 0 for another tool."""
    if call is None or call["name"] != right["name"]:
        return 0.0
    wanted = right["arguments"]
    given = call["arguments"] if isinstance(call["arguments"], dict) else {}
    hits = sum(name in given and given[name] == value for name, value in wanted.items())
    return hits / max(len(set(wanted) | set(given)), 1) if wanted or given else 1.0


def over_tasks(acts: Sequence[Act], numbers: Sequence[int], values: Sequence[float], *, seed: int) -> Interval:
    """The mean over tasks of each task's mean, with a bootstrap interval over tasks. (0, 0, 0) where there are none."""
    by_task: dict[str, list[float]] = defaultdict(list)
    for number in numbers:
        by_task[acts[number].task].append(values[number])
    means = [sum(found) / len(found) for _, found in sorted(by_task.items())]
    if not means:
        return Interval(0.0, 0.0, 0.0)
    draw = random.Random(seed)
    resampled = sorted(sum(draw.choices(means, k=len(means))) / len(means) for _ in range(RESAMPLES))
    tail = round((1 - LEVEL) / 2 * RESAMPLES)
    return Interval(sum(means) / len(means), resampled[tail], resampled[-1 - tail])
