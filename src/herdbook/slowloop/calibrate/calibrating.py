"""A path's own numbers from its runs, tried on later runs than those they came from, and what of them may act.

Nothing is set here: the answer holds what would be set, and setting it is somebody's decision, kept with its reason and taken
back in one step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from herdbook.record.trust import MULTIPLIERS, moved
from herdbook.slowloop.calibrate import half_life, multipliers, reliability
from herdbook.slowloop.runs import Run, below

PARTS: Final = 4  # later quarters of the runs are foretold from those before them


def calibrate(runs: Sequence[Run], path: str, *, columns: Mapping[str, Mapping[str, int]], base_days: float) -> dict[str, Any]:
    """The report for one path. `columns` says by feature where it is in each form."""
    mine = [run for run in runs if below(run.asked, path) and run.told]
    counts = by_entity(multipliers.repeats(run for run in runs if run.told), path)
    found = multipliers.rates(counts, path)
    life = half_life.estimate(half_life.lives(mine, dict(columns["age_days"])), base=base_days)
    factors = MULTIPLIERS | {rate.type: round(rate.multiplier, 4) for rate in found if rate.acts}
    trial = holdout(mine, path)
    values: dict[str, float] = {f"multiplier_{name}": factor for name, factor in factors.items() if factor != MULTIPLIERS[name]}
    if trial["gain"] is not None and trial["gain"] <= 0:
        values = {}
    if life.acts:
        values["half_life_days"] = round(life.bounded, 2)
    age = half_life.read_age_days(mine, dict(columns["age_days"]))
    report = {
        "runs": len(mine),
        "multipliers": [rate.as_dict() for rate in found],
        "half_life": life.as_dict(),
        "read_age_days": None if age is None else round(age, 2),
        "holdout": trial,
        "reliability": reliability.as_dict(reliability.pairs(mine, dict(columns["confidence"]))),
        "values": values,
    }
    return report | {"says": list(sentences(report))}


def by_entity(counts: Mapping[str, Mapping[str, multipliers.Count]], path: str) -> dict[str, dict[str, multipliers.Count]]:
    """Everything at and below the path as one entity; the others stay as they are."""
    found: dict[str, dict[str, multipliers.Count]] = {}
    for entity, kinds in counts.items():
        mine = found.setdefault(path if below(entity, path) else entity, {})
        for name, count in kinds.items():
            mine[name] = mine.get(name, multipliers.Count()) + count
    return found


def holdout(runs: Sequence[Run], path: str) -> dict[str, Any]:
    """Later quarters foretold with the default factors and with those learnt before: mean squared error of confidence."""
    in_order = sorted(runs, key=lambda run: run.at)
    errors: dict[str, list[float]] = {"default": [], "candidate": []}
    for part in range(1, PARTS):
        cut, end = len(in_order) * part // PARTS, len(in_order) * (part + 1) // PARTS
        before, after = in_order[:cut], in_order[cut:end]
        learnt = multipliers.rates(by_entity(multipliers.repeats(before), path), path)
        factors = MULTIPLIERS | {rate.type: rate.multiplier for rate in learnt if rate.acts}
        for name, used in (("default", MULTIPLIERS), ("candidate", factors)):
            errors[name] += foretold(before, after, used)
    if not errors["default"]:
        return {"uses": 0, "default": None, "candidate": None, "gain": None}
    default, candidate = (sum(found) / len(found) for found in errors.values())
    numbers = {"default": default, "candidate": candidate, "gain": default - candidate}
    return {"uses": len(errors["default"]), **{name: round(number, 5) for name, number in numbers.items()}}


def foretold(before: Sequence[Run], after: Sequence[Run], factors: Mapping[str, float]) -> list[float]:
    """Squared errors of the confidence each used claim has, folded with these factors, when a later run comes to use it."""
    confidence: dict[str, float] = {}
    errors = []
    for number, run in enumerate([*before, *after]):
        for claim in dict.fromkeys(each.claim for each in run.exposures if each.served and each.used):
            known = confidence.get(claim)
            if known is not None and number >= len(before):
                errors.append((known - run.success) ** 2)
            confidence[claim] = moved(0.5 if known is None else known, factors[run.type])
    return errors


def sentences(report: Mapping[str, Any]) -> Sequence[str]:
    """What it comes to, in words."""
    told = []
    few = [rate["type"] for rate in report["multipliers"] if rate["cases"] < multipliers.REPORT_MIN]
    if few:
        told.append(f"Not enough data on {', '.join(few)}: fewer than {multipliers.REPORT_MIN} each; the defaults stay.")
    life = report["half_life"]
    if life["days"] is None:
        told.append(f"Not enough data on half-life: {life['events']} of {half_life.REPORT_MIN} entries were seen to go stale.")
    elif not life["acts"]:
        told.append(
            f"The half-life looks like {life['days']:g} days; {half_life.ACT_MIN} stale entries are needed before it acts."
        )
    gain = report["holdout"]["gain"]
    if gain is not None and gain <= 0:
        told.append("On later runs the multipliers learnt here foretold no better than the defaults, so the defaults stay.")
    if report["values"]:
        told.append("Promotion sets " + ", ".join(f"{name}={value:g}" for name, value in report["values"].items()) + ".")
    else:
        told.append("Promotion sets nothing.")
    return told
