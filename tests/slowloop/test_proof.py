"""What the record is worth: intervals that hold, verdicts that are never wrong, and "not enough data" where that is so."""

from __future__ import annotations

import random
from statistics import fmean

import pytest

from herdbook.slowloop.effects import effects
from herdbook.slowloop.proof import MEASURES, compared, prove
from herdbook.slowloop.runs import Run
from tests.slowloop import fleets

FLEETS = 400
WIDTH_MAX = 0.5  # of success, in the mean over fleets of few runs and of many


def test_the_interval_holds_the_truth_and_no_verdict_is_wrong() -> None:
    """An interval that is too narrow, or a fleet told that its record helps when it harms, would be a lie with numbers."""
    held, wrong, said, widths = 0, [], 0, []
    for seed in range(FLEETS):
        truth = fleets.fleet(seed)
        found = compared(truth.runs, MEASURES["success"], "success")
        held += found["low"] is None or found["low"] <= truth.uplift <= found["high"]
        said += found["verdict"] != "not enough data"
        widths += [] if found["width"] is None else [found["width"]]
        if (found["verdict"] == "helps" and truth.uplift <= 0) or (found["verdict"] == "harms" and truth.uplift >= 0):
            wrong.append(seed)
    assert [] == wrong, "seeds with a verdict of the wrong sign"
    assert held >= 0.93 * FLEETS
    print(f"{held} of {FLEETS} intervals hold the truth, {fmean(widths):.3f} wide in the mean, {len(widths)} can be given")
    assert fmean(widths) < WIDTH_MAX, "an interval that holds everything says nothing"
    assert len(widths) >= 0.9 * FLEETS
    assert said >= 40, "an answer that never says anything is never wrong either"


def few(told: int, control: int) -> list[Run]:
    return [fleets.run(n, "e/0", told=n < told, success=n % 2 == 0) for n in range(told + control)]


def test_without_a_control_arm_it_says_how_to_get_one() -> None:
    """Someone would be told that the record helps because all runs had it."""
    answer = prove(few(30, 0), chars_at={})
    assert "not enough data" == answer["uplift"]["success"]["verdict"]
    assert any("control" in sentence for sentence in answer["says"])


def test_a_handful_of_runs_is_not_enough() -> None:
    """Nine control runs by luck all failed, and the record would be praised for it."""
    runs = [fleets.run(n, "e/0", told=n < 200, success=n < 200) for n in range(209)]
    answer = prove(runs, chars_at={})
    assert "not enough data" == answer["uplift"]["success"]["verdict"]
    assert answer["says"][0].startswith("Not enough data")


def test_a_clear_uplift_is_said_with_its_interval() -> None:
    """Nobody would learn that it works."""
    luck = random.Random(7)
    told = [luck.random() < 0.75 for _ in range(400)]
    runs = [fleets.run(n, "e/0", told=on, success=luck.random() < (0.9 if on else 0.3)) for n, on in enumerate(told)]
    answer = prove(runs, chars_at={})
    assert "helps" == answer["uplift"]["success"]["verdict"]
    assert answer["uplift"]["success"]["low"] < 0.6 < answer["uplift"]["success"]["high"]
    assert answer["says"][0].startswith("The record helps: +")
    assert answer["checks"]["placebo"]["passed"], "seed 7"
    assert answer["checks"]["time"]["passed"]


def test_a_control_arm_that_came_first_is_noticed() -> None:
    """Before and after would be taken for with and without, and everything else that changed credited to the record."""
    runs = [fleets.run(n, "e/0", told=n >= 100, success=n % 3 == 0) for n in range(200)]
    answer = prove(runs, chars_at={})
    assert answer["checks"]["time"]["passed"] is False
    assert any("Careful" in sentence for sentence in answer["says"])


def test_paths_with_one_arm_only_are_left_out_and_counted() -> None:
    """Runs that nothing can be compared with would be dropped silently, or compared with another entity's."""
    runs = few(20, 20) + [fleets.run(100 + n, "e/1", told=True, success=True) for n in range(5)]
    answer = prove(runs, chars_at={})
    assert {"entities": 1, "runs": 40, "left_out": 5} == answer["checks"]["overlap"]


def entries_fleet(seed: int, count: int, odds: float) -> tuple[list[Run], dict[str, float]]:
    """Runs that read twelve entries, each withheld now and then; a third help, a third harm, a third do nothing."""
    luck = random.Random(f"entries {seed}")
    true = {f"k{at}": (0.15, 0.0, -0.15)[at % 3] for at in range(12)}
    runs = []
    for number in range(count):
        shown = {claim: luck.random() < odds for claim in true}
        chance = 0.5 + sum(gain * (shown[claim] - odds) for claim, gain in true.items())
        exposures = tuple(fleets.exposure(claim, served=on, probability=odds) for claim, on in shown.items())
        runs.append(fleets.run(number, "e/0", told=True, success=luck.random() < chance, exposures=exposures))
    return runs, true


def test_what_an_entry_does_is_told_by_its_interval() -> None:
    """A helpful entry and its neighbour, always read together, would never be told apart."""
    held = said = pairs = right = 0
    for seed in range(30):
        runs, true = entries_fleet(seed, 400, 0.85)
        found = {each.claim: each for each in effects(runs)}
        for claim, effect in found.items():
            row = effect.as_dict()
            held += row["low"] <= true[claim] <= row["high"]
            assert (effect.verdict, true[claim] > 0) not in {("helps", False), ("harms", True)}, f"seed {seed}, {claim}"
            said += effect.verdict != "not enough data"
        for one in true:
            for other in true:
                if true[one] > true[other]:
                    pairs += 1
                    right += found[one].estimate > found[other].estimate
    assert held >= 0.93 * 30 * 12
    assert right >= 0.9 * pairs
    assert said > 0


def test_the_control_arm_says_nothing_of_single_entries() -> None:
    """The effect of the whole record would be credited to each of its entries."""
    read = fleets.exposure("k", served=True, probability=0.9)
    withheld = fleets.exposure("k", served=False, probability=0.9)
    runs = [fleets.run(n, "e/0", told=True, success=True, exposures=(read,)) for n in range(20)]
    runs += [fleets.run(n, "e/0", told=False, success=False, exposures=(withheld,)) for n in range(20, 40)]
    assert [] == effects(runs)


@pytest.mark.parametrize("odds", [0.0, 1.0])
def test_what_was_not_left_to_chance_has_no_effect_to_tell(odds: float) -> None:
    """An entry that was always shown would be credited with whatever its entity does."""
    runs, _ = entries_fleet(1, 50, odds)
    assert [] == effects(runs)
