"""Fading with time, by the worked example and over every number there is."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.base.clock import MICROSECONDS_PER_DAY
from herdbook.fastloop.decay import FLOOR, KIND_FACTORS, effective_confidence, effective_now, half_life_days

kinds = st.sampled_from(sorted(KIND_FACTORS))
counts = st.integers(0, 10**9)
confidences = st.floats(0, 1)


def test_the_worked_example() -> None:
    """The half-life would not be the one that was promised: a fact of 30 days, read ten times, with an outcome, lasts 204."""
    assert 204 == round(half_life_days(30, "fact", recalls=10, outcomes=1))


@pytest.mark.parametrize("kind, days", [("fact", 30), ("belief", 15), ("experience", 45)])
def test_kinds_fade_at_their_own_pace(kind: str, days: float) -> None:
    """A belief would last as long as what was lived through."""
    assert days == half_life_days(30, kind)


def test_one_outcome_doubles_and_a_hundred_do_no_more() -> None:
    """An entry in a busy entity would never fade."""
    assert 60 == half_life_days(30, "fact", outcomes=1) == half_life_days(30, "fact", outcomes=100)


def test_half_is_left_after_a_half_life() -> None:
    """The number people see would not mean what its name says."""
    assert 0.4 == effective_confidence(0.8, 30, 30)


@given(confidences, st.floats(allow_nan=True), st.floats(1e-6, 1e12))
def test_effective_confidence_stays_a_confidence(confidence: float, age_days: float, half_life: float) -> None:
    """A clock that jumped, or a number that is none, would rank an entry above everything or hide it from comparison."""
    effective = effective_confidence(confidence, age_days, half_life)
    assert not math.isnan(effective)
    assert 0.0 <= effective <= confidence


def test_a_number_that_is_none_counts_for_nothing() -> None:
    """NaN would compare false with every floor and be served for ever."""
    assert effective_confidence(math.nan, 1, 30) == 0.0


@given(confidences, st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0.1, 1e6))
def test_older_is_never_stronger(confidence: float, one: float, other: float, half_life: float) -> None:
    """What was not confirmed for longer would outrank what was confirmed lately."""
    young, old = sorted((one, other))
    assert effective_confidence(confidence, old, half_life) <= effective_confidence(confidence, young, half_life)


@given(kinds, counts, counts, counts, counts)
def test_use_never_shortens_a_life(kind: str, recalls: int, more: int, outcomes: int, others: int) -> None:
    """Reading an entry would make it fade faster."""
    assert half_life_days(30, kind, recalls, outcomes) <= half_life_days(30, kind, recalls + more, outcomes + others)


@given(confidences, st.integers(-(10**17), 10**17), kinds, counts, counts)
def test_the_quick_form_is_the_same_number(confidence: float, age: int, kind: str, recalls: int, outcomes: int) -> None:
    """A briefing would order by another number than the one it shows."""
    half_life = half_life_days(30, kind, recalls, outcomes)
    slow = effective_confidence(confidence, age / MICROSECONDS_PER_DAY, half_life)
    assert effective_now(confidence, age, kind, recalls, outcomes) == pytest.approx(slow, rel=1e-9, abs=1e-300)


def test_a_fresh_note_takes_a_hundred_days_to_leave_briefings() -> None:
    """The floor would hide what was just written, or never hide anything."""
    assert effective_confidence(0.5, 99, half_life_days()) > FLOOR > effective_confidence(0.5, 101, half_life_days())
