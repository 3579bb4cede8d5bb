"""What may rank beside the default: a logistic regression that starts from the default, and boosted trees.

Both become plain JSON that a briefing scores without any library. A model whose scores hardly differ is refused: it would order
by accident.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from herdbook.slowloop.arrays import lightgbm, numpy
from herdbook.slowloop.retrain.samples import Samples

PRIOR_PRECISION: Final = 3.0  # measured: between 1 and 10 nothing changes much at 20 samples
PRIOR_SCORE: Final = 1.0  # the weight that the default's own score begins with; everything else begins with none
CONSTANT: Final = 1e-3  # scores that spread less than this are the same
LARGE: Final = 500  # samples from which trees may be larger


@dataclass(frozen=True, slots=True)
class Model:
    """A fitted model: what it says, and what is kept of it."""

    method: str
    body: Mapping[str, Any]  # its part of the artefact
    numbers: Any  # a function from rows of features to chances

    def chances(self, rows: Any) -> Any:
        return self.numbers(rows)

    def is_constant(self, rows: Any) -> bool:
        return not len(rows) or float(self.chances(rows).std()) < CONSTANT


def logistic(samples: Samples, names: Sequence[str]) -> Model:
    """Ridge around the default: with no data it orders as the default does, with much it may say anything (Newton's method)."""
    np = numpy()
    means = samples.numbers.mean(axis=0)
    scales = samples.numbers.std(axis=0)
    scales = np.where(scales > 1e-9, scales, 1.0)
    rows = np.column_stack([np.ones(len(samples)), (samples.numbers - means) / scales])
    centre = np.array([0.0, *(PRIOR_SCORE * (name == "score") for name in names)])
    precision = np.diag([1e-3, *[PRIOR_PRECISION] * len(names)])
    weights = centre.copy()
    for _ in range(50):
        chances = 1.0 / (1.0 + np.exp(-np.clip(rows @ weights, -30, 30)))
        slope = samples.weights * chances * (1 - chances) + 1e-9
        gradient = rows.T @ (samples.weights * (samples.labels - chances)) - precision @ (weights - centre)
        step = np.linalg.solve((rows * slope[:, None]).T @ rows + precision, gradient)
        weights = weights + step
        if abs(step).max() < 1e-7:
            break
    body = {
        "kind": "logistic",
        "weights": weights[1:].tolist(),
        "bias": float(weights[0]),
        "means": means.tolist(),
        "scales": scales.tolist(),
    }

    def numbers(asked: Any) -> Any:
        return 1.0 / (1.0 + np.exp(-np.clip(weights[0] + ((asked - means) / scales) @ weights[1:], -500, 500)))

    return Model("logistic", body, numbers)


def trees(samples: Samples, names: Sequence[str]) -> Model:
    """Boosted trees, small where there is little to learn from: the library's own defaults give a constant at 20 samples."""
    np, library = numpy(), lightgbm()
    large = len(samples) >= LARGE
    settings = {
        "objective": "binary",
        "learning_rate": 0.05,
        "num_leaves": 15 if large else 4,
        "max_depth": -1 if large else 3,
        "min_data_in_leaf": max(3, min(20, len(samples) // 10)),
        "lambda_l2": 5.0,
        "num_threads": 1,
        "deterministic": True,
        "seed": 1,
        "verbosity": -1,
    }
    data = library.Dataset(samples.numbers, samples.labels, weight=samples.weights, feature_name=list(names))
    booster = library.train(settings, data, num_boost_round=200 if large else 60)
    grown = [tree_of(each["tree_structure"]) for each in booster.dump_model()["tree_info"]]

    def numbers(asked: Any) -> Any:
        return np.asarray(booster.predict(asked))

    return Model("gbm", {"kind": "trees", "trees": grown, "start": 0.0}, numbers)


def tree_of(node: Mapping[str, Any]) -> dict[str, Any]:
    """One node and what is below it, in the form a briefing reads; low is at most the threshold."""
    if "leaf_value" in node:
        return {"leaf": node["leaf_value"]}
    assert node["decision_type"] == "<=", "features are numbers"
    return {
        "feature": node["split_feature"],
        "at": node["threshold"],
        "low": tree_of(node["left_child"]),
        "high": tree_of(node["right_child"]),
    }


FITS: Final = {"logistic": logistic, "gbm": trees}
