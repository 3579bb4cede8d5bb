"""What the record is worth: runs that were told what is known against runs that, by chance, were told nothing.

It promises an interval with every number, the checks a sceptic would ask for beside it, and "not enough data" where that is so.
It refuses to compare what was not left to chance: without a control arm there is nothing to say, and it says how to get one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from herdbook.slowloop import effects
from herdbook.slowloop.intervals import GROUP_MIN, Difference, Groups, mean, mean_difference, share_difference
from herdbook.slowloop.runs import CHARS_PER_TOKEN, Run

PLACEBO_Z: Final = 3.0  # a placebo further from nothing than this says that something is wrong with the comparison
MEASURES: Final[dict[str, Callable[[Run], float]]] = {
    "success": lambda run: float(run.success),
    "attempts": lambda run: float(run.tries),
    "seconds": lambda run: run.seconds,
}
NO_CONTROL: Final = "no run was left without a briefing: turn on a control arm, such as `herdbook tune control=0.1`"


def prove(runs: Sequence[Run], *, chars_at: dict[str, int]) -> dict[str, Any]:
    """The whole answer over these runs. `chars_at` says where in a form's features the length of an entry is."""
    told, control = [run for run in runs if run.told], [run for run in runs if not run.told]
    uplift = {name: compared(runs, measure, name) for name, measure in MEASURES.items()}
    found = effects.effects(runs)
    answer = {
        "runs": len(runs),
        "told": len(told),
        "control": len(control),
        "uplift": uplift,
        "checks": checks(runs),
        "tokens": tokens(told, chars_at),
        "entries": [effect.as_dict() for effect in found],
        "by_entity": [by_entity(path, mine) for path, mine in sorted(grouped(runs).items())],
    }
    return answer | {"says": list(sentences(answer))}


def grouped(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """By the path that was asked about: runs are compared within it only."""
    found: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        found[run.asked].append(run)
    return found


def strata(runs: Iterable[Run], measure: Callable[[Run], float]) -> list[Groups]:
    return [
        Groups([measure(run) for run in mine if run.told], [measure(run) for run in mine if not run.told])
        for mine in grouped(runs).values()
    ]


def difference(runs: Iterable[Run], measure: Callable[[Run], float], name: str) -> Difference | None:
    groups = strata(runs, measure)
    return share_difference(groups) if name == "success" else mean_difference(groups)


def compared(runs: Sequence[Run], measure: Callable[[Run], float], name: str) -> dict[str, Any]:
    """Told minus control, with a verdict on the record."""
    found = difference(runs, measure, name)
    if found is None:
        return {"estimate": None, "low": None, "high": None, "width": None, "verdict": "not enough data"}
    better = found.estimate > 0 if name == "success" else found.estimate < 0
    told = found.as_dict()
    verdict = ("helps" if better else "harms") if found.sure else "not enough data"
    return told | {"width": round(told["high"] - told["low"], 4), "verdict": verdict}


def by_entity(path: str, runs: Sequence[Run]) -> dict[str, Any]:
    """One path's own comparison."""
    told = sum(run.told for run in runs)
    return {
        "entity": path,
        "runs": len(runs),
        "control": len(runs) - told,
        "success_rate": round(mean([float(run.success) for run in runs]), 4),
        **compared(runs, MEASURES["success"], "success"),
    }


def checks(runs: Sequence[Run]) -> dict[str, Any]:
    """What a sceptic would ask: are both sides there, at the same times, and is nothing found where nothing can be?"""
    both = [path for path, mine in grouped(runs).items() if len({run.told for run in mine}) == 2]
    shared = [run for run in runs if run.asked in set(both)]
    return {
        "overlap": {"entities": len(both), "runs": len(shared), "left_out": len(runs) - len(shared)},
        "time": placebo(mean_difference(strata(ordered_by_time(runs), lambda run: run.seconds))),
        "placebo": placebo(mean_difference(strata(shifted(runs), lambda run: float(run.success)))),
    }


def ordered_by_time(runs: Sequence[Run]) -> list[Run]:
    """Each run with its place in its entity's history in place of its duration: both arms should be spread alike."""
    found = []
    for mine in grouped(runs).values():
        in_order = sorted(mine, key=lambda run: run.at)
        found += [replace(run, seconds=at / max(1, len(mine) - 1)) for at, run in enumerate(in_order)]
    return found


def shifted(runs: Sequence[Run]) -> list[Run]:
    """Each run with the outcome of the run before it, which no briefing of its own can have changed."""
    found = []
    for mine in grouped(runs).values():
        in_order = sorted(mine, key=lambda run: run.at)
        found += [replace(run, type=before.type) for before, run in pairwise(in_order)]
    return found


def placebo(found: Difference | None) -> dict[str, Any]:
    """A difference that ought to be nothing."""
    if found is None or not found.error:
        return {"estimate": None, "low": None, "high": None, "passed": None}
    return found.as_dict() | {"passed": abs(found.estimate) <= PLACEBO_Z * found.error}


def tokens(told: Sequence[Run], chars_at: dict[str, int]) -> dict[str, Any]:
    """What being told costs: the length of the entries a run was shown, in tokens, about."""
    costs = []
    for run in told:
        shown = [each for each in run.exposures if each.served and each.form in chars_at]
        costs.append(sum(each.features[chars_at[each.form]] for each in shown if each.features) / CHARS_PER_TOKEN)
    return {"a_run": round(mean(costs), 1) if costs else None, "entries_a_run": round(shown_a_run(told), 1)}


def shown_a_run(told: Sequence[Run]) -> float:
    return mean([sum(each.served for each in run.exposures) for run in told]) if told else 0.0


def sentences(answer: dict[str, Any]) -> Iterable[str]:
    """The answer in words, for somebody who will not read the numbers."""
    if not answer["control"]:
        yield f"Not enough data: {NO_CONTROL}."
    elif min(answer["told"], answer["control"]) < GROUP_MIN:
        yield (
            f"Not enough data: {answer['told']} runs were told what is known and {answer['control']} were not; "
            f"at least {GROUP_MIN} of each are needed."
        )
    else:
        yield success_sentence(answer["uplift"]["success"])
    for name in ("time", "placebo"):
        if answer["checks"][name]["passed"] is False:
            yield f"Careful: the check {name!r} failed, so the two arms may not be comparable."
    if answer["checks"]["overlap"]["left_out"] and answer["control"]:
        yield f"{answer['checks']['overlap']['left_out']} runs are on paths that have only one arm, and are left out."
    sure = [entry for entry in answer["entries"] if entry["verdict"] != "not enough data"]
    if answer["entries"]:
        yield f"Of {len(answer['entries'])} entries left to chance, {len(sure)} have an effect that can be told."


def success_sentence(uplift: dict[str, Any]) -> str:
    interval = f"{uplift['estimate']:+.1%} success ({uplift['low']:+.1%} to {uplift['high']:+.1%})"
    if uplift["verdict"] == "not enough data":
        return f"Not enough data to say which way: {interval}."
    return f"The record {uplift['verdict']}: {interval}."
