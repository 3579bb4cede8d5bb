"""A run stays with the model it began with, and a share of the runs is that share."""

from __future__ import annotations

from typing import Any

from herdbook.slowloop.models import arms


def route(percent: float, *entities: str, before: bool = True) -> dict[str, Any]:
    return {"model": "new", "before": "old" if before else None, "percent": percent, "entities": list(entities)}


def who(found: dict[str, Any], unit: str, entity: str | None = None) -> Any:
    return arms.chosen(found, alias="fixer", entity=entity, unit=unit)


def test_a_share_is_that_share_and_widening_it_moves_nobody_back() -> None:
    """A run would be answered by two models in turn, or ten percent be half of all."""
    runs = [f"run-{number}" for number in range(4_000)]
    tried = {percent: {run for run in runs if who(route(percent), run) == "new"} for percent in (0, 10, 50, 100)}
    assert 0 == len(tried[0])
    assert len(runs) == len(tried[100])
    assert tried[10] < tried[50]
    assert 0.08 < len(tried[10]) / len(runs) < 0.12
    assert 0.46 < len(tried[50]) / len(runs) < 0.54


def test_the_same_run_gets_the_same_model_in_every_process() -> None:
    """Two servers would answer one conversation with two models. These are fixed: Python's own hash is not."""
    assert [4322, 4337] == [arms.bucket("fixer", "run-1"), arms.bucket("fixer", "run-2")]


def test_a_path_gets_the_new_model_whatever_its_share() -> None:
    """One team could not be given it before the others."""
    found = route(0, "acme/checkout")
    assert ["new", "new", "old", "old", "old"] == [
        who(found, "run-1", entity) for entity in ("acme/checkout", "acme/checkout/tests", "acme/checkout2", "acme", None)
    ]


def test_the_only_model_answers_everybody() -> None:
    """There would be nobody to answer."""
    assert "new" == who(route(100, before=False), "run-1")
