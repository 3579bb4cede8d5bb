"""Training from runs to an artefact: what was tried, what was chosen and why, what is uncomfortable, and the model itself.

It offers a ranker only if it was better on later runs than the default order. Asked for one method at one weight, it gives
exactly that, and says how it did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from herdbook.slowloop.arrays import numpy
from herdbook.slowloop.retrain import choosing
from herdbook.slowloop.retrain.choosing import DEFAULT, Candidate, Fold, Judged
from herdbook.slowloop.retrain.models import FITS, Model
from herdbook.slowloop.retrain.samples import samples_of
from herdbook.slowloop.runs import Run

SAMPLES_MIN: Final = 20  # the rule of old: below it nothing is fitted
TREES_MIN: Final = 1_000  # before that, trees are only worth their while when somebody asks for them
OUTCOMES: Final = ("evidence", "confidence", "effective", "standing", "held", "failed", "failed_since", "moves")
AGES: Final = ("age_days", "freshness")
POPULARITY: Final = ("recalls", "chars")


def train(
    runs: Sequence[Run], *, form: str, names: Sequence[str], method: str | None = None, weight: float | None = None
) -> dict[str, Any]:
    """A report, with `artefact` in it where there is a ranker to offer."""
    told = [run for run in runs if run.told]
    samples = samples_of(told, form, by_outcome=method == "gbm")
    report: dict[str, Any] = {"runs": len(told), "samples": len(samples), "tried": [], "importances": [], "artefact": None}
    if len(samples) < SAMPLES_MIN:
        return report | {"chosen": DEFAULT.name, "says": [f"Not enough data: {len(samples)} of {SAMPLES_MIN} samples."]}
    if len(set(samples.labels.tolist())) < 2:
        return report | {
            "chosen": DEFAULT.name,
            "says": ["Not enough data: all runs ended alike, so nothing tells entries apart."],
        }
    methods = [method] if method else ["logistic", *(["gbm"] if len(samples) >= TREES_MIN and has_trees() else [])]
    found = choosing.folds(samples, choosing.fits_for(methods, names))
    judged = choosing.judge(found, choosing.candidates_for(methods, weight), list(names).index(choosing.SCORE))
    best = chosen(judged, method=method)
    report |= {"tried": [each.as_dict() for each in judged], "chosen": best.candidate.name if best else DEFAULT.name}
    if best is None or best.candidate == DEFAULT:
        return report | {"says": list(why_default(judged, methods, found))}
    model = FITS[best.candidate.method](samples, names)
    if model.is_constant(samples.numbers):
        return report | {"chosen": DEFAULT.name, "says": ["The model gives everything the same score: it is rejected."]}
    worth = choosing.importances(found, best.candidate.method, names)
    artefact = {
        **model.body,
        "form": form,
        "names": list(names),
        "samples": len(samples),
        "runs": len(told),
        "method": best.candidate.method,
        "weight": best.candidate.weight,
        "snapshot": samples.digest,
        "last_run": told[-1].session,
        "until": told[-1].at,
        "judged": best.as_dict(),
    }
    return report | {"importances": worth, "artefact": artefact, "says": list(findings(best, worth))}


def has_trees() -> bool:
    """Whether the library for trees is here; without it they are simply not among the candidates."""
    from importlib.util import find_spec

    return find_spec("lightgbm") is not None


def chosen(judged: Sequence[Judged], *, method: str | None) -> Judged | None:
    """By the rule of one standard error; where a method was asked for, the best of it, whatever the default does."""
    if method is None:
        return choosing.choose(judged) if judged else None
    asked = [each for each in judged if each.candidate.method == method]
    return max(asked, key=lambda each: each.gain, default=None)


def why_default(judged: Sequence[Judged], methods: Sequence[str], found: Sequence[Fold]) -> Sequence[str]:
    missing = [name for name in methods if not all(name in fold.models for fold in found)]
    told = [f"The {name} model gave everything the same score in some part of the data: it is rejected." for name in missing]
    if not judged:
        return [*told, "Not enough data: too few runs to try a ranker on later ones."]
    return [*told, "The default order stays: on later runs nothing was clearly better."]


def findings(best: Judged, worth: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    """What was found, the uncomfortable first."""
    told = []
    groups = {name: sum(max(0.0, each["loss"]) for each in worth if each["feature"] in group) for name, group in GROUPS.items()}
    if groups["age"] > groups["outcomes"]:
        told.append(
            "Age decides more here than the history of outcomes: either what is known goes stale quickly, or outcomes are too "
            "few or too noisy to trust."
        )
    if groups["popularity"] > groups["outcomes"]:
        told.append("How often or how long an entry is read decides more here than what came of it.")
    unsure = [each["feature"] for each in worth[:3] if each["loss"] <= 2 * each["spread"]]
    if unsure:
        told.append(f"These importances are within their own spread, so take them for nothing: {', '.join(unsure)}.")
    word = "better" if best.gain > choosing.CLEAR * best.error else "not clearly better" if best.gain > 0 else "WORSE"
    spread = "too few runs to say how sure" if best.known_error is None else f"± {best.known_error:.3f}"
    gain = f"{best.gain:+.3f} of pairs in the right order, {spread}"
    told.append(f"On later runs {best.candidate.name} is {word} than the default: {gain}.")
    return told


GROUPS: Final = {"outcomes": OUTCOMES, "age": AGES, "popularity": POPULARITY}


def shadow(artefact: Mapping[str, Any], scorer: Any, runs: Sequence[Run]) -> dict[str, Any]:
    """How an artefact would have ordered what was shown since it was made, against the order used. Nothing is served by it."""
    np = numpy()
    since = [run for run in runs if run.told and run.at > artefact["until"]]
    samples = samples_of(since, artefact["form"])
    if len(samples) < SAMPLES_MIN:
        return {"runs": len(since), "samples": len(samples), "gain": None, "error": None}
    model = Model(artefact["method"], {}, lambda rows: np.array(scorer.scores(rows.tolist())))
    candidate = Candidate(artefact["method"], artefact["weight"])
    score_at = artefact["names"].index(choosing.SCORE)
    blocks = np.array_split(np.unique(samples.runs), choosing.BLOCKS)
    found = [Fold(samples.where(np.isin(samples.runs, block)), {candidate.method: model}) for block in blocks if len(block)]
    judged = choosing.judge(found, [DEFAULT, candidate], score_at)
    best = judged[-1] if judged else None
    numbers = {"gain": round(best.gain, 4), "error": best.known_error} if best else {"gain": None, "error": None}
    return {"runs": len(since), "samples": len(samples), **numbers}
