"""Intervals that hold for few runs, and the quantiles they are made with."""

from __future__ import annotations

import pytest

from herdbook.slowloop.intervals import Groups, mean_difference, share_difference, student

# From published tables of Student's t, two-sided 95 %.
TABLE = {3: 3.182, 5: 2.571, 10: 2.228, 30: 2.042, 120: 1.980}


@pytest.mark.parametrize("freedom", TABLE)
def test_the_quantile_is_that_of_the_tables(freedom: int) -> None:
    """Intervals of small groups would be too narrow, and a sceptic would find it in a minute."""
    assert pytest.approx(TABLE[freedom], rel=0.01) == student(freedom)


def test_few_runs_that_all_went_well_are_not_certain() -> None:
    """Three of three against none of three would look like proof without any doubt."""
    found = share_difference([Groups([1.0] * 3, [0.0] * 3)])
    assert found is not None
    assert found.high > 1.0 > found.estimate
    assert not found.sure
    split = share_difference([Groups([1.0] * 3, [0.0] * 3), Groups([1.0] * 2, [0.0] * 2)])
    assert split is not None
    assert split.high - split.low > 0.5


def test_an_easy_entity_with_many_told_runs_is_no_uplift() -> None:
    """Runs of entities that succeed anyway would be counted as the record's doing (Simpson's paradox)."""
    easy = Groups([1.0] * 90 + [0.0] * 10, [1.0] * 9 + [0.0])
    hard = Groups([1.0] + [0.0] * 9, [1.0] * 10 + [0.0] * 90)
    found = share_difference([easy, hard])
    assert found is not None
    assert pytest.approx(0.0, abs=1e-9) == found.estimate


def test_nothing_is_said_where_one_side_is_missing() -> None:
    """A difference against nobody would be made up."""
    assert share_difference([Groups([1.0, 0.0], [])]) is None
    assert mean_difference([Groups([], [1.0])]) is None
    assert mean_difference([Groups([1.0], [2.0])]) is None, "one run a side has no spread to judge by"
