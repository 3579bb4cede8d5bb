"""A ranker is offered only where it was better on later runs; what it is made of is said, and what it says can be served."""

from __future__ import annotations

import json

import pytest

from herdbook.base.errors import ExtraMissing
from herdbook.fastloop.features import FORM, NAMES
from herdbook.fastloop.learned import scorer
from herdbook.slowloop import arrays
from herdbook.slowloop.retrain import choosing
from herdbook.slowloop.retrain.models import logistic, trees
from herdbook.slowloop.retrain.samples import samples_of
from herdbook.slowloop.retrain.training import SAMPLES_MIN, findings, train
from tests.slowloop import shown

FITS = {"logistic": logistic, "gbm": trees}


def trained(runs, **more):
    return train(runs, form=FORM, names=NAMES, **more)


@pytest.mark.slow
def test_what_decides_is_found_and_named() -> None:
    """A fleet that knows which numbers tell good from bad would go on ordering without them."""
    report = trained(shown.runs(300, seed=1))
    assert report["artefact"] is not None, report["says"]
    assert "evidence" == report["importances"][0]["feature"]
    assert report["importances"][0]["loss"] > 3 * report["importances"][0]["spread"]
    assert all(abs(each["loss"]) < 0.05 for each in report["importances"][1:])
    assert json.loads(json.dumps(report)) == report, "it has to be plain JSON"


@pytest.mark.slow
def test_noise_leaves_the_default_in_place() -> None:
    """A ranker fitted to nothing would shuffle every briefing, and look trained."""
    picked = [trained(shown.runs(80, seed=seed, strength=0.0))["artefact"] for seed in range(20)]
    assert 4 >= sum(artefact is not None for artefact in picked), "seeds 0 to 19"


@pytest.mark.slow
def test_uncomfortable_findings_are_said() -> None:
    """That age outranks outcomes would be a column of numbers nobody reads."""
    report = trained(shown.runs(300, seed=2, driver="age_days"))
    assert any(said.startswith("Age decides more here") for said in report["says"])


@pytest.mark.parametrize("count", [0, 1, 3])
def test_below_twenty_samples_nothing_is_fitted(count: int) -> None:
    """Three runs would decide the order of every briefing."""
    report = trained(shown.runs(count, seed=3))
    assert report["samples"] < SAMPLES_MIN
    assert report["artefact"] is None
    assert report["says"] == [f"Not enough data: {report['samples']} of {SAMPLES_MIN} samples."]


def test_a_spread_that_nobody_can_know_is_plain_json() -> None:
    """A path with runs enough for one block only would end `retrain --json` as an error that should not have happened."""
    one = choosing.judged(choosing.Candidate("logistic", 0.3), [(0.9, 4.0)], [(0.8, 4.0)])
    assert None is json.loads(json.dumps(one.as_dict(), allow_nan=False))["error"]
    assert choosing.DEFAULT == choosing.choose([choosing.judged(choosing.DEFAULT, [(0.8, 4.0)], [(0.8, 4.0)]), one]).candidate
    assert "too few runs to say how sure" in " ".join(findings(one, []))


def test_runs_that_all_ended_alike_teach_nothing() -> None:
    """A model of a single class would give everything the same score and crash or order by accident."""
    won = [run for run in shown.runs(200, seed=4) if run.success and all(e.used != "attempt" for e in run.exposures)][:20]
    assert trained(won)["artefact"] is None


@pytest.mark.parametrize("method", ["logistic", "gbm"])
def test_what_is_kept_says_what_was_fitted(method: str) -> None:
    """The order of briefings would be another than the one that was judged."""
    samples = samples_of(shown.runs(200, seed=5), FORM)
    model = FITS[method](samples, NAMES)
    kept = json.loads(json.dumps({**model.body, "form": FORM, "names": list(NAMES), "samples": len(samples)}))
    served = scorer(kept)
    assert not isinstance(served, str), served
    rows = samples.numbers[:50]
    assert pytest.approx(model.chances(rows).tolist(), abs=1e-6) == served.scores(rows.tolist())


@pytest.mark.slow
def test_the_old_rule_can_be_had_as_it_was() -> None:
    """Who wants boosted trees at thirty per cent, and nothing chosen, could not have them."""
    report = trained(shown.runs(60, seed=6), method="gbm", weight=0.3)
    assert ("gbm", 0.3, "trees") == tuple(report["artefact"][name] for name in ("method", "weight", "kind"))
    assert [("default", 0.0), ("gbm", 0.3)] == [(each["method"], each["weight"]) for each in report["tried"]]


def test_a_model_that_says_nothing_is_rejected() -> None:
    """A constant score at thirty per cent would order by accident and look trained."""
    samples = samples_of(shown.runs(30, seed=7), FORM)
    constant = logistic(samples, NAMES).__class__("logistic", {}, lambda rows: rows[:, 0] * 0 + 0.5)
    assert constant.is_constant(samples.numbers)
    found = choosing.folds(samples, {"logistic": lambda _: constant})
    assert all(not fold.models for fold in found)


def test_no_run_is_judged_by_a_model_that_saw_it() -> None:
    """Accuracy on what was learnt by heart would be reported as a gain."""
    samples = samples_of(shown.runs(40, seed=8), FORM)
    seen: list[int] = []

    def fit(before):
        seen.append(int(before.runs.max()))
        return logistic(before, NAMES)

    found = choosing.folds(samples, {"logistic": fit})
    assert [] == [1 for last, fold in zip(seen, found, strict=True) if last >= fold.held.runs.min()]


def test_what_is_missing_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody without numpy would see a traceback instead of what to install."""
    monkeypatch.setitem(__import__("sys").modules, "numpy", None)
    with pytest.raises(ExtraMissing, match=r"herdbook\[learn\]"):
        arrays.numpy()
    monkeypatch.setitem(__import__("sys").modules, "lightgbm", None)
    with pytest.raises(ExtraMissing, match=r"herdbook\[rank\]"):
        arrays.lightgbm()
